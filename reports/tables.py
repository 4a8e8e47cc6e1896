"""The tables of the site for the terminal, for Markdown and for files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from history.model import Series
from presentation.addresses import LineKey
from presentation.ordering import by_catalogue
from presentation.relative import colour_step, levels
from reports import table as writers
from reports.across import across_tables, marked
from reports.errors import NothingToShow
from reports.heat import UNGROUPED, HeatTable, heat_table, overall, versions_of
from reports.insert import insert_summary, is_insert
from reports.matrix import config_matrix
from reports.pages.compare import summary_rows
from reports.pages.line import quiet_pct
from reports.peroperation import of_series
from reports.settings import ReportSettings
from reports.snapshot import grouped_by_line
from reports.table import Table, Value
from reports.views import VIEWS, View, offered, pick

if TYPE_CHECKING:
    from history.store import Store


#: Lines that an error names.
MOST_NAMED = 8


@dataclass(frozen=True)
class Selection:
    """What to show; None or empty is everything."""

    dbms: str | None = None
    line: str | None = None
    server: str | None = None
    config: str | None = None
    benchmark: str | None = None
    test: str | None = None
    view: str = ""
    base: str = ""
    releases: tuple[str, ...] = ()
    """`DBMS VERSION[ CONFIG]` of any lines, to be shown side by side."""


Lines = dict[LineKey, tuple[Series, ...]]


def tables(store: Store, name: str, wanted: Selection, settings: ReportSettings) -> list[Table]:
    """The tables called `name` (`relative`, `groups`, `per-operation`, `configs`, `insert`) of the lines selected.

    NothingToShow when the history has nothing of that selection, with what it has.
    """
    found = store.series(
        dbms=wanted.dbms,
        line=wanted.line,
        server=wanted.server,
        config=wanted.config,
        benchmark=wanted.benchmark,
        test=wanted.test,
    )
    lines = grouped_by_line(found)
    if wanted.releases and wanted.base:
        raise NothingToShow(f"the first of --releases is the base; put {wanted.base} there and leave --base out")
    if wanted.releases:
        return across_tables(name, lines, wanted.releases, settings, wanted.view)
    made = KINDS[name](lines, wanted, settings) if lines else []
    if made:
        return made
    if lines and wanted.base:
        what, there = _bases(name, lines)
        raise NothingToShow(f"no {what} {wanted.base!r} in this selection; it has {', '.join(there)}")
    raise NothingToShow(f"the history has no {name} table for this selection. It holds: {_held(store)}")


def _bases(name: str, lines: Lines) -> tuple[str, list[str]]:
    """What a table can be relative to, in the order of the lines."""
    if name == "configs":
        return "config", list(dict.fromkeys(key.config for key in lines))
    return "release", list(dict.fromkeys(version for series in lines.values() for version in versions_of(series)))


def _held(store: Store) -> str:
    """What could be asked for, as much of it as one can read."""
    known = sorted({" ".join(LineKey(*line)) for line in store.lines()})
    if not known:
        return "nothing; run pointdrop nightly"
    more = f" and {len(known) - MOST_NAMED} more: pointdrop history query lines" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more


def written(found: Sequence[Table], format: str, *, colour: bool = False) -> str:
    """As `text`, `markdown`, `csv` or `json`."""
    if format == "text":
        return writers.terminal(found, colour=colour)
    return {"markdown": writers.markdown, "csv": writers.csv, "json": writers.json}[format](found)


def _view(series: Sequence[Series], wanted: Selection) -> View | None:
    views = offered(series)
    if not wanted.view:
        return views[0] if views else None
    if wanted.view not in {view.id for view in VIEWS}:
        raise NothingToShow(f"no metric {wanted.view!r}; known are {', '.join(view.id for view in VIEWS)}")
    return next((view for view in views if view.id == wanted.view), None)


def _heat(series: Sequence[Series], wanted: Selection, settings: ReportSettings) -> HeatTable | None:
    view = _view(series, wanted)
    if view is None:
        return None
    made = heat_table(
        series, view, base=wanted.base or None, order=settings.order, quiet=lambda one: quiet_pct(one, settings)
    )
    return None if wanted.base and wanted.base not in made.versions else made


def relative_tables(lines: Lines, wanted: Selection, settings: ReportSettings) -> list[Table]:
    """Tests x releases, groups with their medians."""
    found = []
    for key, series in lines.items():
        heat = _heat(series, wanted, settings)
        if heat is None:
            continue
        rows: list[tuple[Value, ...]] = []
        styles: list[tuple[str, ...]] = []
        whole = overall(heat)
        for group in heat.groups:
            for row in group.rows:
                ratios = row.ratios()
                rows.append((row.test, *ratios))
                styles.append(("", *(_style(ratio, row.better, row.quiet_pct) for ratio in ratios)))
            rows.append((f"median, {group.name}", *group.medians))
            styles.append(("", *(_style(ratio, group.better, group.quiet_pct) for ratio in group.medians)))
        if whole and len(heat.groups) > 1:
            rows.append((f"median, {UNGROUPED}", *whole.medians))
            styles.append(("", *(_style(ratio, whole.better, whole.quiet_pct) for ratio in whole.medians)))
        title = f"{key.title}, {key.where}: {heat.view.note.split(':')[0]}, base {heat.versions[heat.base]}"
        found.append(Table(title, ("test", *heat.versions), tuple(rows), heat.view.decimals, tuple(styles)))
    return found


def _style(ratio: float | None, better: str, quiet: float) -> str:
    step = 0 if ratio is None else colour_step(ratio, "higher" if better == "higher" else "lower", quiet)
    return "worse" if step < 0 else "better" if step > 0 else ""


def group_tables(lines: Lines, wanted: Selection, settings: ReportSettings) -> list[Table]:
    """The field's five rows for the newest release against the base, a column a group."""
    found = []
    for key, series in lines.items():
        heat = _heat(series, wanted, settings)
        if heat is None or len(heat.versions) < 2:
            continue
        rows = [{"group": row.group, "ratio": row.ratios()[-1]} for row in heat.rows if row.base == heat.base]
        columns = summary_rows(rows, heat.view.decimals)
        if not columns:
            continue
        names = ("average", "median", "min", "max", "stddev")
        cells = tuple((name, *(column["figures"][at] for column in columns)) for at, name in enumerate(names))
        title = (
            f"{key.title}, {key.where}: {heat.view.title}, {heat.versions[-1]} relative to {heat.versions[heat.base]}"
        )
        found.append(Table(title, ("", *(column["group"] for column in columns)), cells))
    return found


def per_operation_tables(lines: Lines, wanted: Selection, settings: ReportSettings) -> list[Table]:
    """Two tables a test, absolute and relative to the first result."""
    found = []
    for key, series in lines.items():
        by_test: dict[str, list[Series]] = {}
        for one in series:
            by_test.setdefault(one.key.test, []).append(one)
        for test in sorted(by_test, key=by_catalogue(settings.order)):
            position = {point.version: point.position for one in by_test[test] for point in one.points}
            made = of_series(by_test[test], sorted(position, key=lambda version: position[version]))
            head = (*made.metrics, "dbms")
            names = [f"{key.dbms} {version}" for version in made.names]
            where = f"{test}, {key.title}, {key.where}"
            absolute = tuple((*row, name) for row, name in zip(made.absolute, names, strict=True))
            found.append(Table(f"{where}: absolute", head, absolute))
            if len(names) > 1:
                ratios = tuple((*row, name) for row, name in zip(made.relative, names[1:], strict=True))
                found.append(Table(f"{where}: relative to first result", head, ratios))
    return found


def config_tables(lines: Lines, wanted: Selection, settings: ReportSettings) -> list[Table]:
    """Configs x tests for each release that has more than one config, absolute and relative to the first."""
    by_place: dict[tuple[str, str, str, str], dict[str, dict[str, float]]] = {}
    tests: dict[str, None] = {}
    for key, series in lines.items():
        view = _view(series, wanted)
        for one in pick(series, view) if view else ():
            tests.setdefault(one.key.test)
            for version, value in levels(one).items():
                place = (key.dbms, version, key.server, key.benchmark)
                by_place.setdefault(place, {}).setdefault(key.config, {})[one.key.test] = value
    names = sorted(tests, key=by_catalogue(settings.order))
    found = []
    for (dbms, version, server, benchmark), values in by_place.items():
        if len(values) < 2 or (wanted.base and wanted.base not in values):
            continue
        rows = config_matrix(values, names, wanted.base or None)
        title = f"{dbms} {version}, {server} · {benchmark}"
        base = wanted.base or rows[0].config
        found.append(Table(title, ("config", *names), tuple((row.config, *row.absolute) for row in rows), None))
        relative = tuple((row.config, *row.relative) for row in rows)
        found.append(Table(f"{title}: relative to {base}", ("config", *names), relative))
    return found


def insert_tables(lines: Lines, wanted: Selection, settings: ReportSettings) -> list[Table]:
    """Throughput of each step, then relative to the base; a step that missed its insert rate says so."""
    found = []
    for key, series in lines.items():
        if not is_insert(key.benchmark):
            continue
        made = insert_summary(series, wanted.base or None)
        if not made.steps or wanted.base not in ("", made.base):
            continue
        absolute = tuple(
            (version, *(marked(cell.value, cell) for cell in row))
            for version, row in zip(made.versions, made.rows, strict=True)
        )
        ratios = tuple(
            (version, *(marked(cell.ratio, cell) for cell in row))
            for version, row in zip(made.versions, made.rows, strict=True)
        )
        where = f"{key.title}, {key.where}"
        found.append(Table(f"{where}: throughput (l.x in indexed rows/s)", ("release", *made.steps), absolute, None))
        found.append(Table(f"{where}: relative to {made.base}", ("release", *made.steps), ratios))
    return found


KINDS: dict[str, Callable[[Lines, Selection, ReportSettings], list[Table]]] = {
    "relative": relative_tables,
    "groups": group_tables,
    "per-operation": per_operation_tables,
    "configs": config_tables,
    "insert": insert_tables,
}
