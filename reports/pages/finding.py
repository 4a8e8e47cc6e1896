"""The finding page: what moved, by how much, how sure, why, and how to see it again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from history.datasets import dataset_of
from history.keys import boundary
from history.metrics import MetricRegistry
from history.model import MAJORS, Finding, FunctionChange, IssueLink, Move, SeriesKey
from presentation import addresses, sentences
from presentation.addresses import LineKey
from presentation.change_lines import how_sure, line_rows, probably_affected
from presentation.commands import commands, source_address
from presentation.findings import functions_frame, groups_frame, moves_frame, ordered_moves, records
from presentation.headline import headline_moves
from presentation.near_zero import change_of, interval_of
from presentation.number_format import sides, signed
from presentation.operations import cells, operations_frame, relative_frame
from reports.charts import height_of
from reports.pages.finding_summary import finding_summary, web_address
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

if TYPE_CHECKING:
    from pandas import DataFrame

#: Tests whose per-operation table is on the page: those that moved most.
PER_OPERATION_TESTS = 3
#: Tests whose functions are on the page.
FUNCTION_TESTS = 3
#: Functions in the table and boxes in the picture of one test.
MAX_FUNCTIONS = 25
#: A function that changed by less than this share of the total is not listed: it did not change.
SMALLEST_SHARE = 0.0002
#: Effects in the chart: past this a chart is unreadable, the table has all.
MAX_EFFECTS = 60
CSS = {"regression": "worse", "improvement": "better", "change": "other"}


def place_of(key: SeriesKey, moves: Sequence[Move]) -> str:
    """Server and config; with the benchmark where there are several, since they may share the names of tests."""
    several = len({move.key.benchmark for move in moves}) > 1
    return " · ".join((key.server, key.config, *((key.benchmark,) if several else ())))


def move_rows(finding: Finding, metrics: MetricRegistry) -> list[dict[str, Any]]:
    """The rows of `moves_frame`, with what the page adds to each."""
    rows = records(moves_frame(finding, metrics))
    for row, move in zip(rows, ordered_moves(finding, metrics), strict=True):
        key = move.key
        row["place"] = place_of(key, finding.moves)
        row["css"] = CSS[row["direction"]]
        row["change"], row["interval"] = change_of(move), interval_of(move)
        query = addresses.part(key.metric).replace("~", "%7E")
        row["href"] = f"{addresses.of_test(LineKey.of(key), key.test)}?metric={query}"
        row["q"] = (
            "" if row["q_value"] != row["q_value"] else "< 1e-6" if row["q_value"] < 1e-6 else f"{row['q_value']:.2g}"
        )
    return rows


def q_text(value: float) -> str:
    """Empty where the detector gave none."""
    return "" if value != value else "< 1e-6" if value < 1e-6 else f"{value:.2g}"


def effects(moves: Sequence[Move]) -> dict[str, Any]:
    """What the effects chart draws, which has an axis of percentages."""
    moves = [move for move in moves if not move.near_zero]
    several_metrics = len({move.key.metric for move in moves}) > 1
    several_places = len({place_of(move.key, moves) for move in moves}) > 1
    return {
        "height": height_of("effects", min(len(moves), MAX_EFFECTS)),
        "effects": [
            {
                "name": " ".join(
                    (
                        move.key.test,
                        *([move.key.metric] if several_metrics else []),
                        *([place_of(move.key, moves)] if several_places else []),
                    )
                ),
                "change": move.change_pct,
                "low": move.low_pct,
                "high": move.high_pct,
                "kind": CSS[move.direction],
            }
            for move in moves[:MAX_EFFECTS]
        ],
    }


def function_tables(finding: Finding, changes: Sequence[FunctionChange]) -> list[dict[str, Any]]:
    """By test, in the order given: the functions whose cost changed most, and the picture of both releases."""
    tables = []
    for test, of_test in groupby(changes, key=lambda change: change.test):
        every = list(of_test)
        floor = SMALLEST_SHARE * sum(change.before for change in every)
        rows = [row for row in records(functions_frame(every)) if abs(row["difference"]) > floor][:MAX_FUNCTIONS]
        tables.append(
            {
                "test": test,
                "rows": [function_row(row) for row in rows],
                "left": len(every) - len(rows),
                "flame": flame(every, finding.previous, finding.release),
            }
        )
    return tables


def function_row(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of `functions_frame` as the page shows it, without a percentage where one side is not known."""
    before, after, change = sides(row["before"], row["after"], row["at_most"])
    percent = signed(100 * (row["after"] / row["before"] - 1)) if row["before"] else "new"
    return {
        "function": row["function"],
        "before": before,
        "after": after,
        "change": change,
        "percent": "" if row["at_most"] else percent,
        "css": "worse" if row["difference"] > 0 else "better",
    }


def function_changes(finding: Finding, snapshot: Snapshot, metrics: MetricRegistry) -> list[FunctionChange]:
    """Every function of the tests that the detector quotes, or else of the test that moved most; the detector's own
    rows where the history has no counts of both releases."""
    tests = list(dict.fromkeys(change.test for change in finding.functions))
    if snapshot.details is None:
        return sorted(finding.functions, key=lambda change: tests.index(change.test))
    ordered = ordered_moves(finding, metrics)
    counted = [move for move in ordered if metrics[move.key.metric].lane == "instructions"]
    moved = list(dict.fromkeys(move.key.test for move in counted))
    tests = sorted(tests or moved, key=lambda test: (test not in moved, moved.index(test) if test in moved else 0))
    tests = tests[:FUNCTION_TESTS]
    places = {move.key.test: LineKey.of(move.key) for move in reversed([*finding.moves, *counted[::-1]])}
    changes: list[FunctionChange] = []
    for test in tests:
        place = places.get(test)
        counts = snapshot.details.function_changes(place, test, finding.previous, finding.release) if place else []
        changes += counts or [change for change in finding.functions if change.test == test]
    return changes


def flame(changes: Sequence[FunctionChange], before: str, after: str) -> dict[str, Any]:
    """Two bars, a box a function in the same order in both, as wide as its instructions per operation.

    The order is that of cost, so that the eye compares box with box; the colour is the change as a share of the total.
    """
    boxes = sorted(changes, key=lambda change: (-max(change.before, change.after), change.function))[:MAX_FUNCTIONS]
    total = sum(box.before for box in boxes) or sum(box.after for box in boxes) or 1.0
    rows = []
    for row, side in ((before, "before"), (after, "after")):
        start = 0.0
        for box in boxes:
            width = 0.0 if box.at_most == side else float(getattr(box, side))
            if width > 0:
                rows.append(
                    {
                        "row": row,
                        "function": box.function,
                        "from": start,
                        "to": start + width,
                        "insn": width,
                        "change": box.after - box.before,
                        "share": 100 * (box.after - box.before) / total,
                    }
                )
            start += width
    return {"height": height_of("flame", 2), "flame": rows}


def operation_tables(finding: Finding, snapshot: Snapshot, metrics: MetricRegistry) -> list[dict[str, Any]]:
    """Absolute and relative values of the two releases, of the tests that moved most."""
    places = dict.fromkeys((LineKey.of(move.key), move.key.test) for move in headline_moves(finding, metrics))
    tables = []
    for key, test in list(places)[:PER_OPERATION_TESTS]:
        series = [member for member in snapshot.lines.get(key, ()) if member.key.test == test]
        table: DataFrame = operations_frame(series, (finding.previous, finding.release), metrics)
        if not table.empty:
            ratios = zip([*table.index[1:]], cells(relative_frame(table), 2)[1:], strict=True)
            rows = [*zip(table.index, cells(table), strict=True), *((f"{name} relative", row) for name, row in ratios)]
            tables.append({"title": f"{test}, {key.where}", "columns": list(table.columns), "rows": rows})
    return tables


def dataset(finding: Finding, snapshot: Snapshot, metrics: MetricRegistry) -> str:
    """The published dataset that all results of the release in the headline's series come from, if they do."""
    keys = {move.key for move in headline_moves(finding, metrics)}
    sessions = {
        value.session_id
        for place in {LineKey.of(key) for key in keys}
        for series in snapshot.lines.get(place, ())
        if series.key in keys
        for point in series.points
        if point.version == finding.release
        for value in point.values
    }
    datasets = {dataset_of(session) for session in sessions}
    return datasets.pop() if len(datasets) == 1 else ""


def newest_run(finding: Finding, key: SeriesKey, snapshot: Snapshot) -> str:
    """The newest run of the release in this series with a block that counts; empty for published figures."""
    wanted = finding.dbms, finding.release, key.config, key.benchmark, key.server
    for ran in snapshot.ran:
        run = ran.run
        place = run.release.dbms, run.release.version, run.config, run.benchmark, ran.session.server
        if place == wanted and ran.statuses.get("ok") and run.bundle:
            return run.id
    return ""


def link_labels(links: Sequence[IssueLink]) -> list[tuple[str, str]]:
    """(label, address or empty) of each issue."""
    return [(f"{link.tracker} #{link.number}", web_address(link.url)) for link in links]


def side_labels(finding: Finding) -> tuple[str, str]:
    """What the new and the old release of a finding are to it."""
    if finding.kind == "drift":
        return "Clear since", "Compared with"
    if finding.line == MAJORS:
        newer, older = (boundary(finding.dbms, MAJORS, side) for side in (finding.release, finding.previous))
        return f"Newest measured release of {newer}", f"Newest measured release of {older}"
    return "First release at the new level", "Last release before it"


def finding_context(finding: Finding, snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `finding.html` shows."""
    metrics = settings.metrics
    events, links = snapshot.events_of(finding), snapshot.links_of(finding)
    row = finding_summary(finding, metrics, events, links)
    lead = headline_moves(finding, metrics)
    after, before = side_labels(finding)
    return {
        "finding": finding,
        "row": row,
        "after": after,
        "before": before,
        "summary": sentences.summary(finding, row.lead) if row.lead else "",
        "noise": sentences.context(finding, row.lead, metrics) if row.lead else "",
        "suspects": sentences.suspect_range(finding),
        "source": source_address(settings.sources.get(finding.dbms, ""), finding),
        "warnings": sentences.warnings(finding),
        "moves": move_rows(finding, metrics),
        "effects": effects(ordered_moves(finding, metrics)),
        "groups": records(groups_frame(finding, metrics)),
        "sure": sentences.TIERS[finding.tier],
        "lines": [
            (row, how_sure(finding.dbms, row), addresses.of_finding(row.finding)) for row in line_rows(finding, metrics)
        ],
        "probable": probably_affected(finding),
        "operations": operation_tables(finding, snapshot, metrics),
        "functions": function_tables(finding, function_changes(finding, snapshot, metrics)),
        "events": events,
        "links": link_labels(links),
        "commands": commands(
            finding,
            metrics,
            measurable=settings.measurable,
            dataset=dataset(finding, snapshot, metrics),
            run=newest_run(finding, lead[0].key, snapshot),
            source=settings.sources.get(finding.dbms, ""),
        )
        if lead
        else [],
        "remarks": [
            annotation
            for annotation in settings.annotations
            if annotation.dbms == finding.dbms
            and annotation.release in (finding.release, finding.previous, *finding.unmeasured)
            and annotation.line in ("", finding.line)
        ],
        "stem": addresses.stem_of_finding(finding.key).rsplit("/", 1)[1],
    }
