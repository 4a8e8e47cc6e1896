"""Measuring: a host in quarantine is left alone, and what was kept on disk comes in first."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from filelock import FileLock, Timeout

from history.errors import StoreUnavailable
from history.model import CanaryReading, Release
from history.spool import Spool, spooled
from history.store import Store
from pointdrop.jobs import measurement
from pointdrop.jobs.measurement import Measured, MeasurementSetup, measure_all
from pointdrop.jobs.release_selection import Work
from pointdrop.jobs.session_records import (
    claim,
    new_record,
    sessions_under_way,
    unfinished_sessions,
    write_record,
)
from runners.canary import Canary, Quarantine, Times
from runners.errors import HostBusy, HostChanged
from runners.sessions import Outcome
from runners.settings import load_plan
from tests.builders import SESSION, block, run


def prepared(tmp_path: Path, configs: Path, profile: str) -> tuple[MeasurementSetup, Any]:
    """A bench without a catalogue, and a session of `small` that it is asked to run."""
    plan = load_plan("nightly", configs)
    releases = [Release(dbms="postgres", version=version, line="17") for version in ("17.1", "17.2")]
    measure = plan.measure[0].model_copy(update={"profile": profile, "dbms": "postgres"})
    work = Work(measure, "default", "17", (releases[1],), releases[0], False)
    bench = MeasurementSetup(configs, tmp_path, cast("Any", None), Store.open(f"sqlite:///{tmp_path / 'history.db'}"))
    return bench, new_record(plan, "small", work, datetime.now(UTC))


def sick(tmp_path: Path) -> None:
    found = Quarantine(since=datetime.now(UTC), when="after the session 7", reasons=("CPU: slow",))
    (tmp_path / "canary").mkdir()
    (tmp_path / "canary" / "quarantine.json").write_text(found.model_dump_json())


@pytest.mark.parametrize(("profile", "runs"), [("quick", 0), ("instructions", 1)])
def test_a_host_in_quarantine_measures_no_time_but_may_count(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch, profile: str, runs: int
) -> None:
    called: list[object] = []

    def run_session(*arguments: object, **options: object) -> Outcome:
        called.append(arguments)
        return Outcome(planned=0)

    monkeypatch.setattr(measurement, "run_session", run_session)
    bench, begun = prepared(tmp_path, configs, profile)
    sick(tmp_path)
    measured = Measured()
    with bench.store:
        measurement._run(bench, begun, measured, None)
    assert len(called) == runs and unfinished_sessions(tmp_path) == []
    assert any("doctor --clear" in text for text in measured.incomplete) == (runs == 0)


def test_what_the_canary_took_is_in_the_history_and_in_the_upload(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after the session; the reading that puts the host into quarantine, too."""
    times = Times(cpu_ms=100.0, memory_ms=50.0, sync_ms=1.0)
    uploaded: list[CanaryReading] = []
    bench, begun = prepared(tmp_path, configs, "quick")
    bench = replace(bench, spool=cast("Any", SimpleNamespace(keep=uploaded.extend)))
    host = Canary(tmp_path, read=lambda folder: times, pause_s=0)
    monkeypatch.setattr(MeasurementSetup, "canary", host)
    monkeypatch.setattr(measurement, "run_session", lambda *plan, **options: Outcome(planned=0))
    with bench.store as store:
        for _ in range(3):
            measurement._run(bench, begun, Measured(), None)
        assert [one.phase for one in store.readings()] == ["before", "after"] * 3
        assert {one.session_id for one in store.readings()} == {begun.id}
        monkeypatch.setattr(MeasurementSetup, "canary", replace(host, read=lambda folder: times._replace(cpu_ms=200.0)))
        measured = Measured()
        measurement._run(bench, begun, measured, None)
        measurement._run(bench, begun, measured, None)
        assert [one.quarantine for one in store.readings()[6:]] == [False, False, True]
        assert "CPU: 200.0 ms, usually 100.0 (+100 %)" in measured.incomplete[0] and len(measured.incomplete) == 2
        assert uploaded == store.readings()


def test_a_session_is_not_lost_for_want_of_the_readings_after_it(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its blocks are stored; the upload has the reading."""
    times = Times(cpu_ms=100.0, memory_ms=50.0, sync_ms=1.0)
    uploaded: list[CanaryReading] = []
    bench, begun = prepared(tmp_path, configs, "quick")
    bench = replace(bench, spool=cast("Any", SimpleNamespace(keep=uploaded.extend)))
    monkeypatch.setattr(MeasurementSetup, "canary", Canary(tmp_path, read=lambda folder: times, pause_s=0))
    monkeypatch.setattr(measurement, "run_session", lambda *plan, **options: Outcome(planned=1, done=1))
    append = Store.append_reading

    def refuse(store: Store, reading: CanaryReading) -> None:
        if reading.phase == broken:
            raise StoreUnavailable("the disk is full")
        append(store, reading)

    monkeypatch.setattr(Store, "append_reading", refuse)
    with bench.store as store:
        broken, measured = "after", Measured()
        measurement._run(bench, begun, measured, None)
        assert [one.phase for one in store.readings()] == ["before"]
        assert [one.phase for one in uploaded] == ["before", "after"]
        assert measured.done == 1 and unfinished_sessions(tmp_path) == []
        assert measured.incomplete == [
            f"{begun.id} was measured, but not how the machine was after it: the disk is full"
        ]
        broken = "before"
        with pytest.raises(StoreUnavailable):
            measurement._run(bench, begun, measured, None)
        assert measured.done == 1, "nothing is measured that could not be stored"


def test_sessions_of_two_benchmarks_that_begin_in_one_second_differ(tmp_path: Path, configs: Path) -> None:
    bench, begun = prepared(tmp_path, configs, "quick")
    bench.store.close()
    work = Work(begun.measure, begun.config, begun.line, begun.candidates, begun.control)
    insert = replace(work, measure=work.measure.model_copy(update={"benchmark": "insert"}))
    now = datetime(2026, 11, 21, 2, 0, 0, tzinfo=UTC)
    plan = load_plan("nightly", configs)
    assert new_record(plan, "small", work, now, "db1").id == "20261121T020000Z-db1-postgres-17-default-time"
    assert new_record(plan, "small", insert, now, "db1").id == "20261121T020000Z-db1-postgres-17-default-insert-time"


def test_what_was_kept_on_disk_comes_in_before_anything_is_measured(tmp_path: Path, configs: Path) -> None:
    """Else a resumed session would measure those blocks again, under the same ids."""
    bench, _ = prepared(tmp_path, configs, "quick")
    kept, orphan = run("17.1"), run("17.9")
    Spool([tmp_path / "spool"]).keep([SESSION, kept, block(kept, 1.0)])
    lost = Spool([tmp_path / "spool"]).keep([block(orphan, 1.0)])
    with bench.store:
        measured = measure_all(bench, load_plan("nightly", configs), "small", [])
        assert bench.store.block_ids(SESSION.id) == {block(kept, 1.0).id}
    assert spooled([tmp_path / "spool"]) == [lost]
    (problem,) = measured.incomplete
    assert "is not stored" in problem and "pointdrop history recover" in problem


#: `PROGRAM STATE SESSION`: measures that session until its input ends.
CLAIMING = """
import sys
from pathlib import Path
from pointdrop.jobs.session_records import claim

with claim(Path(sys.argv[1]), sys.argv[2]) as ours:
    print(ours, flush=True)
    sys.stdin.read()
"""


def claiming(state: Path, session_id: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLAIMING, str(state), session_id]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "True\n"
    return process


def test_nobody_goes_on_with_a_session_that_another_process_measures(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is what is in it measured twice; when that process dies, the next job goes on with it."""
    ran, said = list[str](), list[str]()
    bench, begun = prepared(tmp_path, configs, "quick")
    bench = replace(bench, say=said.append)
    write_record(tmp_path, begun)
    work = Work(begun.measure, begun.config, begun.line, begun.candidates, begun.control)
    monkeypatch.setattr(measurement, "_run", lambda setup, record, measured, left, **options: ran.append(record.id))
    other = claiming(tmp_path, begun.id)
    plan = load_plan("nightly", configs)
    with bench.store:
        assert (unfinished_sessions(tmp_path), sessions_under_way(tmp_path)) == ([], [begun])
        with claim(tmp_path, begun.id) as ours:
            assert not ours
        measure_all(bench, plan, "small", [work])
        assert ran == [] and begun.id in said[-1]
        other.kill()
        other.communicate()
        assert (unfinished_sessions(tmp_path), sessions_under_way(tmp_path)) == ([begun], [])
        measure_all(bench, plan, "small", [])
    assert ran == [begun.id]


def test_what_another_process_begins_while_this_one_fetches_is_left_to_it(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found it missing when they began; a session of two releases is narrowed to the one that is nobody's."""
    ran, others = list[Any](), list[subprocess.Popen[str]]()
    bench, begun = prepared(tmp_path, configs, "quick")
    begun = replace(begun, id="20200101T000000Z-theirs")
    plan = load_plan("nightly", configs)
    work = Work(begun.measure, begun.config, begun.line, begun.candidates, begun.control)
    more = Release(dbms="postgres", version="17.3", line="17")

    def fetch(setup: MeasurementSetup, wanted: Any, measured: Measured) -> dict[str, Release]:
        if not others:
            write_record(tmp_path, begun)
            others.append(claiming(tmp_path, begun.id))
        return {release.version: release for release in wanted}

    def run(setup: MeasurementSetup, record: Any, measured: Measured, left: None, **options: Any) -> None:
        assert record in sessions_under_way(tmp_path), "others see it, and that it is claimed, before it is measured"
        ran.append(record)

    monkeypatch.setattr(measurement, "_fetch", fetch)
    monkeypatch.setattr(measurement, "_run", run)
    try:
        with bench.store:
            measure_all(bench, plan, "small", [work])
            assert ran == []
            measure_all(bench, plan, "small", [replace(work, candidates=(*work.candidates, more))])
        assert [[release.version for release in record.candidates] for record in ran] == [["17.3"]]
    finally:
        for other in others:
            other.kill()
            other.communicate()


def test_only_one_process_at_a_time_begins_a_session(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the look at what is under way until the record is there."""
    bench, begun = prepared(tmp_path, configs, "quick")
    held = list[str]()

    def fetch(setup: MeasurementSetup, wanted: Any, measured: Measured) -> dict[str, Release]:
        look("fetch")
        return {release.version: release for release in wanted}

    def look(during: str) -> None:
        try:
            FileLock(tmp_path / "sessions" / "begin.lock").acquire(timeout=0)
        except Timeout:
            held.append(during)

    def write(state: Path, record: Any) -> Path:
        look("write")
        return write_record(state, record)

    monkeypatch.setattr(measurement, "_fetch", fetch)
    monkeypatch.setattr(measurement, "write_record", write)
    monkeypatch.setattr(measurement, "_run", lambda setup, record, measured, left, **options: look("run"))
    work = Work(begun.measure, begun.config, begun.line, begun.candidates, begun.control)
    with bench.store:
        measure_all(bench, load_plan("nightly", configs), "small", [work])
    assert held == ["write"], "nobody waits for a download or a session"


def test_a_session_that_ended_leaves_no_lock(tmp_path: Path, configs: Path) -> None:
    bench, begun = prepared(tmp_path, configs, "quick")
    bench.store.close()
    with claim(tmp_path, begun.id) as ours:
        record = write_record(tmp_path, begun)
        assert ours
        record.unlink()
    assert list((tmp_path / "sessions").iterdir()) == []


def test_a_session_of_a_machine_that_changed_is_given_up_and_the_night_goes_on(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each night would end there, before anything new."""
    ran = list[str]()
    bench, begun = prepared(tmp_path, configs, "instructions")
    old = replace(begun, id="20200101T000000Z-old")
    write_record(tmp_path, old)

    def run_session(plan: Any, *rest: object, **options: object) -> Outcome:
        if plan.session_id == old.id:
            raise HostChanged(f"session {old.id} cannot go on; give it up and begin a new one")
        ran.append(plan.session_id)
        return Outcome(planned=2, done=2)

    monkeypatch.setattr(measurement, "_fetch", lambda setup, wanted, measured: {one.version: one for one in wanted})
    monkeypatch.setattr(measurement, "run_session", run_session)
    monkeypatch.setattr(Store, "block_ids", lambda store, session: {"b1", "b2"})
    work = Work(begun.measure, begun.config, begun.line, begun.candidates, begun.control)
    with bench.store:
        measured = measure_all(bench, load_plan("nightly", configs), "small", [work])
    assert len(ran) == 1 and measured.done == 2 and unfinished_sessions(tmp_path) == []
    (told,) = measured.incomplete
    assert old.id in told and "its 2 blocks stay" in told


@pytest.mark.parametrize("resumed", [True, False])
def test_a_host_in_use_leaves_what_is_timed_and_not_the_rest(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch, resumed: bool
) -> None:
    """One that counts may go on beside it; with nothing but timed work there is nothing to go on with. What a session
    that was begun before still has to measure is not begun a second time."""
    refused = list[str]()

    def run_session(plan: Any, *rest: object, **options: object) -> Outcome:
        if plan.lane == "time":
            refused.append(plan.session_id)
            raise HostBusy("process 7 holds core 0")
        return Outcome(planned=2, done=2)

    monkeypatch.setattr(measurement, "_fetch", lambda setup, wanted, measured: {one.version: one for one in wanted})
    monkeypatch.setattr(measurement, "run_session", run_session)
    monkeypatch.setattr(measurement, "_check", lambda *canary: None)
    bench, begun = prepared(tmp_path, configs, "quick")
    timed = Work(begun.measure, begun.config, begun.line, begun.candidates, begun.control)
    counted = replace(
        timed, measure=timed.measure.model_copy(update={"profile": "instructions", "lane": "instructions"})
    )
    plan = load_plan("nightly", configs)
    if resumed:
        write_record(tmp_path, begun)
        monkeypatch.setattr(Store, "block_ids", lambda store, session: {"b1"} if session == begun.id else set())
    with bench.store:
        measured = measure_all(bench, plan, "small", [timed, counted])
        assert measured.done == 2 and len(refused) == 1
        (told,) = measured.incomplete
        assert told == f"{refused[0]}: process 7 holds core 0"
        assert unfinished_sessions(tmp_path) == [begun] * resumed
        with pytest.raises(HostBusy, match="process 7"):
            measure_all(bench, plan, "small", [timed])
        assert measure_all(bench, plan, "small", [timed], measured=measured).done == 2, "the same job did something"


@pytest.mark.parametrize("finished", [set(), {"b1"}])
def test_a_session_that_got_no_core_was_not_begun(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch, finished: set[str]
) -> None:
    """One that was begun before goes on when the host is free."""

    def refuse(*plan: object, **options: object) -> Outcome:
        raise HostBusy("another session measures on this host")

    monkeypatch.setattr(measurement, "run_session", refuse)
    monkeypatch.setattr(Store, "block_ids", lambda store, session: finished)
    bench, begun = prepared(tmp_path, configs, "instructions")
    write_record(tmp_path, begun)
    with bench.store, pytest.raises(HostBusy):
        measurement._run(bench, begun, Measured(), None)
    assert [record.id for record in unfinished_sessions(tmp_path)] == [begun.id] * bool(finished)
