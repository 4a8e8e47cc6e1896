"""How good an answer is: changes matched one to one, precision and recall, alarms and delays of a growing series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

#: A change is found when it is reported at most this many values off; in a growing series, a reported change is the
#: same as one reported before when it is.
MARGIN = 5
SAME = 3


@dataclass
class Score:
    """Counts over many series."""

    right: int = 0
    reported: int = 0
    true: int = 0

    def add(self, true: Sequence[int], reported: Sequence[int]) -> None:
        self.right += matched(true, reported)
        self.reported += len(reported)
        self.true += len(true)

    @property
    def precision(self) -> float:
        return self.right / self.reported if self.reported else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.reported + self.true) if self.reported + self.true else 1.0


def matched(true: Sequence[int], reported: Sequence[int], margin: int = MARGIN) -> int:
    """How many true changes have a reported one of their own within the margin, the nearest first.

    >>> matched([10, 12, 50], [11, 49, 90])
    2
    """
    left, count = sorted(set(reported)), 0
    for change in sorted(true):
        near = [place for place in left if abs(place - change) <= margin]
        if near:
            left.remove(min(near, key=lambda place: abs(place - change)))
            count += 1
    return count


@dataclass(frozen=True)
class Watch:
    """What watching growing series value by value brought."""

    false_per_1000: float
    """False alarms per 1000 values that arrived."""
    delay: float
    """Values after a change when it was reported, on average; a change never reported counts with all that came."""


def watch(
    series: Iterable[tuple[list[float], tuple[int, ...]]], find: Callable[[list[float]], list[int]], start: int
) -> Watch:
    """Ask `find` after every value from `start` on; a change reported near an earlier one is no new alarm."""
    false = arrived = 0
    delays = []
    for values, changes in series:
        seen = list(find(values[:start]))
        delay = None
        for n in range(start + 1, len(values) + 1):
            arrived += 1
            for place in find(values[:n]):
                if any(abs(place - known) <= SAME for known in seen):
                    continue
                seen.append(place)
                if changes and abs(place - changes[0]) <= SAME:
                    delay = delay or n - changes[0]
                else:
                    false += 1
        if changes:
            delays.append(delay or len(values) - changes[0])
    return Watch(1000.0 * false / arrived, sum(delays) / len(delays))
