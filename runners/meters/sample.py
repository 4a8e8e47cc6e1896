"""One sample of all meters: counters that only grow, and what the kernel's files say of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

#: Unit of /proc/diskstats, whatever the device's own sectors are (kernel documentation, admin-guide/iostats).
SECTOR_BYTES = 512


@dataclass(frozen=True)
class Cpu:
    """Seconds since boot, over all CPUs; `busy_s` is what vmstat calls us + sy."""

    busy_s: float
    idle_s: float
    steal_s: float

    @property
    def total_s(self) -> float:
        return self.busy_s + self.idle_s + self.steal_s


@dataclass(frozen=True)
class Disk:
    """Counters of one block device since boot; flushes are None before Linux 5.5."""

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    flushes: int | None
    flush_ms: int | None


@dataclass(frozen=True)
class MeterSample:
    """All counters at one moment; what this host does not tell is None."""

    at_s: float
    """Monotonic clock."""
    cpu: Cpu | None
    context_switches: int | None
    disk: Disk | None
    server_cpu_s: float | None
    """The server and its children, those that ended included."""
    client_cpu_s: float | None
    harness_cpu_s: float
    rss_bytes: int | None


def growth(first: MeterSample, last: MeterSample) -> MeterSample:
    """What every counter grew by; what one of the two does not tell is None."""

    def difference(before: Any, after: Any) -> Any:
        if before is None or after is None:
            return None
        if not is_dataclass(after):
            return after - before
        values = {f.name: difference(getattr(before, f.name), getattr(after, f.name)) for f in fields(after)}
        return after.__class__(**values)

    return cast("MeterSample", difference(first, last))


def parse_disk(diskstats: str, device: str) -> Disk | None:
    """The line of `device` ("MAJOR:MINOR") in /proc/diskstats; None when there is none."""
    numbers = _disk_fields(diskstats, device)
    if numbers is None:
        return None
    flushes, flush_ms = (numbers[15], numbers[16]) if len(numbers) >= 17 else (None, None)
    return Disk(
        reads=numbers[0],
        read_bytes=numbers[2] * SECTOR_BYTES,
        writes=numbers[4],
        written_bytes=numbers[6] * SECTOR_BYTES,
        flushes=flushes,
        flush_ms=flush_ms,
    )


def parse_in_flight(diskstats: str, device: str) -> int | None:
    """Requests that `device` has not answered yet; None when it is not in /proc/diskstats."""
    numbers = _disk_fields(diskstats, device)
    return None if numbers is None else numbers[8]


def _disk_fields(diskstats: str, device: str) -> list[int] | None:
    """The numbers behind the device's name."""
    major, _, minor = device.partition(":")
    for line in diskstats.splitlines():
        fields = line.split()
        if len(fields) >= 14 and fields[:2] == [major, minor]:
            return [int(field) for field in fields[3:]]
    return None


def parse_reaped_cpu_s(stat: str, *, ticks_per_s: int) -> float | None:
    """CPU seconds of the children a process has waited for: cutime + cstime of /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / ticks_per_s if len(fields) > 14 else None


def parse_state(stat: str) -> str | None:
    """The state in /proc/PID/stat: R, S, D, T, ...; None of a text that has none."""
    fields = stat.rpartition(")")[2].split()
    return fields[0] if fields else None


def parse_rss_bytes(statm: str, *, page_bytes: int) -> tuple[int, int] | None:
    """(resident, shared) bytes of /proc/PID/statm."""
    fields = statm.split()
    return (int(fields[1]) * page_bytes, int(fields[2]) * page_bytes) if len(fields) > 2 else None
