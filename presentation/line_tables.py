"""The tables that people ask for by name, of lines or of releases side by side. Pure.

`relative` has tests x releases with the medians of their groups; `groups` average, median, min, max and stddev of each
group; `per-operation` the field's table of each test; `configs` the config matrix; `insert` the Insert Benchmark with
SLA marks. Lines come as `LineKey -> series`, tests in the order that `order` gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from history.errors import UnknownSeries
from history.metrics import MetricRegistry
from history.model import Better, Series
from presentation.comparison import (
    DEFAULT_CONFIG,
    SUMMARY,
    Lines,
    Subject,
    by_place,
    comparisons,
    config_matrices,
    subjects_of,
    summary_frame,
)
from presentation.heat import HeatTable, heat_table
from presentation.insert import InsertSummary, insert_summary, is_insert, together
from presentation.operations import operations_frame, relative_frame
from presentation.ordering import by_catalogue
from presentation.relative import colour_step, versions_of
from presentation.tables import Table
from presentation.views import View, named_view, offered_views, views

if TYPE_CHECKING:
    pass


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
    if selection.releases and name not in SIDE_BY_SIDE:
        raise UnknownSeries(f"--releases goes with the tables {', '.join(SIDE_BY_SIDE)}, not with {name}")
    tables = list(TABLES[name](lines, selection))
    if not tables and selection.releases:
        measured = [subject.label for place in by_place(lines).values() for subject in _subjects(place, selection)]
        raise UnknownSeries(
            f"no server and benchmark has {name} figures of all of {', '.join(selection.releases)}; "
            f"measured are: {', '.join(measured) or 'none'}"
        )
    if not tables and lines and selection.base:
        configs = name == "configs"
        bases = (
            [key.config for key in lines]
            if configs
            else [version for series in lines.values() for version in versions_of(series)]
        )
        raise UnknownSeries(
            f"no {'config' if configs else 'release'} {selection.base!r} in this selection; "
            f"it has {', '.join(dict.fromkeys(bases))}"
        )
    return tables


def _relative_tables(lines: Lines, selection: Selection) -> Iterator[Table]:
    """Tests by group, each followed by its medians; of a line also the medians of all tests."""
    import pandas as pd

    for where, heat in _heat_tables(lines, selection):
        rows: list[tuple[str, list[float], Better, float]] = []
        for group in heat.groups:
            rows += [(row["test"], row["ratios"], row["better"], row["quiet_pct"]) for row in group.rows]
            rows.append((f"median, {group.name}", group.medians, group.better, group.quiet_pct))
        if len(heat.groups) > 1 and not selection.releases:
            whole = heat.overall
            rows.append((f"median, {whole.name}", whole.medians, whole.better, whole.quiet_pct))
        names = pd.Index([name for name, *_ in rows], name="test")
        frame = pd.DataFrame([ratios for _, ratios, *_ in rows], index=names, columns=heat.versions)
        styles = [[_style(colour_step(ratio, better, quiet)) for ratio in ratios] for _, ratios, better, quiet in rows]
        title = f"{where}: {heat.view.relative}, base {heat.base}"
        yield Table(title, frame, heat.view.decimals, pd.DataFrame(styles))


def _style(colour: int) -> str:
    return "worse" if colour < 0 else "better" if colour > 0 else ""


def _group_tables(lines: Lines, selection: Selection) -> Iterator[Table]:
    """A row a statistic, a column a group: the newest release of a line, or each that is asked for, to the base."""
    for where, heat in _heat_tables(lines, selection):
        comparable = heat.ratios[heat.tests["base"] == heat.base]
        for version in heat.versions[1:] if selection.releases else heat.versions[1:][-1:]:
            summary = summary_frame(comparable[version])
            if len(summary):
                title = f"{where}: {heat.view.title}, {version} relative to {heat.base}"
                yield Table(title, summary[list(SUMMARY)].T.rename_axis(""), heat.view.decimals)


def _heat_tables(lines: Lines, selection: Selection) -> Iterator[tuple[str, HeatTable]]:
    """Of each line that has the view and the base wanted, or of releases side by side; and where they are of."""
    if selection.releases:
        for where, place, chosen in _places(lines, selection):
            heat = _shared(place, chosen, selection)
            if heat:
                yield where, heat
        return
    for key, series in lines.items():
        view = selection.fullest(series)
        if view:
            heat = heat_table(series, view, selection.metrics, base=selection.base, order=selection.order)
            if selection.base in ("", heat.base):
                yield f"{key.title}, {key.where}", heat


def _places(lines: Lines, selection: Selection) -> Iterator[tuple[str, Lines, list[Subject]]]:
    """Wherever one server measured all of the releases with one benchmark."""
    words = [release.split() for release in selection.releases]
    wanted = [" ".join(name if len(name) > 2 else [*name, DEFAULT_CONFIG]) for name in words]
    for (server, benchmark), place in by_place(lines).items():
        by_label = {subject.label: subject for subject in _subjects(place, selection)}
        if by_label.keys() >= set(wanted):
            yield f"{server} · {benchmark}", place, [by_label[label] for label in wanted]


def _subjects(lines: Lines, selection: Selection) -> list[Subject]:
    return subjects_of(lines, selection.views)


def _shared(lines: Lines, chosen: Sequence[Subject], selection: Selection) -> HeatTable | None:
    """The tests that all of them have, in the view with most (or the one wanted), as a table of releases."""
    compared = comparisons(lines, chosen, selection.views, selection.metrics, selection.order)
    if not compared:
        return None
    comparison = max(compared, key=lambda comparison: len(comparison.levels.dropna()))
    names = [subject.short for subject in chosen]
    levels = comparison.levels.dropna().set_axis(names, axis="columns")
    # Of other sessions: small differences are not to be trusted, so none is marked.
    tests = comparison.tests.loc[levels.index].assign(base=names[0], quiet_pct=float("inf"))
    return HeatTable(comparison.view, levels, tests, names[0]) if len(levels) else None


def _operation_tables(lines: Lines, selection: Selection) -> Iterator[Table]:
    """Two of each test, absolute and relative to the first result."""
    for key, series in lines.items():
        by_test: dict[str, list[Series]] = {}
        for member in series:
            by_test.setdefault(member.key.test, []).append(member)
        for test in sorted(by_test, key=by_catalogue(selection.order)):
            frame = operations_frame(by_test[test], versions_of(by_test[test]), selection.metrics)
            frame = frame.set_axis([f"{key.dbms} {version}" for version in frame.index]).rename_axis("dbms")
            where = f"{test}, {key.title}, {key.where}"
            if len(frame):
                yield Table(f"{where}: absolute", frame, None, names_last=True)
            if len(frame) > 1:
                yield Table(f"{where}: relative to first result", relative_frame(frame).iloc[1:], names_last=True)


def _config_tables(lines: Lines, selection: Selection) -> Iterator[Table]:
    """Of each release that has several configs, absolute and relative to one of them."""
    for (server, benchmark), place in by_place(lines).items():
        view = selection.fullest([member for series in place.values() for member in series])
        views = [view] if view else []
        compared = comparisons(place, subjects_of(place, views), views, selection.metrics, selection.order)
        for release, matrix in config_matrices(compared[0]).items() if compared else ():
            base = selection.base or matrix.index[0]
            if base in matrix.index:
                title = f"{release}, {server} · {benchmark}"
                yield Table(title, matrix, None)
                yield Table(f"{title}: relative to {base}", relative_frame(matrix, base))


def _insert_tables(lines: Lines, selection: Selection) -> Iterator[Table]:
    """Throughput of each step, then relative to the base; a step that missed its insert rate says so."""
    for where, summary in _insert_summaries(lines, selection):
        absolute, ratios = (summary.marked(values) for values in (summary.throughput, summary.ratios))
        yield Table(f"{where}: throughput (l.x in indexed rows/s)", absolute.rename_axis("release"), None)
        yield Table(f"{where}: relative to {summary.base}", ratios.rename_axis("release"))


def _insert_summaries(lines: Lines, selection: Selection) -> Iterator[tuple[str, InsertSummary]]:
    summaries = {
        key: summary
        for key, series in lines.items()
        if is_insert(key.benchmark) and (summary := insert_summary(series, selection.metrics, selection.base))
    }
    if not selection.releases:
        for key, summary in summaries.items():
            if selection.base in ("", summary.base):
                yield f"{key.title}, {key.where}", summary
        return
    for where, place, chosen in _places(lines, selection):
        by_line = {(key.dbms, key.line, key.config): summaries[key] for key in place if key in summaries}
        rows = [(subject.short, subject.version, by_line.get((*subject[:2], subject.config))) for subject in chosen]
        measured = [(name, version, part) for name, version, part in rows if part and version in part.throughput.index]
        if len(measured) == len(chosen):
            yield where, together(measured)


TABLES: dict[str, Callable[[Lines, Selection], Iterator[Table]]] = {
    "relative": _relative_tables,
    "groups": _group_tables,
    "per-operation": _operation_tables,
    "configs": _config_tables,
    "insert": _insert_tables,
}
#: Those that can show releases of any lines.
SIDE_BY_SIDE = ("relative", "groups", "insert")
