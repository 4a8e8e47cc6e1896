"""The machine canary in the environment log: what each host took for the fixed work, and what was made of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from history.model import CanaryReading
from reports.spark import STEP, spark

#: Newest readings of a host in its table; the history keeps all of them.
MAX_READINGS = 30
#: Newest readings in its sparklines.
DRAWN = 60
PARTS = (("CPU", "cpu_ms"), ("memory", "memory_ms"), ("flush to disk", "sync_ms"))


class Part(NamedTuple):
    """One part of the work over time."""

    title: str
    spark: str
    width: int


class HostReadings(NamedTuple):
    """One host."""

    host: str
    quarantine: datetime | None
    """Since when it may not measure; None when it may, as far as the readings tell: they end with a quarantine, and
    begin again when a person clears it."""
    parts: tuple[Part, ...]
    readings: tuple[CanaryReading, ...]
    """The newest first, at most MAX_READINGS."""
    more: int
    """Older ones."""


def host_readings(readings: Sequence[CanaryReading]) -> list[HostReadings]:
    """Hosts by name; none for a history that has no readings."""
    by_host: dict[str, list[CanaryReading]] = defaultdict(list)
    for reading in sorted(readings, key=lambda reading: reading.at):
        by_host[reading.host].append(reading)
    return [_host(host, by_host[host]) for host in sorted(by_host)]


def _host(host: str, readings: list[CanaryReading]) -> HostReadings:
    drawn = readings[-DRAWN:]
    newest = readings[-1]
    return HostReadings(
        host=host,
        quarantine=newest.at if newest.quarantine else None,
        parts=tuple(
            Part(title, spark([getattr(reading, name) for reading in drawn]), STEP * len(drawn))
            for title, name in PARTS
        ),
        readings=tuple(reversed(readings[-MAX_READINGS:])),
        more=max(0, len(readings) - MAX_READINGS),
    )
