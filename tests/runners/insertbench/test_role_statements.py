"""What the roles send, by the log of a real server, and what is in the tables afterwards, by SQL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.engines import Engine
from runners.insertbench.driver import run_step
from runners.insertbench.roles import explain_command, prepare_command, role_commands
from runners.meters.proc import Meter
from runners.settings import InsertSize, Test, load_benchmark
from runners.sysbench.driver import run_sysbench
from runners.sysbench.output import parse_plans
from tests.runners.statement_log import SERVERS, Sent, logging_server, sent

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

STEPS = {test.name: test for test in load_benchmark("insert", Path(__file__).parents[3] / "configs").tests}
#: Rows enough that all 500 prices and all lengths of data occur.
SIZE = InsertSize(rows=20_000, replaced={"l.i1": 1_000, "l.i2": 100}, query_s=1)
IN_LIST = ", ".join(["N"] * 10)
INDEXES = {
    "marketsegment": "productid, customerid, price",
    "registersegment": "cashregisterid, customerid, price",
    "pdc": "price, dateandtime, customerid",
}


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server[0])
def steps(
    request: pytest.FixtureRequest, configs: Path, download_state: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, dict[str, list[Sent]]]]:
    """The server after all steps, and what was sent in each of them."""
    place = tmp_path_factory.mktemp("sent")
    with logging_server(configs, download_state, place, *request.param) as engine:
        run_sysbench(engine.account.command(prepare_command(engine.connection, clients=1)), deadline_s=60)
        yield engine, {name: sent_in(engine, STEPS[name]) for name in ("l.i0", "l.x", "l.i1", "qr100", "qp100")}


def sent_in(engine: Engine, step: Test) -> list[Sent]:
    return sent(
        engine,
        lambda: run_step(
            role_commands(engine.connection, step, SIZE, clients=1, seed=3),
            clients=1,
            meter=Meter(engine.server.pid, engine.data),
            as_account=engine.account.command,
            deadline_s=120,
        ),
    )


def shapes(statements: list[Sent], containing: str) -> Counter[str]:
    return Counter(statement.shape for statement in statements if containing in statement.text)


def test_deletes_are_bounded_below_and_by_number(steps: tuple[Engine, dict[str, list[Sent]]]) -> None:
    engine, by_step = steps
    oldest = "transactionid >= N ORDER BY transactionid ASC LIMIT N"
    wanted = {
        "pgsql": f"text: DELETE FROM piN WHERE transactionid IN (SELECT transactionid FROM piN WHERE {oldest})",
        "mysql": f"text: DELETE FROM piN WHERE {oldest}",
    }
    assert shapes(by_step["l.i1"], "DELETE") == {wanted[engine.connection.driver]: 1_000 // 50}
    assert {statement.text[-2:] for statement in by_step["l.i1"] if "DELETE" in statement.text} <= {"50", "0)"}


def test_range_queries_name_their_index_where_a_server_can_be_told(
    steps: tuple[Engine, dict[str, list[Sent]]],
) -> None:
    engine, by_step = steps
    seen = shapes(by_step["qr100"], "pi1 ")
    if engine.connection.driver == "mysql":
        assert {shape for shape in seen if "LIMIT" in shape and "SELECT" in shape} == {
            f"text: SELECT {columns} FROM piN FORCE INDEX (piN_{index}) WHERE {columns.split(',')[0]} "
            f"{'>' if index == 'registersegment' else '>='} N ORDER BY {columns} LIMIT N"
            for index, columns in INDEXES.items()
        }
        return
    prepared = [statement.text for statement in by_step["qr100"] if statement.text.startswith("PREPARE")]
    assert sorted(prepared) == sorted(
        f"PREPARE {columns.split(',')[0]}_query (int) AS SELECT {columns} FROM pi1 WHERE {columns.split(',')[0]} "
        f"{'>' if index == 'registersegment' else '>='} $1 ORDER BY {columns} LIMIT 10"
        for index, columns in INDEXES.items()
    )
    assert set(shapes(by_step["qr100"], "EXECUTE")) == {
        f"text: EXECUTE {columns.split(',')[0]}_query (N)" for columns in INDEXES.values()
    }


def test_point_queries_ask_for_ten_rows_that_exist(steps: tuple[Engine, dict[str, list[Sent]]]) -> None:
    engine, by_step = steps
    text = "SELECT transactionid, productid, data FROM piN WHERE transactionid IN"
    wanted = {"mysql": f"text: {text} ({IN_LIST})", "pgsql": f"text: EXECUTE point_query ({IN_LIST})"}
    driver = engine.connection.driver
    queries = [statement.text for statement in by_step["qp100"] if statement.shape == wanted[driver]]
    questions = shapes(by_step["qp100"], "MAX(transactionid)").total()
    assert questions - 2 == len(queries) // 100, "one of the inserts, one at the begin, then one in 100 queries"
    ids = [int(number) for query in queries for number in re.findall(r"\d+", query.rpartition("(")[2])]
    assert len(ids) == 10 * len(queries) > 1_000
    prefix = f"{engine.connection.database}." if driver == "mysql" else ""
    [(first, last)] = engine.query(f"SELECT MIN(transactionid), MAX(transactionid) FROM {prefix}pi1")
    moved_on = 100
    assert first - moved_on <= min(ids) < first + 2_000
    assert last - 2_000 < max(ids) <= last


def test_the_rows_are_what_the_published_client_makes(steps: tuple[Engine, dict[str, list[Sent]]]) -> None:
    engine, by_step = steps
    table = "pi1" if engine.connection.driver == "pgsql" else f"{engine.connection.database}.pi1"
    ranges = {"price": (0, 499), "cashregisterid": (0, 999), "productid": (0, 9_999), "customerid": (0, 99_999)}
    for column, (least, most) in ranges.items():
        [(low, high, values)] = engine.query(
            f"SELECT MIN({column}), MAX({column}), COUNT(DISTINCT {column}) FROM {table}"
        )
        share = 1.0 if most < 1_000 else 0.6 if most < 10_000 else 0.15
        assert least <= low <= least + (most - least) * 0.01, column
        assert most - (most - least) * 0.01 <= high <= most, column
        assert values >= share * (most + 1), column
    lengths = engine.query(f"SELECT LENGTH(data), COUNT(*) FROM {table} GROUP BY 1 ORDER BY 1")
    assert [length for length, _ in lengths] == list(range(10, 21))
    assert min(count for _, count in lengths) > 20_000 / 11 * 0.8, "each length is as likely"
    [(unlike,)] = engine.query(f"SELECT COUNT(*) FROM {table} WHERE data NOT LIKE 'aaaaaaa%'")
    assert unlike == 0, "three eighths of it are random, at the end"
    inserts = [statement.text for statement in by_step["l.i0"] if statement.text.startswith("INSERT")]
    assert re.search(r"\('2023-01-01 00:00:01',\d+,\d+,\d+,\d+\.00,'a{7}[A-Za-z0-9+/a]+'\)", inserts[0])
    assert inserts[0].count("(") == 101


def test_indexes_and_plans(steps: tuple[Engine, dict[str, list[Sent]]]) -> None:
    engine, by_step = steps
    driver = engine.connection.driver
    created = " ".join(statement.text for statement in by_step["l.x"])
    for index, columns in INDEXES.items():
        assert f"pi1_{index} {'ON pi1 ' if driver == 'pgsql' else ''}({columns})" in created
    assert len(shapes(by_step["l.x"], "INDEX")) == (3 if driver == "pgsql" else 1), "InnoDB makes them in one pass"
    for name, statements in (
        ("qr100", {"price", "productid", "cashregisterid"}),
        ("qp100", {"point"}),
        ("l.i1", {"delete"}),
    ):
        argv = explain_command(engine.connection, STEPS[name])
        assert argv
        plans = parse_plans(run_sysbench(engine.account.command(argv), deadline_s=60))
        assert {plan.statement for plan in plans} == statements
        for plan in plans:
            assert "Seq Scan" not in plan.text
            if name == "qr100":
                assert "Index Only Scan" in plan.text or "Using index" in plan.text


def test_mysql_5_5_runs_the_steps_and_explains_what_it_can(configs: Path, download_state: Path, tmp_path: Path) -> None:
    """It has a plan for SELECT only; a DELETE has none, and that is no failure."""
    with logging_server(configs, download_state, tmp_path, "mysql", "5.5.9") as engine:
        run_sysbench(engine.account.command(prepare_command(engine.connection, clients=1)), deadline_s=60)
        assert all(sent_in(engine, STEPS[name]) for name in ("l.i0", "l.x", "l.i1", "qp100"))
        for name, wanted in (("qp100", {"point"}), ("l.i1", set())):
            argv = explain_command(engine.connection, STEPS[name])
            assert argv
            plans = parse_plans(run_sysbench(engine.account.command(argv), deadline_s=60))
            assert {plan.statement for plan in plans} == wanted
