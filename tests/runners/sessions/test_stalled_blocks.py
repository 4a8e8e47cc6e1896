"""Blocks on real servers in which something was stopped or killed are not `ok`, and say why; undisturbed ones are."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from history.model import Block
from runners.cores import Cores
from runners.engines import Engine
from runners.meters.proc import Meter
from runners.meters.progress import ProgressWatch
from runners.releases import Catalogue
from runners.sessions import SessionPlan, lanes, run_session
from runners.sessions.lanes import TimeLane
from runners.settings import Profile, Scale, Test

CONFIGS = Path(__file__).parents[3] / "configs"
RELEASES = [("postgres", "17.5"), ("mysql", "9.7.4"), ("mariadb", "11.4.5")]
STOP_S = 0.6

pytestmark = pytest.mark.e2e
RunBlock = Callable[..., Block]


@pytest.fixture
def run_block(
    catalogue: Catalogue, state: Path, tmp_path: Path, make_plan: Callable[..., SessionPlan]
) -> Callable[..., Block]:
    """`run_block(dbms, version, tests)`: one block of tests of one second, whatever else the machine does."""

    def run(dbms: str, version: str, tests: tuple[str, ...] = ("point-query.range100",)) -> Block:
        plan = make_plan(dbms=dbms, releases=(version,), control=version, tests=tests)
        scale = Scale(tables=1, rows=2_000, threads=1)
        plan = replace(
            plan,
            profile=Profile(name="tiny", warmup_s=1, read_s=1, write_s=1, warm_s=1, scale=scale),
            server=plan.server.model_copy(update={"steal_limit": 1.0, "foreign_limit": 1.0}),
        )
        blocks: list[Block] = []
        cores = Cores(tmp_path)
        run_session(plan, catalogue, lambda _, __, b: blocks.append(b), configs=CONFIGS, state=state, cores=cores)
        [block] = blocks
        return block

    return run


@pytest.fixture
def when_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Meter], None]], None]:
    """`when_it_is_measured(do)`: `do(meter)` in a thread of its own, from the moment the window of a test begins."""

    def patch(do: Callable[[Meter], None]) -> None:
        class Watch(ProgressWatch):
            def start(self) -> None:
                super().start()
                threading.Thread(target=do, args=(self._meter,)).start()

        monkeypatch.setattr(lanes, "ProgressWatch", Watch)

    return patch


def stop(pids: list[int]) -> None:
    time.sleep(0.2)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(STOP_S)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(("dbms", "version"), RELEASES)
def test_a_stopped_server_is_noisy(
    run_block: RunBlock, when_it_is_measured: Callable[..., None], dbms: str, version: str
) -> None:
    when_it_is_measured(lambda meter: stop(meter.pids()))
    block = run_block(dbms, version)
    assert block.status == "noisy"
    assert "s in point-query.range100: the server was stopped" in block.reason


@pytest.mark.parametrize(("dbms", "version"), RELEASES[:2])
def test_a_stopped_client_is_noisy(
    run_block: RunBlock, when_it_is_measured: Callable[..., None], dbms: str, version: str
) -> None:
    when_it_is_measured(lambda meter: stop(list(meter.clients)))
    block = run_block(dbms, version)
    assert block.status == "noisy"
    assert "s in point-query.range100: the client was stopped" in block.reason


@pytest.mark.parametrize(("dbms", "version"), RELEASES)
def test_reads_and_writes_that_nothing_disturbs_are_ok(run_block: RunBlock, dbms: str, version: str) -> None:
    tests = (
        "point-query.range100",
        "read-only.range10000",
        "scan.range100",
        "update-index.range100",
        "insert.range100",
    )
    block = run_block(dbms, version, tests)
    assert (block.status, block.reason) == ("ok", "")


def child(server_pid: int, name: str) -> int:
    [pid] = [each.pid for each in psutil.Process(server_pid).children() if name in "".join(each.cmdline())]
    return pid


@pytest.mark.parametrize("name", ["background writer", "[local]"])
def test_a_crash_of_a_process_of_postgres_in_a_test_fails_with_the_reason(
    run_block: RunBlock, when_it_is_measured: Callable[..., None], name: str
) -> None:
    when_it_is_measured(lambda meter: os.kill(child(meter.server_pid, name), signal.SIGKILL))
    block = run_block("postgres", "17.5", ("update-index.range100",))
    assert block.status == "failed"
    assert "crashed and began anew" in block.reason
    assert "was terminated by signal 9" in block.reason


@pytest.mark.parametrize("version", ["9.6.24", "12.22", "17.5"])
def test_a_crash_between_tests_fails_though_every_test_passed(
    run_block: RunBlock, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    measure = TimeLane.measure

    def measure_and_kill(lane: TimeLane, engine: Engine, test: Test, seed: int) -> object:
        result = measure(lane, engine, test, seed)
        before = engine.incarnation()
        os.kill(child(engine.server.pid, "checkpointer"), signal.SIGKILL)
        engine.server.wait_until(lambda: engine.incarnation() != before, 30, 0.1, "the restart")
        return result

    monkeypatch.setattr(TimeLane, "measure", measure_and_kill)
    block = run_block("postgres", version)
    assert block.status == "failed"
    assert "point-query.range100: " in block.reason
    assert "crashed and began anew" in block.reason


def test_a_killed_mysql_fails_with_the_reason(run_block: RunBlock, when_it_is_measured: Callable[..., None]) -> None:
    when_it_is_measured(lambda meter: os.kill(meter.server_pid, signal.SIGKILL))
    block = run_block("mysql", "9.7.4")
    assert block.status == "failed"
    assert "does not run" in block.reason
