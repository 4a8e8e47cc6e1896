"""Stalls: time of a test in which its server or its client did not run, and the harness's looks that tell it. Pure.

The harness looks at the processes of a test ten times a second. From the looks of one second in which the server was
stopped for 0.6 s:

    Stalls(window_s=1.0, seconds={"server": 0.61})

Waiting for a CPU is no stall: that is foreign load, and judged as such. Waiting for storage is the behaviour of product
and disk: it is told, and condemns nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

#: Seconds between two looks.
PERIOD_S = 0.1
#: Seconds that the harness itself may be late, waiting for a CPU not counted.
LEAST_GAP_S = 0.25
#: Seconds by which two clocks may part between two looks; discipline of the clock moves them by less than 0.1 %.
LEAST_JUMP_S = 0.1
#: Progress below this share of the test's mean is none.
QUIET_SHARE = 0.1
#: Nor is progress below this share of one core: an idle server's background work.
QUIET_CORES = 0.005

#: Why server and client made no progress: they wait for a CPU, for storage, or for nothing that can be seen.
Wait = Literal["cpu", "storage", "asleep"]
Stopped = Literal["server", "client"]
Cause = Literal["server", "client", "harness", "clock", "asleep", "storage"]

CAUSE_WORDS: dict[Cause, str] = {
    "server": "the server was stopped",
    "client": "the client was stopped",
    "harness": "the harness did not run: it was stopped, or the machine was",
    "clock": "the clocks parted: the machine was suspended, or its time was set",
    "asleep": "neither server nor client ran, and they waited neither for a CPU nor for storage",
    "storage": "server and client waited for storage",
}


@dataclass(frozen=True)
class Look:
    """What one look at the processes of a test saw."""

    at_s: float
    """Monotonic clock."""
    clocks_s: tuple[float, ...]
    """Other clocks less the monotonic one: wall time, and time since boot with suspension; empty where not read."""
    excused_s: float | None
    """How long the looking thread has waited for a CPU, and the harness has used one, since it began; None where the
    kernel does not tell."""
    cpu_s: float
    """CPU of server and client since the first look."""
    stopped: Stopped | None = None
    """Who is stopped by a signal or a debugger."""
    wait: Wait | None = None
    """Looked for only when the test stands still: `StallFinder.is_still`."""


@dataclass(frozen=True)
class Stalls:
    """How long one test stood still."""

    window_s: float
    seconds: Mapping[Cause, float] = field(default_factory=dict)

    @property
    def lost_s(self) -> float:
        """Seconds that say nothing of the product: all but waits for storage, and no more than the window has."""
        return min(self.window_s, sum(self.seconds[cause] for cause in self.causes))

    @property
    def lost_share(self) -> float:
        return self.lost_s / self.window_s if self.window_s > 0 else 0.0

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Of the time lost, the longest first."""
        return tuple(sorted(self.seconds.keys() - {"storage"}, key=lambda cause: -self.seconds[cause]))

    @property
    def storage_s(self) -> float:
        """Seconds of waits for storage."""
        return self.seconds.get("storage", 0.0)


class StallFinder:
    """Takes the looks of one test in their order, and keeps no more of them than it needs."""

    def __init__(self) -> None:
        self._first: Look | None = None
        self._last: Look | None = None
        self._seconds: dict[Cause, float] = {}
        self._quiet_s = 0.0
        """How long there has been no progress up to the last look."""
        self._waits: Counter[Wait] = Counter()

    @property
    def stalls(self) -> Stalls:
        """Those up to the last look."""
        if self._first is None or self._last is None:
            return Stalls(0.0)
        return Stalls(self._last.at_s - self._first.at_s, self._with_standstill())

    def is_still(self, look: Look) -> bool:
        """Whether there was no progress before the last look, nor since: then `look` should say what the test waits
        for."""
        return self._quiet_s > 0 and self._last is not None and self._is_quiet(self._last, look)

    def add(self, look: Look) -> None:
        """`look` is later than all before."""
        before, self._last = self._last, look
        if before is None:
            self._first = look
            return
        jump = max((abs(b - a) for a, b in zip(before.clocks_s, look.clocks_s, strict=False)), default=0.0)
        if jump >= LEAST_JUMP_S:
            self._seconds = added(self._seconds, "clock", jump)
        absent = absence_s(before, look)
        if absent is None and look.stopped is None and self._is_quiet(before, look):
            self._quiet_s += look.at_s - before.at_s
            self._waits.update([look.wait] if look.wait else [])
            return
        self._seconds = self._with_standstill()
        self._quiet_s, self._waits = 0.0, Counter()
        if absent is not None:
            self._seconds = added(self._seconds, "harness", absent)
        elif look.stopped is not None:
            self._seconds = added(self._seconds, look.stopped, look.at_s - before.at_s)

    def _is_quiet(self, before: Look, after: Look) -> bool:
        assert self._first is not None
        mean_cores = (after.cpu_s - self._first.cpu_s) / (after.at_s - self._first.at_s)
        return is_quiet(after.cpu_s - before.cpu_s, after.at_s - before.at_s, mean_cores)

    def _with_standstill(self) -> dict[Cause, float]:
        """Seconds by cause, the present standstill among them unless it is of one interval or a wait for a CPU."""
        if not self._waits:
            return self._seconds
        wait = max(self._waits, key=lambda each: (self._waits[each], each != "asleep"))
        return self._seconds if wait == "cpu" else added(self._seconds, wait, self._quiet_s)


def added(seconds: Mapping[Cause, float], cause: Cause, more_s: float) -> dict[Cause, float]:
    """`seconds` with `more_s` of one cause.

    >>> added({"server": 0.25}, "server", 0.5), added({}, "clock", 2.0)
    ({'server': 0.75}, {'clock': 2.0})
    """
    return {**seconds, cause: seconds.get(cause, 0.0) + more_s}


def is_quiet(cpu_s: float, interval_s: float, mean_cores: float) -> bool:
    """Whether so much CPU in an interval is (nearly) none for a test that has used `mean_cores` so far.

    >>> is_quiet(0.001, 0.05, mean_cores=1.2), is_quiet(0.02, 0.05, mean_cores=1.2), is_quiet(0.0, 0.05, 0.0)
    (True, False, True)
    """
    return cpu_s <= interval_s * max(QUIET_SHARE * mean_cores, QUIET_CORES)


def absence_s(before: Look, after: Look) -> float | None:
    """How long the harness was late for a look without cause of its own; None when it was not."""
    if before.excused_s is None or after.excused_s is None:
        return None
    late = after.at_s - before.at_s - PERIOD_S - (after.excused_s - before.excused_s)
    return late if late >= LEAST_GAP_S else None
