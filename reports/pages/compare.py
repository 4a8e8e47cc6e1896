"""The compare page: any two of what one server measured with one benchmark, and its configs as a matrix. Pure.

The page shows one pair as it is written, and its script any other; the numbers of all of them are in the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from history.model import MAJORS, Series
from history.versions import version_key
from presentation import addresses
from presentation.addresses import LineKey
from presentation.number_format import grouped, short
from presentation.ordering import by_catalogue, natural
from presentation.relative import gain, levels, relative, summarize
from reports.charts import height_of
from reports.data import dump, table_csv, table_json
from reports.heat import UNGROUPED
from reports.pages.configs import Numbers, Subject, Test, differences, matrices
from reports.pages.line import cell
from reports.settings import ReportSettings
from reports.snapshot import Snapshot
from reports.views import VIEWS, View, pick

#: Numbers in one page, about 9 bytes each; the oldest releases of each line give way.
MAX_NUMBERS = 50_000
ABSENT = "–"
COLUMNS = ("dbms", "line", "version", "config", "view", "group", "test", "median")


def places(snapshot: Snapshot) -> list[tuple[str, str]]:
    """(server, benchmark) with at least two subjects that a view has numbers of."""
    found: dict[tuple[str, str], set[Subject]] = {}
    for key, series in snapshot.lines.items():
        if key.line != MAJORS:
            here = found.setdefault((key.server, key.benchmark), set())
            here.update(
                Subject(key.dbms, key.line, version, key.config)
                for view in VIEWS
                for one in pick(series, view)
                for version in levels(one)
            )
    return sorted(place for place, subjects in found.items() if len(subjects) > 1)


def series_of(snapshot: Snapshot, server: str, benchmark: str) -> list[tuple[LineKey, tuple[Series, ...]]]:
    return [
        (key, series)
        for key, series in snapshot.lines.items()
        if (key.server, key.benchmark) == (server, benchmark) and key.line != MAJORS
    ]


def gather(
    lines: Sequence[tuple[LineKey, tuple[Series, ...]]], settings: ReportSettings
) -> tuple[Numbers, dict[str, list[Test]]]:
    """Levels by view, subject and test; and the tests of each view in their benchmark's order."""
    numbers: Numbers = {}
    tests: dict[str, dict[str, Test]] = {}
    for key, series in lines:
        for view in VIEWS:
            for one in pick(series, view):
                smallest = settings.metrics[one.key.metric].smallest_change_pct
                tests.setdefault(view.id, {})[one.key.test] = Test(
                    one.key.test, one.group or UNGROUPED, one.better, smallest
                )
                for version, value in levels(one).items():
                    subject = Subject(key.dbms, key.line, version, key.config)
                    numbers.setdefault(view.id, {}).setdefault(subject, {})[one.key.test] = value
    in_order = by_catalogue(settings.order)
    ordered = {
        view: sorted(known.values(), key=lambda test: (natural(test.group), in_order(test.name)))
        for view, known in tests.items()
    }
    return numbers, ordered


def subjects_of(numbers: Numbers, tests: dict[str, list[Test]]) -> list[Subject]:
    """All subjects in the order of their DBMS's versions; the oldest of long lines are left out of a large page."""
    found = sorted(
        {subject for known in numbers.values() for subject in known},
        key=lambda one: (one.dbms, version_key(one.dbms, one.version), one.config),
    )
    room = max(2, MAX_NUMBERS // max(1, sum(len(known) for known in tests.values())))
    while len(found) > room:
        sizes: dict[tuple[str, str, str], int] = {}
        for one in found:
            place = (one.dbms, one.line, one.config)
            sizes[place] = sizes.get(place, 0) + 1
        longest = max(sizes, key=lambda place: (sizes[place], place))
        found.remove(next(one for one in found if (one.dbms, one.line, one.config) == longest))
    return found


def default_pair(subjects: Sequence[Subject], numbers: Numbers) -> tuple[Subject, Subject]:
    """What a reader most likely wants to see first: the two best-measured newest of two DBMSs, else of two lines, else
    two configs of one release, else the newest release and the one before it."""

    def covered(one: Subject) -> int:
        return sum(len(known.get(one, {})) for known in numbers.values())

    newest: dict[tuple[str, str], Subject] = {}
    for one in subjects:
        held = newest.get((one.dbms, one.line))
        if held is None or version_key(one.dbms, one.version) > version_key(held.dbms, held.version):
            newest[(one.dbms, one.line)] = one
    by_dbms = {one.dbms: one for one in newest.values()}
    if len(by_dbms) > 1:
        pair = sorted(by_dbms.values(), key=covered)[-2:]
        return pair[0], pair[1]
    last = subjects[-1]
    twins = [one for one in subjects if one[:3] == last[:3] and one != last]
    if twins:
        return twins[0], last
    older = [one for one in subjects if one.config == last.config and one != last]
    return (older or list(subjects))[-1], last


def pair_rows(a: Subject, b: Subject, view: View, numbers: Numbers, tests: Sequence[Test]) -> list[dict[str, Any]]:
    known = numbers.get(view.id, {})
    base, other = known.get(a, {}), known.get(b, {})
    rows = []
    for test in tests:
        left, right = base.get(test.name), other.get(test.name)
        ratio = None if left is None or right is None else relative(right, left)
        shown = cell(ratio, test.better, view.decimals, test.smallest)
        rows.append(
            {
                "test": test.name,
                "group": test.group,
                "a": ABSENT if left is None else grouped(left),
                "b": ABSENT if right is None else grouped(right),
                "ratio": ratio,
                "cell": shown,
                "better": test.better,
            }
        )
    return rows


def summary_rows(rows: Sequence[dict[str, Any]], decimals: int) -> list[dict[str, Any]]:
    """The field's table: average, median, min, max, stddev of each group."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        if row["ratio"] is not None and math.isfinite(row["ratio"]):
            groups.setdefault(row["group"], []).append(row["ratio"])
    if len(groups) > 1:
        groups[UNGROUPED] = [ratio for ratios in list(groups.values()) for ratio in ratios]
    found = []
    for name, ratios in groups.items():
        one = summarize(ratios)
        figures = (one.average, one.median, one.min, one.max, one.stddev)
        found.append({"group": name, "tests": one.tests, "figures": [f"{figure:.{decimals}f}" for figure in figures]})
    return found


def chart_rows(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = []
    for row in rows:
        if row["ratio"] is not None and math.isfinite(row["ratio"]) and row["ratio"] > 0:
            size = gain(row["ratio"], row["better"])
            kind = "note" if row["cell"].css == "" else "worse" if size < 0 else "better"
            found.append({"test": row["test"], "r": row["ratio"], "one": 1, "kind": kind})
    return {"height": height_of("compare", len(found)), "tests": found}


def compare_context(server: str, benchmark: str, snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `compare.html` shows."""
    numbers, tests = gather(series_of(snapshot, server, benchmark), settings)
    subjects = subjects_of(numbers, tests)
    a, b = default_pair(subjects, numbers)
    views = [view for view in VIEWS if view.id in tests]
    views.sort(key=lambda view: -len(numbers[view.id].get(a, {}).keys() & numbers[view.id].get(b, {}).keys()))
    sections = []
    for view in views:
        rows = pair_rows(a, b, view, numbers, tests[view.id])
        sections.append(
            {"view": view, "rows": rows, "summary": summary_rows(rows, view.decimals), "chart": chart_rows(rows)}
        )
    return {
        "server": server,
        "benchmark": benchmark,
        "a": a,
        "b": b,
        "subjects": subjects,
        "sections": sections,
        "matrices": matrices(numbers, tests, subjects),
        "differences": differences(numbers, tests, subjects),
        "script": {
            "subjects": [one.label for one in subjects],
            "a": subjects.index(a),
            "b": subjects.index(b),
            "views": {
                view.id: {
                    "decimals": view.decimals,
                    "tests": [
                        {"test": test.name, "group": test.group, "better": test.better, "quiet": test.smallest}
                        for test in tests[view.id]
                    ],
                    "values": [
                        [short(numbers[view.id].get(one, {}).get(test.name)) for test in tests[view.id]]
                        for one in subjects
                    ],
                }
                for view in views
            },
        },
        "stem": addresses.part(benchmark),
    }


def compare_files(server: str, benchmark: str, snapshot: Snapshot, settings: ReportSettings) -> dict[str, str]:
    """Every number a compare page can show, a row each: `csv` and `json` by the ends of their names."""
    numbers, tests = gather(series_of(snapshot, server, benchmark), settings)
    subjects = subjects_of(numbers, tests)
    rows: list[list[object]] = [
        [
            subject.dbms,
            subject.line,
            subject.version,
            subject.config,
            view,
            test.group,
            test.name,
            known[subject][test.name],
        ]
        for view, known in numbers.items()
        for subject in subjects
        if subject in known
        for test in tests[view]
        if test.name in known[subject]
    ]
    whole = {"schema": "pointdrop.compare/1", "server": server, "benchmark": benchmark}
    return {"csv": table_csv(COLUMNS, rows), "json": dump({**whole, "values": table_json(COLUMNS, rows)})}
