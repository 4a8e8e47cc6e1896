"""What sysbench sends with our scripts, by the log of a real server, beside what its own scripts send."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from runners.engines import Engine
from runners.settings import Scale, load_benchmark
from runners.settings.benchmarks import OptionValue
from runners.sysbench.commands import command, explain_command, prepare_command, seeded
from runners.sysbench.driver import run_sysbench
from runners.sysbench.output import parse_plans
from tests.runners.statement_log import SERVERS, Sent, logging_server, sent

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CONFIGS = Path(__file__).parents[3] / "configs"
CATALOGUE = load_benchmark("sysbench", CONFIGS)
SCALE = Scale(tables=8, rows=1_000, threads=1)
#: The scripts that come with sysbench.
STOCK = Path("/usr/share/sysbench")
#: Two groups of statements that draw a table each take the same one in all of so many transactions once in 8^40.
EVENTS = 40


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server[0])
def engine(
    request: pytest.FixtureRequest, configs: Path, download_state: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    place = tmp_path_factory.mktemp("sent")
    with logging_server(configs, download_state, place, *request.param) as engine:
        run_sysbench(engine.account.command(prepare_command(engine.connection, SCALE, seed=1)), deadline_s=60)
        yield engine


def ours(engine: Engine, name: str, events: int = EVENTS) -> list[Sent]:
    (test,) = CATALOGUE.select((name,))
    options = {"tables": SCALE.tables, "table_size": SCALE.rows, **test.options}
    argv = command(engine.connection, test.script, options | fixed(events), "run")
    return sent(engine, lambda: run_sysbench(engine.account.command(argv), deadline_s=60))


def fixed(events: int) -> dict[str, OptionValue]:
    """So many events on one connection, always the same."""
    return {"threads": 1, "time": 0, "events": events, **seeded(3)}


def stock(engine: Engine, script: str, **options: int | str) -> list[Sent]:
    tables = {"tables": SCALE.tables, "table_size": SCALE.rows}
    argv = command(engine.connection, script, tables | fixed(EVENTS) | options, "run", STOCK)
    return sent(engine, lambda: run_sysbench(engine.account.command(argv), deadline_s=60))


def events_of(statements: list[Sent]) -> list[list[Sent]]:
    """Statements of each event: a transaction, or a statement by itself."""
    events: list[list[Sent]] = []
    inside = False
    for statement in statements:
        begins = statement.text.upper().startswith("BEGIN")
        if begins or not inside:
            events.append([])
            inside = begins
        events[-1].append(statement)
        if statement.text.upper().startswith("COMMIT"):
            inside = False
    return events


def tables(event: list[Sent]) -> list[str]:
    return [match[0] if (match := re.search(r"sbtest\d+", statement.text)) else "" for statement in event]


def groups(statements: list[Sent]) -> set[tuple[int, int]]:
    """Pairs of statements of an event that are always about the same table."""
    drawn = [tables(event) for event in events_of(statements)]
    return {(a, b) for a, b in combinations(range(len(drawn[0])), 2) if all(event[a] == event[b] for event in drawn)}


@pytest.mark.parametrize(
    ("name", "script", "options"),
    [
        ("point-query.range100", "oltp_point_select", {"skip_trx": "on"}),
        ("update-index.range100", "oltp_update_index", {}),
        ("update-nonindex.range100", "oltp_update_non_index", {}),
        ("delete.range100", "oltp_delete", {}),
        ("insert.range100", "oltp_insert", {}),
        ("write-only.range10000", "oltp_write_only", {}),
        ("read-only.range10", "oltp_read_only", {"range_size": 10}),
        ("read-write.range100", "oltp_read_write", {"range_size": 100}),
    ],
)
def test_the_statements_and_their_tables_are_those_of_the_stock_script(
    engine: Engine, name: str, script: str, options: dict[str, int | str]
) -> None:
    mine, theirs = ours(engine, name), stock(engine, script, **options)
    assert [[statement.shape for statement in event] for event in events_of(mine)] == [
        [statement.shape for statement in event] for event in events_of(theirs)
    ]
    assert len(events_of(mine)) == EVENTS
    assert groups(mine) == groups(theirs)
    drawn = {table for event in events_of(mine) for table in tables(event)} - {""}
    assert drawn == {f"sbtest{number}" for number in range(1, SCALE.tables + 1)}


def test_a_transaction_is_about_several_tables(engine: Engine) -> None:
    events = events_of(ours(engine, "read-write.range10"))
    assert max(len(set(tables(event)) - {""}) for event in events) >= 5
    for event in events:
        assert len(set(tables(event)[1:11])) == 1, "the ten point selects are one group"


#: Those the stock sysbench has no script for: one statement an event, as published.
SINGLE = {
    "random-points.range10": "prepared: SELECT c FROM sbtestN WHERE id IN (" + ",".join(["N"] * 10) + ")",
    "update-inlist.range100": "prepared: UPDATE sbtestN SET c='S' WHERE id IN (" + ",".join(["N"] * 10) + ")",
    "points-notcovered-si.range100": "prepared: SELECT k, c FROM sbtestN WHERE k IN (" + ",".join(["N"] * 100) + ")",
    "points-covered-pk.range100": "prepared: SELECT id FROM sbtestN WHERE id IN (" + ",".join(["N"] * 100) + ")",
    "range-covered-pk.range100": "prepared: SELECT id FROM sbtestN WHERE id BETWEEN N AND N",
    "range-notcovered-si.range100": "prepared: SELECT k, c FROM sbtestN WHERE k BETWEEN N AND N",
    "read-only-count.range1000": "prepared: SELECT COUNT(c) FROM sbtestN WHERE id BETWEEN N AND N",
    "scan.range100": "text: SELECT * FROM sbtestN WHERE LENGTH(c) < N",
}


@pytest.mark.parametrize("name", SINGLE)
def test_the_statement_of_a_test_without_a_stock_script(engine: Engine, name: str) -> None:
    statements = ours(engine, name, events=3)
    assert {statement.shape for statement in statements} == {SINGLE[name]}
    assert len(statements) == 3


def test_ranges_and_hot_points_have_the_published_ids(engine: Engine) -> None:
    for name, width in (("range-covered-pk.range100", 100), ("read-only-count.range1000", 999)):
        for statement in ours(engine, name, events=5):
            first, last = map(int, re.findall(r"BETWEEN (\d+) AND (\d+)", statement.text)[0])
            assert last - first == width
    (hot,) = ours(engine, "hot-points.range100", events=1)
    assert [int(number) for number in re.findall(r"\d+(?=[,)])", hot.text)] == list(range(501, 601))


def test_a_thread_scans_a_table_of_its_own(engine: Engine) -> None:
    (test,) = CATALOGUE.select(("scan.range100",))
    # So many that each thread has its turn, however busy the machine.
    options = {"tables": 8, "table_size": SCALE.rows, "threads": 3, "time": 0, "events": 1_000, **seeded(3)}
    argv = command(engine.connection, test.script, options, "run")
    statements = sent(engine, lambda: run_sysbench(engine.account.command(argv), deadline_s=60))
    by_connection: dict[str, set[str]] = {}
    for statement in statements:
        by_connection.setdefault(statement.connection, set()).update(tables([statement]))
    assert sorted(by_connection.values(), key=sorted) == [{"sbtest1"}, {"sbtest2"}, {"sbtest3"}]


def test_statements_sent_as_text_have_plans_too(engine: Engine) -> None:
    for name, statement in (("scan.range100", "scan"), ("insert.range100", "insert")):
        (test,) = CATALOGUE.select((name,))
        argv = engine.account.command(explain_command(engine.connection, test, SCALE))
        (plan,) = parse_plans(run_sysbench(argv, deadline_s=60))
        assert plan.statement == statement
        assert "sbtest1" in plan.text


def test_mysql_5_5_explains_what_it_can(configs: Path, download_state: Path, tmp_path: Path) -> None:
    """It has a plan for SELECT only; the others have none, and that is no failure."""
    with logging_server(configs, download_state, tmp_path, "mysql", "5.5.9") as engine:
        run_sysbench(engine.account.command(prepare_command(engine.connection, SCALE, seed=1)), deadline_s=60)
        for name, wanted in (("point-query.range100", {"point"}), ("update-index.range100", set())):
            (test,) = CATALOGUE.select((name,))
            argv = engine.account.command(explain_command(engine.connection, test, SCALE))
            assert {plan.statement for plan in parse_plans(run_sysbench(argv, deadline_s=60))} == wanted, name
