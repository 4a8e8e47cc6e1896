"""Where the wall time of a block goes: a clock that its steps are timed with.

>>> clock = PhaseClock()
>>> with clock.phase("restore"): pass
>>> with clock.test("scan"): pass
>>> {part: sorted(seconds) for part, seconds in clock.phases().items()}
{'block': ['other', 'restore'], 'tests': ['scan']}
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Phases = dict[Literal["block", "tests"], dict[str, float]]

#: Once for each release, config and scale, and not again while its data is kept.
LOAD = "load"
#: For another worker that loads the same data.
WAIT = "wait"


@dataclass
class PhaseClock:
    """Seconds since it was made, by phase. What is timed twice adds up; what is not timed is `other`."""

    block: dict[str, float] = field(default_factory=dict)
    tests: dict[str, float] = field(default_factory=dict)
    made: float = field(default_factory=time.monotonic)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a step of the block that is no test."""
        with _timed(self.block, name):
            yield

    @contextmanager
    def test(self, name: str) -> Iterator[None]:
        """Time a test, with its warm-up."""
        with _timed(self.tests, name):
            yield

    def add(self, name: str, seconds: float) -> None:
        """A step of the block that was timed elsewhere."""
        self.block[name] = self.block.get(name, 0.0) + seconds

    def phases(self) -> Phases:
        """As the history keeps them; they sum to the wall time until now."""
        timed = sum(self.block.values()) + sum(self.tests.values())
        other = max(0.0, time.monotonic() - self.made - timed)
        return {"block": {**self.block, "other": other}, "tests": dict(self.tests)}


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        seconds[name] = seconds.get(name, 0.0) + time.monotonic() - began
