"""Whether a host does the fixed work as it always did. Pure.

>>> usual = [Times(cpu_ms=100.0, memory_ms=50.0, sync_ms=1.0)] * 6
>>> differences(Times(cpu_ms=101.0, memory_ms=50.5, sync_ms=1.4), usual)
()
>>> differences(Times(cpu_ms=130.0, memory_ms=50.0, sync_ms=1.0), usual)
('CPU: 130.0 ms, usually 100.0 (+30 %)',)
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from history.model import CanaryVerdict

#: Fewer readings than this say nothing about what is usual.
FEWEST_READINGS = 5
#: Readings that count, the newest: a few weeks of nights.
MOST_READINGS = 40
#: From the median absolute deviation to a standard deviation of a normal distribution.
MAD = 1.4826
#: A reading so many standard deviations of the usual ones away is another machine.
SIGMAS = 6.0


class Times(NamedTuple):
    """Milliseconds of each part of the work."""

    cpu_ms: float
    memory_ms: float
    sync_ms: float


class Tolerance(NamedTuple):
    """How a part may differ from the usual, however steady it was: shares of the usual time."""

    title: str
    slower: float
    faster: float


#: A clock that is fixed does not change by a twentieth; faster is as suspicious as slower (turbo came on). A drive that
#: takes twice as long to write a page safely wears out or lost its cache; one that is faster may lie.
TOLERANCES = {
    "cpu_ms": Tolerance("CPU", 0.05, 0.05),
    "memory_ms": Tolerance("memory", 0.10, 0.10),
    "sync_ms": Tolerance("flush to disk", 1.00, 0.60),
}


def verdict(reasons: Sequence[str], before: Sequence[Times]) -> CanaryVerdict:
    """What `differences` means, `before` having been known."""
    if len(before) < FEWEST_READINGS:
        return "learning"
    return "differs" if reasons else "usual"


def differences(now: Times, before: Sequence[Times]) -> tuple[str, ...]:
    """A sentence for each part that took another time than it usually does; none while too little is known."""
    if len(before) < FEWEST_READINGS:
        return ()
    sentences = []
    for name, bound in TOLERANCES.items():
        values = [getattr(times, name) for times in before[-MOST_READINGS:]]
        usual = statistics.median(values)
        spread = MAD * statistics.median(abs(value - usual) for value in values)
        value = getattr(now, name)
        if value > usual + max(bound.slower * usual, SIGMAS * spread) or value < usual - max(
            bound.faster * usual, SIGMAS * spread
        ):
            sentences.append(f"{bound.title}: {value:.1f} ms, usually {usual:.1f} ({100 * (value / usual - 1):+.0f} %)")
    return tuple(sentences)
