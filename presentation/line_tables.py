"""The tables that people ask for by name, of lines or of releases side by side. Pure.

`relative` has tests x releases with the medians of their groups; `groups` average, median, min, max and stddev of each
group; `per-operation` the field's table of each test; `configs` the config matrix; `insert` the Insert Benchmark with
SLA marks. Lines come as `LineKey -> series`, tests in the order that `order` gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from history.errors import UnknownSeries
from history.metrics import MetricRegistry
from history.model import Better, Series
from presentation.addresses import LineKey
from presentation.comparison import (
    DEFAULT_CONFIG,
    SUMMARY,
    Comparison,
    Lines,
    Subject,
    by_place,
    comparisons,
    config_matrices,
    subjects_of,
    summary_frame,
)
from presentation.heat import HeatTable, heat_table
from presentation.insert import InsertSummary, insert_summary, is_insert
from presentation.operations import operations_frame, relative_frame
from presentation.ordering import by_catalogue, step_order
from presentation.relative import colour_step, versions_of
from presentation.tables import Table
from presentation.views import View, named_view, offered_views, views

if TYPE_CHECKING:
    from pandas import DataFrame
    from pandas import Series as Column


@dataclass(frozen=True)
class Selection:
    """How lines are looked at."""

    metrics: MetricRegistry
    order: Mapping[str, int]
    view: str = ""
    """A view, or the name of a metric; empty takes the fullest."""
    base: str = ""
    """The release, or the config, that the others are relative to."""
    releases: tuple[str, ...] = ()
    """`DBMS VERSION[ CONFIG]` of any lines, to be shown side by side, the base first."""

    @property
    def views(self) -> list[View]:
        """The one that is wanted, or all. UnknownSeries lists what could be."""
        return [named_view(self.view, self.metrics)] if self.view else views(self.metrics)

    def fullest(self, series: Sequence[Series]) -> View | None:
        """Of those, the one with most figures in these series; None where they have none."""
        return next(iter(offered_views(series, self.views)), None)


def line_tables(name: str, lines: Lines, selection: Selection) -> list[Table]:
    """The tables called `name` of all lines that have one. UnknownSeries says what there is instead."""
    if selection.releases and selection.base:
        raise UnknownSeries(f"the first of --releases is the base; put {selection.base} there and leave --base out")
    if selection.releases:
        return _side_by_side(name, lines, selection)
    tables = (
        _config_tables(lines, selection)
        if name == "configs"
        else [table for key, series in lines.items() for table in LINE_TABLES[name](key, series, selection)]
    )
    if not tables and lines and selection.base:
        bases = dict.fromkeys(
            [key.config for key in lines]
            if name == "configs"
            else [version for series in lines.values() for version in versions_of(series)]
        )
        what = "config" if name == "configs" else "release"
        raise UnknownSeries(f"no {what} {selection.base!r} in this selection; it has {', '.join(bases)}")
    return tables


def _relative_tables(key: LineKey, series: Sequence[Series], selection: Selection) -> list[Table]:
    heat = _heat(series, selection)
    return [_relative_table(f"{key.title}, {key.where}", heat, heat.base)] if heat else []


def _heat(series: Sequence[Series], selection: Selection) -> HeatTable | None:
    """None for a line without the view or the base that is wanted."""
    view = selection.fullest(series)
    if view is None:
        return None
    heat = heat_table(series, view, selection.metrics, base=selection.base, order=selection.order)
    return heat if selection.base in ("", heat.base) else None


def _relative_table(where: str, heat: HeatTable, base: str, *, overall: bool = True) -> Table:
    """Tests by group, each followed by its medians; `overall` adds those of all tests."""
    import pandas as pd

    rows: list[tuple[str, list[float], Better, float]] = []
    for group in heat.groups:
        rows += [(row["test"], row["ratios"], row["better"], row["quiet_pct"]) for row in group.rows]
        rows.append((f"median, {group.name}", group.medians, group.better, group.quiet_pct))
    if overall and len(heat.groups) > 1:
        whole = heat.overall
        rows.append((f"median, {whole.name}", whole.medians, whole.better, whole.quiet_pct))
    names = pd.Index([name for name, *_ in rows], name="test")
    frame = pd.DataFrame([ratios for _, ratios, *_ in rows], index=names, columns=heat.versions)
    styles = [[_style(colour_step(ratio, better, quiet)) for ratio in ratios] for _, ratios, better, quiet in rows]
    return Table(f"{where}: {heat.view.relative}, base {base}", frame, heat.view.decimals, pd.DataFrame(styles))


def _style(colour: int) -> str:
    return "worse" if colour < 0 else "better" if colour > 0 else ""


def _group_tables(key: LineKey, series: Sequence[Series], selection: Selection) -> list[Table]:
    """The newest release against the base."""
    heat = _heat(series, selection)
    if heat is None or len(heat.versions) < 2:
        return []
    ratios = heat.ratios.loc[heat.tests["base"] == heat.base, heat.versions[-1]]
    title = f"{key.title}, {key.where}: {heat.view.title}, {heat.versions[-1]} relative to {heat.base}"
    return [_group_table(title, ratios, heat.view)] if ratios.notna().any() else []


def _group_table(title: str, ratios: Column, view: View) -> Table:
    """A row a statistic, a column a group."""
    return Table(title, summary_frame(ratios)[list(SUMMARY)].T.rename_axis(""), view.decimals)


def _operation_tables(key: LineKey, series: Sequence[Series], selection: Selection) -> list[Table]:
    """Two of each test, absolute and relative to the first result."""
    by_test: dict[str, list[Series]] = {}
    for member in series:
        by_test.setdefault(member.key.test, []).append(member)
    tables = []
    for test in sorted(by_test, key=by_catalogue(selection.order)):
        frame = operations_frame(by_test[test], versions_of(by_test[test]), selection.metrics)
        if frame.empty:
            continue
        frame = frame.rename(lambda version: f"{key.dbms} {version}").rename_axis("dbms")
        where = f"{test}, {key.title}, {key.where}"
        tables.append(Table(f"{where}: absolute", frame, None, names_last=True))
        if len(frame) > 1:
            relative = relative_frame(frame).iloc[1:]
            tables.append(Table(f"{where}: relative to first result", relative, names_last=True))
    return tables


def _config_tables(lines: Lines, selection: Selection) -> list[Table]:
    """Of each release that has several configs, absolute and relative to one of them."""
    tables = []
    for (server, benchmark), there in by_place(lines).items():
        view = selection.fullest([member for series in there.values() for member in series])
        compared = _compared(there, [view] if view else [], selection)
        matrices = config_matrices(compared[0]) if compared else {}
        for release, matrix in matrices.items():
            base = selection.base or matrix.index[0]
            if base in matrix.index:
                title = f"{release}, {server} · {benchmark}"
                tables.append(Table(title, matrix, None))
                tables.append(Table(f"{title}: relative to {base}", relative_frame(matrix, base)))
    return tables


def _insert_tables(key: LineKey, series: Sequence[Series], selection: Selection) -> list[Table]:
    summary = insert_summary(series, selection.metrics, selection.base) if is_insert(key.benchmark) else None
    if summary is None or selection.base not in ("", summary.base):
        return []
    return _step_tables(f"{key.title}, {key.where}", summary)


def _step_tables(where: str, summary: InsertSummary) -> list[Table]:
    """Throughput of each step, then relative to the base; a step that missed its insert rate says so."""
    absolute, ratios = (summary.marked(values) for values in (summary.throughput, summary.ratios))
    return [
        Table(f"{where}: throughput (l.x in indexed rows/s)", absolute.rename_axis("release"), None),
        Table(f"{where}: relative to {summary.base}", ratios.rename_axis("release")),
    ]


def _side_by_side(name: str, lines: Lines, selection: Selection) -> list[Table]:
    """Releases of any lines, wherever one server measured all of them with one benchmark."""
    if name not in SIDE_BY_SIDE:
        raise UnknownSeries(f"--releases goes with the tables {', '.join(SIDE_BY_SIDE)}, not with {name}")
    words = [release.split() for release in selection.releases]
    wanted = [" ".join(name if len(name) > 2 else [*name, DEFAULT_CONFIG]) for name in words]
    tables: list[Table] = []
    measured: dict[str, None] = {}
    for (server, benchmark), there in by_place(lines).items():
        by_label = {subject.label: subject for subject in subjects_of(there, selection.views)}
        measured |= dict.fromkeys(by_label)
        chosen = [by_label[label] for label in wanted if label in by_label]
        if len(chosen) == len(wanted):
            tables += SIDE_BY_SIDE[name](f"{server} · {benchmark}", there, chosen, selection)
    if not tables:
        raise UnknownSeries(
            f"no server and benchmark has {name} figures of all of {', '.join(selection.releases)}; "
            f"measured are: {', '.join(measured) or 'none'}"
        )
    return tables


def _compared(lines: Lines, views: Sequence[View], selection: Selection) -> list[Comparison]:
    return comparisons(lines, subjects_of(lines, views), views, selection.metrics, selection.order)


def _shared(lines: Lines, chosen: Sequence[Subject], selection: Selection) -> HeatTable | None:
    """The tests that all of them have, in the view with most (or the one wanted), as a table of releases."""
    shared = [(each, each.levels[list(chosen)].dropna()) for each in _compared(lines, selection.views, selection)]
    if not any(len(levels) for _, levels in shared):
        return None
    comparison, levels = max(shared, key=lambda pair: len(pair[1]))
    names = [subject.short for subject in chosen]
    levels.columns = names
    # Of other sessions: small differences are not to be trusted, so none is marked.
    tests = comparison.tests.loc[levels.index].assign(base=names[0], quiet_pct=float("inf"))
    return HeatTable(comparison.view, levels, tests, names[0])


def _relative_side_by_side(where: str, lines: Lines, chosen: Sequence[Subject], selection: Selection) -> list[Table]:
    heat = _shared(lines, chosen, selection)
    return [_relative_table(where, heat, heat.base, overall=False)] if heat else []


def _groups_side_by_side(where: str, lines: Lines, chosen: Sequence[Subject], selection: Selection) -> list[Table]:
    """Each release but the base."""
    heat = _shared(lines, chosen, selection)
    if heat is None:
        return []
    return [
        _group_table(f"{where}: {heat.view.title}, {name} relative to {heat.base}", heat.ratios[name], heat.view)
        for name in heat.versions[1:]
    ]


def _insert_side_by_side(where: str, lines: Lines, chosen: Sequence[Subject], selection: Selection) -> list[Table]:
    import pandas as pd

    summaries = {
        key: summary
        for key, series in lines.items()
        if is_insert(key.benchmark) and (summary := insert_summary(series, selection.metrics))
    }
    rows = [
        (subject, summary)
        for subject in chosen
        for key, summary in summaries.items()
        if (key.dbms, key.line, key.config) == (subject.dbms, subject.line, subject.config)
        and subject.version in summary.throughput.index
    ]
    if len(rows) < len(chosen):
        return []

    def together(frames: Sequence[DataFrame]) -> DataFrame:
        table = pd.concat([frame.loc[[subject.version]] for (subject, _), frame in zip(rows, frames, strict=True)])
        table.index = [subject.short for subject in chosen]
        steps = sorted(map(str, table.columns), key=step_order)
        return table[steps]

    throughput = together([summary.throughput for _, summary in rows])
    shares = together([summary.shares for _, summary in rows])
    return _step_tables(where, InsertSummary(throughput, shares, chosen[0].short))


LINE_TABLES: dict[str, Callable[[LineKey, Sequence[Series], Selection], list[Table]]] = {
    "relative": _relative_tables,
    "groups": _group_tables,
    "per-operation": _operation_tables,
    "insert": _insert_tables,
}
SIDE_BY_SIDE: dict[str, Callable[[str, Lines, Sequence[Subject], Selection], list[Table]]] = {
    "relative": _relative_side_by_side,
    "groups": _groups_side_by_side,
    "insert": _insert_side_by_side,
}
