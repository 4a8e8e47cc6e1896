"""Releases of any DBMS and line side by side, as the posts that compare them print it. Pure.

    pointdrop report table relative --releases "mysql 9.7.4,mariadb 11.4.5"
    pointdrop report table insert --releases "postgres 18.6,mysql 9.7.4,myrocks 10.11.19"

The first one is the base. What is compared was measured on one server with one benchmark; sessions may differ, so small
differences are not to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from history.model import MAJORS, Series
from presentation.addresses import LineKey
from presentation.ordering import step_order
from presentation.relative import relative, summarize
from reports.errors import NothingToShow
from reports.heat import UNGROUPED
from reports.insert import StepCell, insert_summary, is_insert
from reports.pages.compare import gather, summary_rows
from reports.pages.configs import Numbers, Subject, Test
from reports.settings import ReportSettings
from reports.table import Table, Value
from reports.views import VIEWS, View

Lines = Mapping[LineKey, tuple[Series, ...]]
#: Config that a release means when its name says none.
CONFIG = "default"
SUMMARY = ("average", "median", "min", "max", "stddev")


def across_tables(
    name: str, lines: Lines, releases: Sequence[str], settings: ReportSettings, view: str = ""
) -> list[Table]:
    """The tables `relative`, `groups` or `insert` of `releases`, each `DBMS VERSION` or `DBMS VERSION CONFIG`.

    NothingToShow for another table, and for a release that was not measured, with those that were.
    """
    if name not in KINDS:
        raise NothingToShow(f"--releases goes with the tables {', '.join(KINDS)}, not with {name}")
    found: list[Table] = []
    places = sorted({(key.server, key.benchmark) for key in lines})
    known: dict[str, None] = {}
    for server, benchmark in places:
        here = [
            (key, series)
            for key, series in lines.items()
            if (key.server, key.benchmark) == (server, benchmark) and key.line != MAJORS
        ]
        by_name = _subjects(here)
        known |= dict.fromkeys(by_name)
        chosen = [by_name[release] for release in map(_full, releases) if release in by_name]
        if len(chosen) == len(releases):
            found += KINDS[name](f"{server} · {benchmark}", here, chosen, settings, view)
    if not found:
        raise NothingToShow(
            f"no server and benchmark has {name} figures of all of {', '.join(releases)}; "
            f"measured are: {', '.join(known) or 'none'}"
        )
    return found


def _full(release: str) -> str:
    """`mysql 9.7.4` is `mysql 9.7.4 default`."""
    parts = release.split()
    return " ".join(parts if len(parts) > 2 else [*parts, CONFIG])


def _subjects(lines: Sequence[tuple[LineKey, tuple[Series, ...]]]) -> dict[str, Subject]:
    found: dict[str, Subject] = {}
    for key, series in lines:
        for one in series:
            for point in one.points:
                subject = Subject(key.dbms, key.line, point.version, key.config)
                found.setdefault(subject.label, subject)
    return found


def short_name(one: Subject) -> str:
    """The release, and its config where that says something."""
    return f"{one.dbms} {one.version}" + ("" if one.config == CONFIG else f" {one.config}")


Place = Sequence[tuple[LineKey, tuple[Series, ...]]]


def _ratios(
    here: Place, chosen: Sequence[Subject], settings: ReportSettings, wanted: str
) -> tuple[View, dict[Subject, dict[str, float]], list[Test]] | None:
    """The view with most tests that all have (or the one wanted), and each one's values relative to the first's."""
    numbers: Numbers
    numbers, tests = gather(here, settings)
    views = [view for view in VIEWS if view.id in numbers and wanted in ("", view.id)]
    shared = {
        view.id: [test for test in tests[view.id] if all(test.name in numbers[view.id].get(one, {}) for one in chosen)]
        for view in views
    }
    views = sorted((view for view in views if shared[view.id]), key=lambda view: -len(shared[view.id]))
    if not views:
        return None
    view = views[0]
    known = numbers[view.id]
    ratios = {
        one: {test.name: relative(known[one][test.name], known[chosen[0]][test.name]) for test in shared[view.id]}
        for one in chosen
    }
    return view, ratios, shared[view.id]


def _relative(where: str, here: Place, chosen: Sequence[Subject], settings: ReportSettings, wanted: str) -> list[Table]:
    """Tests x releases, each group followed by its medians."""
    made = _ratios(here, chosen, settings, wanted)
    if made is None:
        return []
    view, ratios, tests = made
    rows: list[tuple[Value, ...]] = []
    groups = dict.fromkeys(test.group for test in tests)
    for group in groups:
        members = [test.name for test in tests if test.group == group]
        rows += [(name, *(ratios[one][name] for one in chosen)) for name in members]
        rows.append(
            (f"median, {group}", *(summarize([ratios[one][name] for name in members]).median for one in chosen))
        )
    title = f"{where}: {view.note.split(':')[0]}, base {short_name(chosen[0])}"
    return [Table(title, ("test", *map(short_name, chosen)), tuple(rows), view.decimals)]


def _groups(where: str, here: Place, chosen: Sequence[Subject], settings: ReportSettings, wanted: str) -> list[Table]:
    """The field's five rows for each release but the base, a column a group."""
    made = _ratios(here, chosen, settings, wanted)
    if made is None:
        return []
    view, ratios, tests = made
    found = []
    for one in chosen[1:]:
        columns = summary_rows(
            [{"group": test.group or UNGROUPED, "ratio": ratios[one][test.name]} for test in tests], view.decimals
        )
        rows = tuple((name, *(column["figures"][at] for column in columns)) for at, name in enumerate(SUMMARY))
        title = f"{where}: {view.title}, {short_name(one)} relative to {short_name(chosen[0])}"
        found.append(Table(title, ("", *(column["group"] for column in columns)), rows))
    return found


def marked(value: float | None, cell: StepCell) -> Value:
    """The value, or how far a void step got."""
    return f"SLA {cell.sla_share:.0%}" if cell.void and cell.sla_share is not None else value


def _insert(where: str, here: Place, chosen: Sequence[Subject], settings: ReportSettings, wanted: str) -> list[Table]:
    """Throughput of each step, then relative to the first release, with SLA marks."""
    if not is_insert(here[0][0].benchmark):
        return []
    cells: dict[Subject, dict[str, StepCell]] = {}
    for key, series in here:
        made = insert_summary(series)
        for version, found in zip(made.versions, made.rows, strict=True):
            cells[Subject(key.dbms, key.line, version, key.config)] = dict(zip(made.steps, found, strict=True))
    steps = sorted({step for one in chosen for step in cells.get(one, {})}, key=step_order)
    nothing = StepCell(None, None, None)
    absolute: list[tuple[Value, ...]] = []
    ratios: list[tuple[Value, ...]] = []
    for one in chosen:
        row = [cells.get(one, {}).get(step, nothing) for step in steps]
        base = [cells.get(chosen[0], {}).get(step, nothing) for step in steps]
        absolute.append((short_name(one), *(marked(cell.value, cell) for cell in row)))
        ratios.append(
            (
                short_name(one),
                *(
                    marked(
                        None
                        if first.void or cell.value is None or first.value is None
                        else relative(cell.value, first.value),
                        cell,
                    )
                    for cell, first in zip(row, base, strict=True)
                ),
            )
        )
    head = ("release", *steps)
    return [
        Table(f"{where}: throughput (l.x in indexed rows/s)", head, tuple(absolute), None),
        Table(f"{where}: relative to {short_name(chosen[0])}", head, tuple(ratios)),
    ]


KINDS: dict[str, Callable[[str, Place, Sequence[Subject], ReportSettings, str], list[Table]]] = {
    "relative": _relative,
    "groups": _groups,
    "insert": _insert,
}
