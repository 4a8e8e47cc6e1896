"""The heat table of a line: tests down, releases across, each cell relative to the base release. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from math import isfinite, isnan, nan
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from history.metrics import MetricRegistry
from history.model import MAJORS, Better, Direction, Finding, FindingKind, Series, Tier
from presentation.findings import frame, records
from presentation.near_zero import change_of
from presentation.noise import release_noise
from presentation.ordering import Natural, by_catalogue, natural
from presentation.relative import level_frame, ratios, versions_of
from presentation.views import View, preferred_series

if TYPE_CHECKING:
    from pandas import DataFrame, MultiIndex

#: Name of the group of tests that have none.
UNGROUPED = "all tests"
#: Of a test: `base` is the release that its row is relative to, the table's, or the row's first where it lacks that;
#: a change below `quiet_pct` gets no colour.
TEST_COLUMNS = {"metric": "str", "unit": "str", "better": "str", "base": "str", "quiet_pct": "float64"}
#: Standard deviations of a series within which a cell stays uncoloured.
QUIET_SIGMAS = 2.0


class Mark(NamedTuple):
    """A changepoint in one series: this release is the first at the new level."""

    finding: str
    kind: FindingKind
    direction: Direction
    change_pct: float
    tier: Tier
    said: str
    """The change in percent, or in units where it is near zero."""


Marks = Mapping[str, Mapping[str, Mark]]
"""By series id, then version."""


class HeatGroup(NamedTuple):
    """The tests of one group."""

    name: str
    better: Better
    """Of the first."""
    quiet_pct: float
    """A median that changes by less gets no colour."""
    medians: list[float]
    """By release, of the finite ratios of the tests that have the table's base; NaN where none has the release."""
    rows: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class HeatTable:
    """One view of one line."""

    view: View
    values: DataFrame
    """Levels, float64: index (group, test) in the order to show, columns the releases; NaN where not measured."""
    tests: DataFrame
    """TEST_COLUMNS, of the same index."""
    base: str
    marks: Mapping[str, Mapping[str, Mark]] = field(default_factory=dict)
    """By test, then version."""
    older: int = 0
    """Releases left out at the old end, because the page would grow too large."""

    @property
    def versions(self) -> list[str]:
        return list(self.values.columns)

    @cached_property
    def ratios(self) -> DataFrame:
        """As `values`, relative to each row's base."""
        import numpy as np

        bases = [self.versions.index(base) for base in self.tests["base"]]
        return ratios(self.values, self.values.to_numpy()[np.arange(len(bases)), bases, np.newaxis])

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The tests in order: `group`, `test`, TEST_COLUMNS, and lists of their `values` and `ratios`."""
        numbers = self.values.to_numpy().tolist(), self.ratios.to_numpy().tolist()
        return [
            {"group": group, "test": test, **columns, "values": values, "ratios": ratios}
            for (group, test), columns, values, ratios in zip(
                self.tests.index, records(self.tests), *numbers, strict=True
            )
        ]

    @cached_property
    def groups(self) -> list[HeatGroup]:
        return [self._group(name, list(rows)) for name, rows in groupby(self.rows, key=lambda row: row["group"])]

    @cached_property
    def overall(self) -> HeatGroup:
        """All tests as one group."""
        return self._group(UNGROUPED, self.rows)

    def _group(self, name: str, rows: list[dict[str, Any]]) -> HeatGroup:
        comparable = [row["ratios"] for row in rows if row["base"] == self.base]
        columns = [[row[at] for row in comparable if isfinite(row[at])] for at in range(len(self.versions))]
        # A median of n tests is about √n times quieter than one of them.
        quiet_pct = median(row["quiet_pct"] for row in rows) / len(rows) ** 0.5
        medians = [median(column) if column else nan for column in columns]
        return HeatGroup(name, rows[0]["better"], quiet_pct, medians, rows)


def marks_of(findings: Iterable[Finding]) -> dict[str, dict[str, Mark]]:
    """The changepoints that findings put into series, the largest where there are several."""
    marks: dict[str, dict[str, Mark]] = defaultdict(dict)
    for finding in findings:
        for move in finding.moves:
            mark = Mark(finding.key, finding.kind, move.direction, move.change_pct, move.tier, change_of(move))
            held = marks[move.key.id].get(finding.release)
            if held is None or abs(mark.change_pct) > abs(held.change_pct):
                marks[move.key.id][finding.release] = mark
    return dict(marks)


def default_base(values: DataFrame) -> str:
    """The first release that at least half as many tests have as the best-covered release.

    The very first release of a line is often measured on few tests only, and would leave most rows without a base.
    """
    counts = values.notna().to_numpy().sum(axis=0)
    return str(values.columns[(counts >= counts.max() / 2).argmax()])


def group_order(group: str) -> tuple[bool, Natural]:
    """Sort key: by name, which is how the field numbers its groups; tests without a group last."""
    return group == UNGROUPED, natural(group)


def test_order(order: Mapping[str, int]) -> Callable[[tuple[str, str]], Any]:
    """Sort key of (group, test): groups by name, tests in the order of their benchmark where `order` has them."""
    by_test = by_catalogue(order)
    return lambda test: (group_order(test[0]), by_test(test[1]))


def test_index(tests: Sequence[tuple[str, str]]) -> MultiIndex:
    """Of (group, test)."""
    import pandas as pd

    groups, names = (pd.Index(list(each), dtype=object) for each in zip(*tests, strict=True))
    return pd.MultiIndex.from_arrays([groups, names], names=["group", "test"])


def heat_table(
    series: Sequence[Series],
    view: View,
    metrics: MetricRegistry,
    *,
    marks: Marks | None = None,
    base: str = "",
    order: Mapping[str, int] | None = None,
    max_cells: int | None = None,
) -> HeatTable:
    """The table of `view` over the series of one line; at least one of them has a metric of the view.

    `base` is a version, by default `default_base`; `order` puts tests in the order of their benchmark where it is
    known (others follow by name); `max_cells` drops the oldest releases of a line too long for one page.
    """
    import pandas as pd

    in_order = test_order(order or {})
    shown = preferred_series(series, view.metrics)
    shown.sort(key=lambda member: in_order((member.group or UNGROUPED, member.key.test)))
    versions = versions_of(shown)
    older = 0
    if max_cells is not None and len(versions) * len(shown) > max_cells:
        older = len(versions) - max(2, max_cells // len(shown))
    every = level_frame(shown, versions)
    values = every.iloc[:, older:] if older else every
    base = base if base in versions[older:] else default_base(values)
    # Neighbours in `majors` differ by years of work, which is no noise.
    sigmas = 0.0 if shown[0].key.line == MAJORS else QUIET_SIGMAS
    rows, places = [], []
    for row, (member, numbers, noise) in enumerate(zip(shown, values.to_numpy(), release_noise(every), strict=True)):
        measured = [version for version, level in zip(versions[older:], numbers, strict=True) if not isnan(level)]
        smallest = metrics[member.key.metric].smallest_change_pct
        if measured:
            places.append(row)
            rows.append(
                {
                    "metric": member.key.metric,
                    "unit": member.unit,
                    "better": member.better,
                    "base": base if base in measured else measured[0],
                    "quiet_pct": smallest if isnan(noise) else max(smallest, sigmas * noise),
                }
            )
    index = test_index([(shown[row].group or UNGROUPED, shown[row].key.test) for row in places])
    by_test = {
        member.key.test: {version: mark for version, mark in own.items() if version in values}
        for member in shown
        if (own := (marks or {}).get(member.key.id))
    }
    levels = pd.DataFrame(values.to_numpy()[places], index=index, columns=values.columns)
    tests = frame(TEST_COLUMNS, rows)
    tests.index = index
    return HeatTable(view, levels, tests, base, by_test, older)
