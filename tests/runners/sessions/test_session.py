"""Sessions on real Postgres: both lanes, resumed, interrupted, out of time; no server ever left behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from history.function_names import base_name
from history.model import Block, Fingerprint, Run, Session
from runners.cores import Cores
from runners.engines import EngineError
from runners.errors import HostChanged, OutOfSpace
from runners.releases import Catalogue
from runners.sessions import Event, Outcome, SessionPlan, estimate, run_session
from runners.sessions.events import BlockDone, BlockStarted, TestDone
from runners.sessions.prepared_data import check_space

CONFIGS = Path(__file__).parents[3] / "configs"
MakePlan = Callable[..., SessionPlan]

pytestmark = pytest.mark.e2e


class BlockSink:
    """A sink that keeps rows, and dies when told to."""

    def __init__(self, dies_after: int | None = None) -> None:
        self.rows: list[tuple[Session, Run, Block]] = []
        self.dies_after = dies_after

    def __call__(self, session: Session, run: Run, block: Block) -> None:
        self.rows.append((session, run, block))
        if len(self.rows) == self.dies_after:
            raise KeyboardInterrupt

    @property
    def blocks(self) -> list[Block]:
        return [block for _, _, block in self.rows]

    def values(self, test: str, metric: str) -> list[float]:
        return [m.value for block in self.blocks for m in block.measurements if (m.test, m.metric) == (test, metric)]


@pytest.fixture
def run(catalogue: Catalogue, state: Path, tmp_path: Path) -> Iterator[Callable[..., Outcome]]:
    """`run(plan, sink, **more)`; afterwards no server of this test may be there."""

    def go(plan: SessionPlan, sink: BlockSink, **more: object) -> Outcome:
        cores = Cores(tmp_path)
        return run_session(plan, catalogue, sink, configs=CONFIGS, state=state, cores=cores, **more)  # type: ignore[arg-type] # checked where they are given

    yield go
    running = psutil.process_iter(["pid", "cmdline"])
    left = [p.info["pid"] for p in running if any(str(state) in part for part in p.info["cmdline"] or ())]
    assert not left, "servers were left behind"


@pytest.mark.slow
def test_counts_of_the_same_release_agree(run: Callable[..., Outcome], make_plan: MakePlan) -> None:
    sink = BlockSink()
    outcome = run(make_plan(lane="instructions", releases=("17.5",), control="17.5", blocks=2), sink)
    assert (outcome.done, outcome.complete) == (2, True)
    for test in ("update-index.range100", "point-query.range100"):
        first, second = sink.values(test, "insn/o")
        assert first == pytest.approx(second, rel=0.005), test
        assert 20_000 < first < 500_000
    block = sink.blocks[0]
    functions = block.functions["point-query.range100"]
    assert "PostgresMain" in {cost.function for cost in functions}
    assert [cost.insn_per_op for cost in functions] == sorted((c.insn_per_op for c in functions), reverse=True)
    entry = max(functions, key=lambda cost: cost.inclusive_per_op or 0.0)
    assert entry.function == "PostgresMain"
    assert entry.inclusive_per_op == pytest.approx(sink.values("point-query.range100", "insn/o")[0], rel=0.005)
    (execute,) = (call for call in block.calls["point-query.range100"] if call.callee == "PortalRun")
    assert (execute.caller, execute.calls_per_op) == ("PostgresMain", pytest.approx(1.0, rel=0.01))
    (plan,) = block.plans["point-query.range100"]
    assert "Index Scan" in plan.text
    _, row, _ = sink.rows[0]
    assert row.lane == "instructions"
    assert "fsync = 'off'" in row.options, "the overlay of the lane is in the option file that is kept"
    kept = sorted(len(block.settings) > 300 for block in sink.blocks)
    assert kept == [False, True], "the settings are kept once a run, since the servers of all its blocks agree"
    (settings,) = (block.settings for block in sink.blocks if block.settings)
    assert (settings["fsync"].value, settings["fsync"].default, settings["fsync"].source) == ("off", "on", "file")


@pytest.mark.slow
def test_a_server_with_threads_is_counted_by_the_sessions_thread(
    run: Callable[..., Outcome], make_plan: MakePlan
) -> None:
    sink = BlockSink()
    tests = ("update-index.range100", "point-query.range100", "insert.range100")
    outcome = run(
        make_plan(lane="instructions", dbms="mariadb", releases=("11.4.5",), control="11.4.5", tests=tests, blocks=2),
        sink,
    )
    assert outcome.complete, outcome.warnings
    for test in tests:
        first, second = sink.values(test, "insn/o")
        assert first == pytest.approx(second, rel=0.02), test
        functions = {base_name(cost.function) for cost in sink.blocks[0].functions[test]}
        assert "rec_get_offsets_func" in functions, "names of functions are there"
        in_session = {"trx_purge_add_undo_to_history"}  # a commit hands its undo log over
        assert not {name for name in functions - in_session if "purge" in name}, "background threads are not counted"
        callers = {call.caller.partition("(")[0] for call in sink.blocks[0].calls[test]}
        assert {"do_command", "dispatch_command"} <= callers
    (plan,) = sink.blocks[0].plans["point-query.range100"]
    assert "PRIMARY" in plan.text


@pytest.mark.slow
def test_a_killed_session_goes_on_where_it_was(run: Callable[..., Outcome], make_plan: MakePlan) -> None:
    plan = make_plan(blocks=1)
    first = BlockSink(dies_after=1)
    with pytest.raises(KeyboardInterrupt):
        run(plan, first)
    second = BlockSink()
    finished = {block.id for block in first.blocks}
    outcome = run(plan, second, finished=finished, session=first.rows[0][0])
    assert outcome.already_done == 1
    assert {block.id for block in second.blocks} == {block.id for block in plan.blocks} - finished
    assert second.rows[0][0] == first.rows[0][0], "the session's row is the stored one"
    for sink in (first, second):
        assert sink.blocks[0].settings["shared_buffers"].source == "file"
        (qps,) = sink.values("point-query.range100", "qps")
        (cpu,) = sink.values("point-query.range100", "cpu_us/o")
        assert qps > 100
        assert 1 < cpu < 10_000
        assert sink.values("point-query.range100", "dbgb")[0] > 0
        assert len(sink.blocks[0].samples["point-query.range100"]["qps"]) >= 1
        assert sum(sink.blocks[0].samples["point-query.range100"]["histogram_count"]) > 100
    session = first.rows[0][0]
    facts = session.fingerprint.facts
    other = session.model_copy(update={"fingerprint": Fingerprint(facts=facts | {"kernel": "2.4"})})
    with pytest.raises(HostChanged, match=r"machine changed \(kernel: 2\.4 -> .*\); give it up"):
        run(plan, BlockSink(), finished=finished, session=other)
    assert {"cpu_model", "kernel", "sysbench", "workload"} <= facts.keys()


@pytest.mark.parametrize("lane", ["time", "instructions"])
def test_ctrl_c_in_the_middle_of_a_test_leaves_no_server(
    run: Callable[..., Outcome], make_plan: MakePlan, lane: str
) -> None:
    sink = BlockSink()

    def interrupt(event: Event) -> None:
        if isinstance(event, TestDone):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(make_plan(lane=lane), sink, on_event=interrupt)
    assert sink.blocks == []


def test_no_block_begins_that_cannot_end_in_time(run: Callable[..., Outcome], make_plan: MakePlan, state: Path) -> None:
    shutil.rmtree(state / "prepared", ignore_errors=True)  # by the tests before, and a release that has data needs less
    started: list[Event] = []

    def on_event(event: Event) -> None:
        if isinstance(event, BlockStarted):
            started.append(event)

    outcome = run(make_plan(), BlockSink(), budget_s=0.5, on_event=on_event)
    assert not started
    assert "time is up with 2 blocks left" in outcome.stopped
    assert not outcome.complete
    sink = BlockSink()
    outcome = run(make_plan(), sink, budget_s=0.5, begin_one=True, on_event=on_event)
    assert len(started) == len(sink.blocks) == 1, "with a whole night ahead one begins all the same, and no second one"
    assert "time is up with 1 blocks left" in outcome.stopped
    (block,) = sink.blocks
    slow = block.model_copy(update={"phases": block.phases | {"block": block.phases["block"] | {"load": 1e5}}})
    outcome = run(make_plan(session_id="again"), sink, budget_s=600, known=[slow])
    assert outcome.done + outcome.noisy == 1, "the one whose data is kept begins, since nothing is loaded for it"
    assert "time is up with 1 blocks left" in outcome.stopped


def test_a_config_the_release_cannot_run_is_skipped_and_said(run: Callable[..., Outcome], make_plan: MakePlan) -> None:
    plan = make_plan(releases=("14.9",), control="14.9", configs=("sync0_compLZ4_fpi1",))
    outcome = run(plan, BlockSink())
    assert list(outcome.skipped) == ["s/14.9/sync0_compLZ4_fpi1/sysbench/time"]
    assert "lz4" in next(iter(outcome.skipped.values()))
    assert not outcome.complete


@pytest.mark.slow
def test_the_configs_with_lz4_run_on_the_builds_of_debian(
    run: Callable[..., Outcome], make_plan: MakePlan, catalogue: Catalogue
) -> None:
    """Where Maven's builds, made without it, are left out."""
    catalogue.discover("postgres", "debian-bookworm")
    known = [state.release for state in catalogue.list("postgres") if state.release.build == "debian-bookworm"]
    version = known[-1].version
    assert version.startswith("15.") and version.endswith("+debian")
    sink = BlockSink()
    outcome = run(make_plan(releases=(version,), control=version, configs=("sync1_compLZ4_fpi1",)), sink)
    assert (outcome.done + outcome.noisy, outcome.failed, outcome.skipped) == (1, 0, {})
    [(_, measured, block)] = sink.rows
    assert measured.release.version == version
    assert catalogue.fetch("postgres", version).release.build == "debian-bookworm"
    assert "wal_compression = 'lz4'" in measured.options
    assert all(value > 0 for value in sink.values("update-index.range100", "qps"))
    assert block.status in ("ok", "noisy")


def test_a_server_that_fails_gives_a_failed_block_and_the_session_goes_on(
    run: Callable[..., Outcome], make_plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runners.engines.postgres import Postgres

    def fail(self: Postgres) -> None:
        if self.installed.release.version == "17.5":
            raise EngineError("the vacuum failed")

    monkeypatch.setattr(Postgres, "settle", fail)
    sink = BlockSink()
    outcome = run(make_plan(tests=("update-index.range100",)), sink)
    by_version = {row.release.version: block for _, row, block in sink.rows}
    assert by_version["17.5"].status == "failed"
    assert "the vacuum failed" in by_version["17.5"].reason
    assert by_version["17.5"].measurements == ()
    assert by_version["17.0"].measurements
    assert (outcome.failed, outcome.complete) == (1, False)


@pytest.mark.slow
def test_what_one_session_took_is_expected_of_the_next(run: Callable[..., Outcome], make_plan: MakePlan) -> None:
    """Within five times the range, since the machine may be busy in one of them; phases are exact on any machine."""
    took: dict[str, float] = {}

    def on_event(event: Event) -> None:
        if isinstance(event, BlockDone):
            took[event.block.id] = event.seconds

    first, second = BlockSink(), BlockSink()
    run(make_plan(lane="instructions", session_id="first"), first, on_event=on_event)
    for block in first.blocks:
        assert sum(sum(seconds.values()) for seconds in block.phases.values()) == pytest.approx(took[block.id], 0.01)
        assert block.phases["tests"].keys() == {"update-index.range100", "point-query.range100"}
        assert block.phases["block"].keys() <= {"load", "wait", "other"}, "a counted test has a server of its own"
    plan = make_plan(lane="instructions", session_id="second")
    outcome = run(plan, second, known=first.blocks)
    expected = estimate(plan, (), outcome.workers, first.blocks, ("17.0", "17.5"))
    assert expected.known == 2 and expected.low_s / 5 < outcome.wall_s < expected.high_s * 5


def test_other_tests_use_the_data_that_is_there(run: Callable[..., Outcome], make_plan: MakePlan, state: Path) -> None:
    """It is not made anew: another session may be copying it."""

    def data() -> set[tuple[str, int]]:
        return {(path.name, (path / "data").stat().st_ino) for path in (state / "prepared").glob("*/")}

    for tests in (("scan.range100",), ("random-points.range10",)):
        sink = BlockSink()
        before = data()
        assert run(make_plan(lane="instructions", tests=tests), sink).complete
        assert all(block.plans[test] for block in sink.blocks for test in tests)
    assert data() == before


def test_a_full_disk_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(OutOfSpace, match="GB are needed; make room, set POINTDROP_STATE"):
        check_space(tmp_path, 10**18)
    check_space(tmp_path, 0)


def test_the_row_of_a_run_has_the_toolchain_and_stays_the_same_when_the_session_goes_on(
    run: Callable[..., Outcome], make_plan: MakePlan
) -> None:
    plan, killed, resumed, told = make_plan(lane="time", blocks=2), BlockSink(dies_after=1), BlockSink(), BlockSink()
    with pytest.raises(KeyboardInterrupt):
        run(plan, killed)
    session, first, block = killed.rows[0]
    run(plan, resumed, finished={block.id}, session=session)
    later = {row.id: row for _, row, _ in resumed.rows}[first.id]
    assert later == first
    assert (first.toolchain["builder"], first.toolchain["compiler"]) == ("zonky", "GCC")
    assert first.toolchain["libc"].startswith("glibc")
    run(plan, told, finished={block.id}, session=session, toolchains={first.id: {"builder": "as it was stored"}})
    assert {row.toolchain["builder"] for _, row, _ in told.rows if row.id == first.id} == {"as it was stored"}
