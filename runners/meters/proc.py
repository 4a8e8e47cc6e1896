"""Reads the meters of this host: /proc, and the CPU clocks of the server's processes.

A reading costs about a third of a millisecond, so that reading every second stays far below 1 % of one core.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil

from runners.meters.sample import (
    Cpu,
    MeterSample,
    parse_disk,
    parse_reaped_cpu_s,
    parse_rss_bytes,
)

_PROC = Path("/proc")


class Meter:
    """Meters of one server, found by its process id, on the device that holds `data`."""

    def __init__(self, server_pid: int, data: Path) -> None:
        self.server_pid = server_pid
        self._client_cpu_s: dict[int, float] = {}
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._page_bytes = os.sysconf("SC_PAGE_SIZE")
        self.device = block_device(data)
        """ "MAJOR:MINOR"."""

    def watch_client(self, pid: int) -> None:
        """From now on `client_cpu_s` has this process in it, as last seen once it has ended."""
        self._client_cpu_s[pid] = cpu_clock_s(pid) or 0.0

    @property
    def clients(self) -> tuple[int, ...]:
        """The processes of `watch_client`, ended ones too."""
        return tuple(self._client_cpu_s)

    def pids(self) -> list[int]:
        """The server and its children now."""
        return process_tree(self.server_pid)

    def read(self) -> MeterSample:
        """All counters now."""
        times = psutil.cpu_times()
        pids = self.pids()
        return MeterSample(
            at_s=time.monotonic(),
            cpu=Cpu(
                busy_s=times.user + times.nice + times.system + times.irq + times.softirq,
                idle_s=times.idle + times.iowait,
                steal_s=times.steal,
            ),
            context_switches=psutil.cpu_stats().ctx_switches,
            disk=parse_disk(_text(_PROC / "diskstats") or "", self.device),
            server_cpu_s=self._server_cpu_s(pids),
            client_cpu_s=self._clients_cpu_s(),
            harness_cpu_s=time.process_time(),
            rss_bytes=self._rss_bytes(pids),
        )

    def _clients_cpu_s(self) -> float | None:
        for pid in list(self._client_cpu_s):
            clock = cpu_clock_s(pid)
            if clock is not None:
                self._client_cpu_s[pid] = max(clock, self._client_cpu_s[pid])
        return sum(self._client_cpu_s.values()) if self._client_cpu_s else None

    def _server_cpu_s(self, pids: list[int]) -> float | None:
        reaped = parse_reaped_cpu_s(_text(_PROC / str(self.server_pid) / "stat") or "", ticks_per_s=self._ticks_per_s)
        clocks = [clock for pid in pids if (clock := cpu_clock_s(pid)) is not None]
        return sum(clocks) + (reaped or 0.0) if clocks else None

    def _rss_bytes(self, pids: list[int]) -> int | None:
        """Private memory of all processes, and shared memory once: the largest share that one of them maps."""
        sizes = [
            size
            for pid in pids
            if (size := parse_rss_bytes(_text(_PROC / str(pid) / "statm") or "", page_bytes=self._page_bytes))
        ]
        if not sizes:
            return None
        return sum(resident - shared for resident, shared in sizes) + max(shared for _, shared in sizes)


def cpu_clock_s(pid: int) -> float | None:
    """CPU seconds of a process, all its threads, ended ones too, to the nanosecond; None when it is gone.

    The clock's number is that of clock_getcpuclockid(3): the complement of the process id, and CPUCLOCK_SCHED.
    """
    try:
        return time.clock_gettime(((~pid) << 3) | 2)
    except OSError:
        return None


def process_tree(pid: int) -> list[int]:
    """The process and its descendants, itself first; the kernel lists children by thread."""
    pids, position = [pid], 0
    while position < len(pids):
        for task in _tasks(pids[position]):
            pids += [int(child) for child in (_text(task / "children") or "").split()]
        position += 1
    return pids


def _tasks(pid: int) -> list[Path]:
    try:
        return list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def block_device(path: Path) -> str:
    """ "MAJOR:MINOR" of the whole device that holds `path`; of the partition where the kernel shows no parent."""
    number = path.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    device = Path("/sys/dev/block") / name
    if (device / "partition").exists():
        return _text(device.resolve().parent / "dev") or name
    return name


def directory_bytes(path: Path) -> int:
    """Bytes on disk of all files below `path`; files that go away meanwhile do not count."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118 - walked for every test
            except FileNotFoundError:
                continue
    return total


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip("\n")
    except (OSError, ProcessLookupError):
        return None
