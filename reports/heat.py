"""The heat table of a line: tests down, releases across, each cell relative to the base release. Pure.

>>> from reports.views import VIEWS
>>> table = heat_table([], VIEWS[0])
>>> table.versions, table.groups
((), ())
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from history.model import Better, Direction, Finding, Series, Tier
from presentation.ordering import Natural, by_catalogue, natural
from presentation.relative import DEFAULT_SMALLEST_PCT, levels, relative
from reports.views import View, pick

#: Name of the group of tests that have none.
UNGROUPED = "all tests"


@dataclass(frozen=True)
class Mark:
    """A changepoint in one row: this release is the first at the new level."""

    finding: str
    direction: Direction
    change_pct: float
    tier: Tier


@dataclass(frozen=True)
class Row:
    """One test."""

    test: str
    group: str
    metric: str
    unit: str
    better: Better
    values: tuple[float | None, ...]
    """Absolute, one a version; None where the release has no usable block."""
    base: int | None
    """Position every cell is relative to: the table's base, or the row's first release where it lacks that."""
    marks: Mapping[int, Mark] = field(default_factory=dict)
    quiet_pct: float = DEFAULT_SMALLEST_PCT
    """Changes smaller than this get no colour."""

    def ratios(self) -> list[float | None]:
        """Relative values, one a version."""
        base = None if self.base is None else self.values[self.base]
        if base is None:
            return [None] * len(self.values)
        return [None if value is None else relative(value, base) for value in self.values]


@dataclass(frozen=True)
class Group:
    """Tests of one group, and their median relative value per release."""

    name: str
    better: Better
    rows: tuple[Row, ...]
    medians: tuple[float | None, ...]

    @property
    def quiet_pct(self) -> float:
        """A median of n tests is about √n times quieter than one of them."""
        return statistics.median(row.quiet_pct for row in self.rows) / math.sqrt(len(self.rows))


@dataclass(frozen=True)
class HeatTable:
    """One view of one line."""

    view: View
    versions: tuple[str, ...]
    base: int
    groups: tuple[Group, ...]
    older: int = 0
    """Releases left out at the old end, because the page would grow too large."""

    @property
    def rows(self) -> list[Row]:
        return [row for group in self.groups for row in group.rows]


def marks_of(findings: Iterable[Finding]) -> dict[str, dict[str, Mark]]:
    """By series id, then version: the changepoints that findings put into series."""
    found: dict[str, dict[str, Mark]] = defaultdict(dict)
    for finding in findings:
        for move in finding.moves:
            mark = Mark(finding.key, move.direction, move.change_pct, finding.tier)
            held = found[move.key.id].get(finding.release)
            if held is None or abs(mark.change_pct) > abs(held.change_pct):
                found[move.key.id][finding.release] = mark
    return dict(found)


def versions_of(series: Iterable[Series]) -> list[str]:
    """Every version of the line that some series has, in the line's order."""
    position = {point.version: point.position for one in series for point in one.points}
    return sorted(position, key=lambda version: (position[version], version))


def default_base(versions: Sequence[str], values: Sequence[Mapping[str, float]]) -> int:
    """Position of the first release that at least half as many tests have as the best-covered release.

    The very first release of a line is often measured on few tests only, and would leave most rows without a base.
    """
    counts = [sum(version in row for row in values) for version in versions]
    enough = max(counts, default=0) / 2
    return next((position for position, count in enumerate(counts) if count >= enough and count), 0)


def heat_table(
    series: Sequence[Series],
    view: View,
    *,
    marks: Mapping[str, Mapping[str, Mark]] | None = None,
    base: str | None = None,
    order: Mapping[str, int] | None = None,
    quiet: Callable[[Series], float] = lambda _: DEFAULT_SMALLEST_PCT,
    max_cells: int | None = None,
) -> HeatTable:
    """The table of `view` over the series of one line.

    `base` is a version, by default `default_base`; `order` puts tests in the order of their benchmark where it is
    known (others follow by name); `max_cells` drops the oldest releases of a line too long for one page.
    """
    marks, order = marks or {}, order or {}
    picked = pick(series, view)
    versions = versions_of(picked)
    older = 0
    if max_cells is not None and picked and len(versions) * len(picked) > max_cells:
        older = len(versions) - max(2, max_cells // len(picked))
        versions = versions[older:]
    by_test = [(one, levels(one)) for one in picked]
    at = versions.index(base) if base in versions else default_base(versions, [values for _, values in by_test])
    rows = [
        _row(one, values, versions, at, marks.get(one.key.id, {}), quiet(one))
        for one, values in by_test
        if any(version in values for version in versions)
    ]
    in_order = by_catalogue(order)
    rows.sort(key=lambda row: in_order(row.test))
    names = list(dict.fromkeys(row.group for row in sorted(rows, key=lambda row: _group_order(row.group))))
    groups = tuple(group(name, [row for row in rows if row.group == name], at) for name in names)
    return HeatTable(view, tuple(versions), at, groups, older)


def _group_order(group: str) -> tuple[bool, Natural]:
    """By name, which is how the field numbers its groups; tests without a group last."""
    return group == UNGROUPED, natural(group)


def _row(
    one: Series,
    values: Mapping[str, float],
    versions: Sequence[str],
    base: int,
    marks: Mapping[str, Mark],
    quiet_pct: float,
) -> Row:
    cells = tuple(values.get(version) for version in versions)
    own = base if cells[base] is not None else next(i for i, cell in enumerate(cells) if cell is not None)
    return Row(
        test=one.key.test,
        group=one.group or UNGROUPED,
        metric=one.key.metric,
        unit=one.unit,
        better=one.better,
        values=cells,
        base=own,
        marks={position: marks[version] for position, version in enumerate(versions) if version in marks},
        quiet_pct=quiet_pct,
    )


def group(name: str, rows: Sequence[Row], base: int) -> Group:
    """Median over the tests that have the table's base, finite values only; None where no test has the release."""
    columns = list(zip(*(row.ratios() for row in rows if row.base == base), strict=True))
    width = len(rows[0].values)
    medians: list[float | None] = [None] * width
    for position, column in enumerate(columns):
        known = [ratio for ratio in column if ratio is not None and math.isfinite(ratio)]
        medians[position] = statistics.median(known) if known else None
    return Group(name, rows[0].better, tuple(rows), tuple(medians))


def overall(table: HeatTable) -> Group | None:
    """All rows as one group: its medians are the line's summary row; None for an empty table."""
    return group(UNGROUPED, table.rows, table.base) if table.rows else None
