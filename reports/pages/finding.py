"""The finding page: what moved, by how much, how sure, why, and how to see it again. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

from history.model import Finding, FunctionChange, GroupSummary, IssueLink, Move, SeriesKey, Tier
from reports import addresses
from reports.addresses import LineKey
from reports.charts import height_of
from reports.numerals import grouped, signed_pct
from reports.pages.brief import HEADLINE, Brief, brief, headline_moves, sure_text, web_address
from reports.peroperation import ABSENT, PerOperation, of_series
from reports.settings import ReportSettings
from reports.snapshot import PUBLISHED, Snapshot

#: Tests whose per-operation table is on the page: those that moved most.
PER_OPERATION_TESTS = 3
COUNTED = "insn/o"
#: Tests whose functions are on the page.
FUNCTION_TESTS = 3
#: Functions in the table and boxes in the picture of one test.
MAX_FUNCTIONS = 25
#: A function that changed by less than this share of the total is not listed: it did not change.
SMALLEST_SHARE = 0.0002
#: Tests that the command to measure again names; the worst come first.
COMPARED_TESTS = 5
#: Effects in the chart: past this a chart is unreadable, the table has all.
MAX_EFFECTS = 60


#: What each tier means, beside the word.
SURE: dict[Tier, str] = {
    "confirmed": "seen again, or by enough blocks of both releases",
    "provisional": "not yet measured again beside its predecessor",
    "unconfirmed": "measured again, and not seen",
}


def move_order(move: Move) -> tuple[int, float, str]:
    """Headline metrics first, the largest change first."""
    metric = move.key.metric
    return HEADLINE.index(metric) if metric in HEADLINE else len(HEADLINE), -abs(move.change_pct), move.key.id


def group_order(group: GroupSummary) -> tuple[bool, int, str, float, str, str]:
    """As the moves: headline metrics first, then the largest change; groups that did not move last."""
    metric = group.metric
    place = HEADLINE.index(metric) if metric in HEADLINE else len(HEADLINE)
    return not group.moved, place, metric, -abs(group.median_pct), group.server, group.group


def css_of(move: Move) -> str:
    return {"regression": "worse", "improvement": "better"}.get(move.direction, "other")


def place_of(move: Move, moves: Sequence[Move]) -> tuple[str, ...]:
    """Server and config; with the benchmark where there are several, since they may share the names of tests."""
    several = len({one.key.benchmark for one in moves}) > 1
    return move.key.server, move.key.config, *((move.key.benchmark,) if several else ())


def move_rows(moves: Sequence[Move], settings: ReportSettings) -> list[dict[str, Any]]:
    return [
        {
            "test": move.key.test,
            "group": move.group,
            "metric": move.key.metric,
            "title": settings.metrics[move.key.metric].title,
            "where": " · ".join(place_of(move, moves)),
            "href": f"{addresses.of_test(LineKey.of(move.key), move.key.test)}"
            f"?metric={addresses.part(move.key.metric).replace('~', '%7E')}",
            "before": grouped(move.before),
            "after": grouped(move.after),
            "change": signed_pct(move.change_pct, 2),
            "interval": f"{signed_pct(move.low_pct, 2)} to {signed_pct(move.high_pct, 2)}",
            "css": css_of(move),
            "probability": sure_text(move.probability).removeprefix("p "),
            "q": "" if move.q_value is None else "< 1e-6" if move.q_value < 1e-6 else f"{move.q_value:.2g}",
            "noise": f"{move.noise_pct:.2f} %",
            "mde": f"{move.mde_pct:.2f} %",
            "blocks": f"{move.blocks_before} / {move.blocks_after}",
            "warnings": move.warnings,
        }
        for move in moves
    ]


def effects(moves: Sequence[Move]) -> dict[str, Any]:
    """What the effects chart draws."""
    metrics = {move.key.metric for move in moves}
    places = {place_of(move, moves) for move in moves}
    return {
        "height": height_of("effects", min(len(moves), MAX_EFFECTS)),
        "effects": [
            {
                "name": " ".join(
                    (
                        move.key.test,
                        *([move.key.metric] if len(metrics) > 1 else []),
                        *(place_of(move, moves) if len(places) > 1 else ()),
                    )
                ),
                "change": move.change_pct,
                "low": move.low_pct,
                "high": move.high_pct,
                "kind": css_of(move),
            }
            for move in moves[:MAX_EFFECTS]
        ],
    }


def function_tables(changes: Sequence[FunctionChange]) -> list[dict[str, Any]]:
    """By test, in the order given: the functions whose cost changed most, and the picture of both releases."""
    found = []
    for test, group in groupby(changes, key=lambda one: one.test):
        every = list(group)
        floor = SMALLEST_SHARE * sum(one.before for one in every)
        rows = sorted(
            (one for one in every if abs(one.after - one.before) > floor),
            key=lambda one: (-abs(one.after - one.before), one.function),
        )
        found.append(
            {
                "test": test,
                "rows": [
                    {
                        "function": one.function,
                        "before": grouped(one.before),
                        "after": grouped(one.after),
                        "change": f"{one.after - one.before:+,.0f}".replace("-", "−"),
                        "percent": "new" if one.before == 0 else signed_pct(100 * (one.after / one.before - 1)),
                        "css": "worse" if one.after > one.before else "better" if one.after < one.before else "",
                    }
                    for one in rows[:MAX_FUNCTIONS]
                ],
                "left": len(every) - min(len(rows), MAX_FUNCTIONS),
                "flame": every,
            }
        )
    return found


def function_changes(finding: Finding, snapshot: Snapshot) -> list[FunctionChange]:
    """Every function of the tests that the detector quotes, or else of the test that moved most; the detector's own
    rows where the history has no counts of both releases."""
    tests = list(dict.fromkeys(one.test for one in finding.functions))
    if snapshot.details is None:
        return sorted(finding.functions, key=lambda one: tests.index(one.test))
    counted = sorted((move for move in finding.moves if move.key.metric == COUNTED), key=move_order)
    moved = list(dict.fromkeys(move.key.test for move in counted))
    tests = sorted(tests or moved, key=lambda test: (test not in moved, moved.index(test) if test in moved else 0))
    tests = tests[:FUNCTION_TESTS]
    places = {move.key.test: LineKey.of(move.key) for move in reversed([*finding.moves, *counted[::-1]])}
    found: list[FunctionChange] = []
    for test in tests:
        place = places.get(test)
        read = snapshot.details.function_changes(place, test, finding.previous, finding.release) if place else []
        found += read or [one for one in finding.functions if one.test == test]
    return found


def flame(changes: Sequence[FunctionChange], before: str, after: str) -> dict[str, Any]:
    """Two bars, a box a function in the same order in both, as wide as its instructions per operation.

    The order is that of cost, so that the eye compares box with box; the colour is the change as a share of the total.
    """
    boxes = sorted(changes, key=lambda one: (-max(one.before, one.after), one.function))[:MAX_FUNCTIONS]
    total = sum(one.before for one in boxes) or sum(one.after for one in boxes) or 1.0
    rows = []
    for row, side in ((before, "before"), (after, "after")):
        at = 0.0
        for one in boxes:
            width = float(getattr(one, side))
            if width > 0:
                rows.append(
                    {
                        "row": row,
                        "function": one.function,
                        "from": at,
                        "to": at + width,
                        "insn": width,
                        "change": one.after - one.before,
                        "share": 100 * (one.after - one.before) / total,
                    }
                )
            at += width
    return {"height": height_of("flame", 2), "flame": rows}


def per_operation_tables(finding: Finding, snapshot: Snapshot) -> list[tuple[str, PerOperation]]:
    """Absolute and relative values of the two releases, of the tests that moved most."""
    wanted: dict[tuple[LineKey, str], None] = {}
    for move in sorted(headline_moves(finding.moves), key=move_order):
        wanted.setdefault((LineKey.of(move.key), move.key.test))
    found = []
    for key, test in list(wanted)[:PER_OPERATION_TESTS]:
        series = [one for one in snapshot.lines.get(key, ()) if one.key.test == test]
        if series:
            found.append((f"{test}, {key.where}", of_series(series, (finding.previous, finding.release))))
    return found


def commands(
    finding: Finding, moves: Sequence[Move], snapshot: Snapshot, known: Collection[str] = ()
) -> list[tuple[str, str]]:
    """What to type: (why, command); every name quoted for the shell, since names may come from elsewhere. `known` are
    the tests of the catalogues, if there are any: of published figures only those can be measured here."""
    if not moves:
        return []
    key = moves[0].key
    lane = "instructions" if key.metric == COUNTED else "time"
    tests = list(dict.fromkeys(move.key.test for move in moves if LineKey.of(move.key) == LineKey.of(key)))
    sides = [f"{finding.dbms}@{version}" for version in (finding.previous, finding.release)]
    where = ["--benchmark", key.benchmark]
    why = "Measure both releases again, blocks interleaved"
    elsewhere = published(finding, key, snapshot)
    if elsewhere:
        tests = [test for test in tests if test in known or not known]
        why = "These figures were published; measure both releases on a machine of yours, blocks interleaved"
    else:
        where = ["--server", key.server, "--config", key.config, *where]
    compare = ["compare", *sides, *where, "--lane", lane, "--tests", ",".join(tests[:COMPARED_TESTS])]
    found = [(why, compare)] if tests else []
    found.append(("Show how the detector came to it", ["explain", key.id]))
    run = newest_run(finding, key, snapshot)
    if run:
        found.append((f"Repeat the run that measured {finding.release}, from its bundle", ["repeat", run]))
    if finding.kind == "regression" and finding.cause == "product" and not elsewhere:
        bisect = ["bisect", finding.dbms, finding.previous, finding.release, "--test", key.test, "--metric", key.metric]
        bisect += where
        found.append(("Narrow it down: first releases in between, then with --repository commits", bisect))
    return [(why, f"pointdrop {shlex.join(words)}") for why, words in found]


def published(finding: Finding, key: SeriesKey, snapshot: Snapshot) -> bool:
    """Whether all results of the release in this series are somebody else's, of a server that nobody has here."""
    wanted = finding.dbms, finding.release, key.config, key.benchmark, key.server
    here = [
        one.run.profile == PUBLISHED
        for one in snapshot.ran
        if (one.run.release.dbms, one.run.release.version, one.run.config, one.run.benchmark, one.session.server)
        == wanted
    ]
    return bool(here) and all(here)


def newest_run(finding: Finding, key: SeriesKey, snapshot: Snapshot) -> str:
    """The newest run of the release in this series with a block that counts; empty for published figures."""
    wanted = finding.dbms, finding.release, key.config, key.benchmark
    for one in snapshot.ran:
        run = one.run
        here = run.release.dbms, run.release.version, run.config, run.benchmark
        if here == wanted and one.session.server == key.server and one.statuses.get("ok") and run.bundle:
            return run.id
    return ""


def link_labels(links: Sequence[IssueLink]) -> list[tuple[str, str]]:
    """(label, address or empty) of each issue."""
    return [(f"{link.tracker} #{link.number}", web_address(link.url)) for link in links]


def finding_context(finding: Finding, snapshot: Snapshot, settings: ReportSettings) -> dict[str, Any]:
    """Everything `finding.html` shows."""
    events, links = snapshot.events_of(finding), snapshot.links_of(finding)
    short: Brief = brief(finding, events, links)
    moves = sorted(finding.moves, key=move_order)
    lead = headline_moves(finding.moves)
    functions = function_tables(function_changes(finding, snapshot))
    return {
        "finding": finding,
        "brief": short,
        "moves": move_rows(moves, settings),
        "effects": effects(moves),
        "groups": [
            {
                "server": one.server,
                "metric": one.metric,
                "group": one.group or "all tests",
                "moved": f"{one.moved} of {one.tests}",
                "median": signed_pct(one.median_pct),
                "worst": signed_pct(one.worst_pct),
                "worst_test": one.worst_test,
            }
            for one in sorted(finding.groups, key=group_order)
            if one.moved
        ],
        "sure": SURE[finding.tier],
        "noise": f"{max((move.noise_pct for move in lead), default=0):.2f} %",
        "mde": f"{max((move.mde_pct for move in lead), default=0):.2f} %",
        "per_operation": per_operation_tables(finding, snapshot),
        "absent": ABSENT,
        "functions": [{**one, "flame": flame(one["flame"], finding.previous, finding.release)} for one in functions],
        "events": events,
        "links": link_labels(links),
        "commands": commands(finding, moves, snapshot, settings.tests),
        "remarks": [
            one
            for one in settings.annotations
            if one.dbms == finding.dbms
            and one.release in (finding.release, finding.previous, *finding.unmeasured)
            and one.line in ("", finding.line)
        ],
        "stem": addresses.stem_of_finding(finding.key).rsplit("/", 1)[1],
    }
