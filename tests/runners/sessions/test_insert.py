"""The Insert Benchmark on real servers, tiny: every step, its promises, and what is left in the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from history.model import Block, Release, Run, Session
from runners.cores import Cores
from runners.engines import Engine
from runners.errors import WorkloadFailed
from runners.releases import Catalogue
from runners.sessions import SessionPlan, plan_session, repeat_plan, run_session
from runners.sessions.steps import StepLane
from runners.settings import InsertSize, Profile, Test, load_benchmark, load_server

CONFIGS = Path(__file__).parents[3] / "configs"
STEPS = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000"]
SIZE = InsertSize(rows=4_000, replaced={"l.i1": 1_000, "l.i2": 200}, query_s=1)

pytestmark = pytest.mark.e2e


def plan_of(dbms: str, version: str, *, clients: int = 1, size: InsertSize = SIZE) -> SessionPlan:
    release = Release(dbms=dbms, version=version, line=version.rpartition(".")[0], digest=f"{version:0>64}")
    benchmark = load_benchmark("insert", CONFIGS)
    local = load_server("local", CONFIGS)
    return plan_session(
        session_id="s",
        plan="test",
        server=local.model_copy(update={"threads": clients, "steal_limit": 1.0, "foreign_limit": 1.0}),
        benchmark=benchmark,
        tests=benchmark.select("all"),
        profile=Profile(name="tiny", read_s=1, write_s=1, insert={"cached": size}),
        releases=[release],
        control=release,
        blocks=1,
        seed=11,
        noisy_repeats=0,
    )


@pytest.fixture
def measured(
    catalogue: Catalogue, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[SessionPlan], tuple[Session, Run, Block, list[list[int]]]]:
    """Runs a plan of one block; its rows, and [count, min, max] of each client's table after each step."""

    def go(plan: SessionPlan) -> tuple[Session, Run, Block, list[list[int]]]:
        tables: list[list[int]] = []
        measure = StepLane.measure

        def watched(lane: StepLane, engine: Engine, test: Test, seed: int) -> object:
            result = measure(lane, engine, test, seed)
            prefix = f"{engine.connection.database}." if engine.connection.driver == "mysql" else ""
            for client in range(1, lane.clients + 1):
                columns = "COUNT(*), MIN(transactionid), MAX(transactionid)"
                [row] = engine.query(f"SELECT {columns} FROM {prefix}pi{client}")
                tables.append([int(value) for value in row])
            return result

        monkeypatch.setattr(StepLane, "measure", watched)
        rows: list[tuple[Session, Run, Block]] = []
        run_session(
            plan,
            catalogue,
            lambda *row: rows.append(row),
            configs=CONFIGS,
            state=state,
            cores=Cores(tmp_path),
        )
        [(session, run, block)] = rows
        assert block.status == "ok", block.reason
        return session, run, block, tables

    return go


def by_step(block: Block) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, float]] = {}
    for row in block.measurements:
        values.setdefault(row.test, {})[row.metric] = row.value
    return values


def check(block: Block, tables: list[list[int]], clients: int, unused_ids: int = 0) -> None:
    """What holds on every DBMS: the metrics of each step, and no row more or less than the steps say.

    `unused_ids` is how many ids each connection may take and leave unused.
    """
    values = by_step(block)
    assert list(values) == STEPS
    for step in ("l.i0", "l.i1", "l.i2"):
        assert values[step]["ips"] > 0
        assert "target_ips" not in values[step]
    assert values["l.x"]["indexed rows/s"] > 0
    for step in STEPS[4:]:
        assert values[step]["target_ips"] == int(step[2:]) * clients
        sla_met = values[step]["ips"] >= 0.95 * values[step]["target_ips"]
        assert ("qps" in values[step]) == sla_met
        assert sla_met or any(step in warning for warning in block.warnings)
    for metrics in values.values():
        assert {"maxop", "dbgb", "rss", "cpups", "csps"} <= metrics.keys()
    assert {"cpupq", "clientpq", "rpq", "wkbpi"} <= values["l.i0"].keys()
    # Each client inserted and deleted alike: the table moved on and kept its size.
    kept_rows = [count for count, _, _ in tables]
    assert set(kept_rows) == {SIZE.rows}
    last = tables[3 * clients : 4 * clients]
    assert last == [[4_000, 1_201, 5_200]] * clients
    for count, first, newest in tables[4 * clients :]:
        assert count <= newest - first + 1 <= count + len(STEPS) * unused_ids
    assert block.samples["qr100"]["histogram_count"]
    assert block.plans["qp100"][0].statement == "point"
    assert {plan.statement for plan in block.plans["qr100"]} == {"cashregisterid", "productid", "price"}


@pytest.mark.slow
def test_two_clients_on_postgres(measured: Callable[..., tuple[Session, Run, Block, list[list[int]]]]) -> None:
    plan = plan_of("postgres", "17.5", clients=2)
    session, run, block, tables = measured(plan)
    check(block, tables, clients=2, unused_ids=999)
    assert {plan.text.split(" using")[0].split("->  ")[-1] for plan in block.plans["qr100"]} == {"Index Only Scan"}
    assert (run.benchmark, run.lane) == ("insert", "time")
    again = repeat_plan(run, session, "again", blocks=1)
    assert (again.tests, again.size, again.server) == (plan.tests, plan.size, plan.server)
    assert "delete.lua" in run.bundle["commands"]["qr100"]


@pytest.mark.slow
def test_one_client_on_mariadb(measured: Callable[..., tuple[Session, Run, Block, list[list[int]]]]) -> None:
    *_, block, tables = measured(plan_of("mariadb", "11.4.5"))
    check(block, tables, clients=1)


@pytest.mark.slow
def test_a_role_that_fails_ends_the_step_and_says_why(
    catalogue: Catalogue, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletes lose their table; the inserts, which wait for them, do not wait for ever."""
    from runners.insertbench import driver

    real = driver.run_sysbench

    def breaking(argv: list[str], **more: object) -> str:
        if any(part.endswith("delete.lua") for part in argv):
            raise WorkloadFailed("the deletes failed")
        return real(argv, **more)  # type: ignore[arg-type] # passed on as they came

    monkeypatch.setattr(driver, "run_sysbench", breaking)
    rows: list[Block] = []
    outcome = run_session(
        plan_of("postgres", "17.5"),
        catalogue,
        lambda _session, _run, block: rows.append(block),
        configs=CONFIGS,
        state=state,
        cores=Cores(tmp_path),
    )
    assert outcome.failed == 1
    assert (rows[0].status, rows[0].reason) == ("failed", "the deletes failed")
    assert rows[0].measurements == ()
