"""A full disk, a read-only file, a lost connection, a killed process: nothing that was measured is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from history.errors import BadUrl, ConflictingRecord, StoreUnavailable, UnknownSeries
from history.importing import import_file
from history.maintenance import REASONS, recover_spool, verify
from history.model import Block, Measurement
from history.spool import Spool, locked, spool_dirs, spooled
from history.store import Store
from tests.builders import READING, SESSION, block, run
from tests.history.postgres import Cluster
from tests.killing import killed_at


@pytest.fixture(autouse=True)
def spool_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both places a spool can be in are the test's own."""
    monkeypatch.setenv("POINTDROP_STATE", str(tmp_path / "var"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)


MEASUREMENT = Measurement(test="point-query", group="point, part 1", metric="qps", value=3.0, better="higher")


def large(number: int) -> Block:
    """A block that needs room."""
    samples = {"point-query": {"qps": tuple(float(hash((number, at)) % 10**9) for at in range(20_000))}}
    return block(run("17.1"), 100.0, number, samples=samples)


def test_a_full_disk_keeps_the_results_and_recover_brings_them_in(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:
        store.append_session(SESSION)
        store.append_run(run("17.1"))
        with store.engine.connect() as connection:
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        with store.engine.connect() as connection:  # SQLite's own words for a disk without room
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(StoreUnavailable, match=r"disk is full.*kept in .*pointdrop history recover") as refused:
            store.append_block(large(1))
        with pytest.raises(StoreUnavailable):
            store.append_block(large(2))
        assert store.blocks("s/17.1") == []
    (path,) = spooled()
    assert str(path) in str(refused.value)
    with Store.open(f"sqlite:///{tmp_path}/elsewhere.db") as other:
        assert import_file(other, path).new == {"session": 1, "run": 1, "block": 2}, "the file needs nothing else"
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:
        assert [report.stored for report in recover_spool(store)] == [True]
        assert store.blocks("s/17.1") == [large(1), large(2)]
        assert recover_spool(store) == []
    assert spooled() == []


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is Linux's")
def test_what_is_spooled_can_be_recovered_whatever_the_names(tmp_path: Path) -> None:
    """A run may have its session's name, and a run that was refused is not kept with the blocks of the stored one."""
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:
        measured = run("17.1").model_copy(update={"id": SESSION.id})
        store.append_session(SESSION)
        store.append_run(measured)
        with pytest.raises(ConflictingRecord):
            store.append_run(measured.model_copy(update={"config": "other"}))
        with store.engine.connect() as connection:
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        with store.engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 4}")
        kept = large(1).model_copy(update={"run_id": measured.id})
        with pytest.raises(StoreUnavailable, match="kept in"):
            store.append_block(kept)
    (path,) = spooled()
    with Store.open(f"sqlite:///{tmp_path}/elsewhere.db") as other:
        assert import_file(other, path).new == {"session": 1, "run": 1, "block": 1}
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:
        assert [report.stored for report in recover_spool(store)] == [True]
        assert store.blocks(measured.id) == [kept]


def test_a_disk_that_is_full_for_the_spool_too_uses_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTDROP_STATE", "/dev/full/var")
    path = Spool().keep([SESSION])
    assert path.parent == spool_dirs()[1]
    with pytest.raises(StoreUnavailable, match="could not be kept on disk either"):
        Spool([Path("/dev/full/a"), Path("/dev/full/b")]).keep([SESSION])


def test_a_spool_of_somebody_else_is_neither_written_nor_read(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "x.jsonl").write_text("{}\n")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    with pytest.raises(StoreUnavailable, match="belongs to somebody else"):
        Spool([tmp_path / "link"]).keep([SESSION])
    assert spooled([tmp_path / "link"]) == []


def test_a_write_that_failed_half_way_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    spool = Spool([tmp_path / "spool"])
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(StoreUnavailable, match="No space left"):
            spool.keep([SESSION])
    assert spooled([tmp_path / "spool"]) == []
    path = spool.keep([SESSION])
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(StoreUnavailable):
            spool.keep([run("17.1")])
    spool.keep([run("17.1")])
    assert len(path.read_text().splitlines()) == 3


def test_a_read_only_database_is_a_clear_error(tmp_path: Path) -> None:
    """SQLite's own switch, since tests may run as root, who may write everywhere."""
    path = tmp_path / "history.db"
    with Store.open(f"sqlite:///{path}") as store:
        store.append_session(SESSION)
        store.append_run(run("17.1"))
        with store.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA query_only = ON")
        with pytest.raises(StoreUnavailable, match=r"read-only.*pointdrop history recover"):
            store.append_block(block(run("17.1"), 1.0))
    with Store.open(f"sqlite:///{path}") as store:
        assert recover_spool(store)[0].new == {"block": 1}


def test_a_directory_that_cannot_be_made_is_a_clear_error() -> None:
    with pytest.raises(StoreUnavailable, match="cannot be made"):
        Store.open("sqlite:////dev/null/here/history.db")
    with pytest.raises(BadUrl, match=r"sqlite:///PATH"):
        Store.open("here/history.db")
    with pytest.raises(BadUrl, match="not in mysql"):
        Store.open("mysql://host/database")
    with pytest.raises(StoreUnavailable, match=r"nothing listens there|see that the database runs"):
        Store.open("postgresql://pointdrop:secret@/h?host=/nowhere")


def test_a_password_is_not_told() -> None:
    with pytest.raises(StoreUnavailable) as refused:
        Store.open("postgresql://pointdrop:secret@127.0.0.1:1/h")
    assert "secret" not in str(refused.value)


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("this is not a database, " * 100)
    with pytest.raises(StoreUnavailable, match="no SQLite database"):
        Store.open(f"sqlite:///{tmp_path}/notes.txt")


@pytest.mark.slow
def test_a_lost_connection_keeps_the_results_and_the_next_append_works() -> None:
    cluster = Cluster(durable=True)  # what was committed must still be there after the crash
    try:
        with Store.open(cluster.new_url()) as store:
            store.append_session(SESSION)
            store.append_run(run("17.1"))
            cluster.stop(hard=True)
            with pytest.raises(StoreUnavailable, match="kept in"):
                store.append_block(block(run("17.1"), 1.0))
            with pytest.raises(StoreUnavailable, match="kept in"):
                store.append_run(run("17.2"))
            with pytest.raises(StoreUnavailable):
                store.runs()
            cluster.start()
            assert store.append_block(block(run("17.2"), 2.0)), "its run goes in before it"
            assert [report.stored for report in recover_spool(store)] == [True]
            assert [len(store.blocks(one.id)) for one in store.runs()] == [1, 1]
    finally:
        cluster.close()


def test_one_connection_that_was_cut_is_not_noticed(cluster: Cluster) -> None:
    with Store.open(cluster.new_url()) as store:
        store.append_session(SESSION)
        cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{store.url.database}'"
        cluster.execute(cut)
        assert store.append_run(run("17.1"))
        cluster.execute(cut)
        assert [one.id for one in store.runs()] == ["s/17.1"]


def test_a_read_only_postgresql_is_a_clear_error(cluster: Cluster) -> None:
    with Store.open(cluster.new_url()) as store:
        store.append_session(SESSION)
        name = store.url.database
    cluster.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with Store.open(store.url) as store, pytest.raises(StoreUnavailable, match="read-only"):
        store.append_run(run("17.1"))


def test_two_spools_of_one_process_and_second_have_two_files(tmp_path: Path) -> None:
    """Also where the second object is where the first one was."""
    assert len({Spool([tmp_path]).keep([SESSION]) for _ in range(50)}) == 50


def test_good_records_of_a_spool_come_in_and_bad_ones_stay_with_the_reason(store: Store) -> None:
    orphan = block(run("17.9"), 1.0)
    other_unit = block(run("17.1"), 3.0, 3, measurements=(MEASUREMENT.model_copy(update={"unit": "ms"}),))
    spool = Spool()
    spool.keep([SESSION, run("17.1"), block(run("17.1"), 1.0)])
    path = spool.keep([orphan, other_unit, block(run("17.1"), 2.0, 2), READING])
    with path.open("ab") as file:
        file.write(b'{"block":{"id":"damaged"}}\n{"block":{"id":"half')
    (report,) = recover_spool(store)
    assert report.new == {"session": 1, "run": 1, "block": 2, "reading": 1}
    assert [one.number for one in store.blocks("s/17.1")] == [1, 2]
    assert (report.stored, report.rejections) == (False, 3)
    assert not verify(store).problems

    lines = path.read_text().splitlines()
    assert [line[:10] for line in lines] == ['{"schema":', '{"session"', '{"run":{"i', *['{"block":{'] * 3]
    reasons = path.with_suffix(REASONS).read_text().splitlines()
    words = ("line 4: run s/17.9 is not stored", "line 5: qps of point-query is stored in", "line 6: block.run_id")
    assert [reason.startswith(said) for reason, said in zip(reasons, words, strict=True)] == [True] * 3
    assert [f"line {one.line}: {one.reason}" for one in report.rejected] == reasons

    (again,) = recover_spool(store)
    assert (again.new, again.rejected) == ({}, report.rejected)
    store.append_run(run("17.9"))
    path.write_text("".join(f"{line}\n" for line in lines[:4]))
    spool.keep([block(run("17.1"), 4.0, 4)])
    assert [report.new for report in recover_spool(store)] == [{"block": 2}]
    assert list(path.parent.iterdir()) == []


def test_what_belongs_to_a_session_of_other_contents_stays_with_it(store: Store) -> None:
    """Its blocks would else be told of another host."""
    store.append_session(SESSION)
    Spool().keep([SESSION.model_copy(update={"host": "fly"}), run("17.1"), block(run("17.1"), 1.0)])
    (report,) = recover_spool(store)
    assert [one.reason.partition(" is stored")[0] for one in report.rejected] == [
        "session s",
        "its session s could not be taken",
        "its run s/17.1 could not be taken",
    ]
    assert store.runs() == []


RECOVER = """
from history.maintenance import recover_spool
from history.store import Store
with Store.open(arguments[0]) as store:
    store.put = dying(store.put)
    recover_spool(store)
"""


@pytest.mark.slow
def test_kill_9_at_any_step_of_a_recovery_loses_and_doubles_nothing(tmp_path: Path) -> None:
    spool = Spool()
    orphan = block(run("17.9"), 1.0)
    path = spool.keep([SESSION, run("17.1"), block(run("17.1"), 1.0), orphan, block(run("17.1"), 2.0, 2)])
    Spool().keep([SESSION, run("17.2"), block(run("17.2"), 1.0)])
    url = f"sqlite:///{tmp_path}/history.db"
    for step in range(100):
        died = killed_at(step, RECOVER, url)
        with Store.open(url) as store:
            stored = [one.number for one in store.blocks("s/17.1")]
            left = [text for file in spooled() for text in file.read_text().splitlines() if '"block"' in text]
            for wanted in (block(run("17.1"), 1.0), block(run("17.1"), 2.0, 2)):
                assert stored.count(wanted.number) == 1 or sum(f'"{wanted.id}"' in text for text in left) == 1
            assert sum(f'"{orphan.id}"' in text for text in left) == 1
        if not died:
            break
    assert step > 5
    with Store.open(url) as store:
        recover_spool(store)
        assert verify(store).problems == ()
        assert {one.id: len(store.blocks(one.id)) for one in store.runs()} == {"s/17.1": 2, "s/17.2": 1}
        assert spooled() == [path]
        assert "run s/17.9 is not stored" in path.with_suffix(REASONS).read_text()


def test_a_killed_process_leaves_half_a_line_which_is_dropped(store: Store) -> None:
    path = Spool().keep([SESSION, run("17.1"), block(run("17.1"), 1.0)])
    with path.open("a") as file:
        file.write('{"block":{"id":"half')
    assert [report.stored for report in recover_spool(store)] == [True]
    assert len(store.blocks("s/17.1")) == 1


def test_half_of_a_first_line_is_nothing_to_recover(store: Store) -> None:
    path = Spool().keep([SESSION])
    path.write_bytes(path.read_bytes()[:10])
    assert [(report.stored, report.new) for report in recover_spool(store)] == [(True, {})]
    assert spooled() == []


def test_nothing_is_added_to_a_file_between_its_recovery_and_its_end(store: Store) -> None:
    """A block that is kept while somebody recovers goes into a new file, with what it needs."""
    spool = Spool()
    path = spool.keep([SESSION, run("17.1"), block(run("17.1"), 1.0)])
    kept: list[Path] = []
    later = [SESSION, run("17.1"), block(run("17.1"), 2.0, 2)]
    writer = threading.Thread(target=lambda: kept.append(spool.keep(later)))
    with locked(path, "rb"):
        writer.start()
        writer.join(0.3)
        assert kept == [], "it waits for the recovery"
        path.unlink()
    writer.join(60)
    assert kept == [path]
    assert recover_spool(store)[0].new == {"session": 1, "run": 1, "block": 1}
    assert [one.number for one in store.blocks("s/17.1")] == [2]


def test_a_program_error_is_not_spooled(store: Store) -> None:
    with pytest.raises(UnknownSeries):
        store.append_block(block(run("17.1"), 1.0))
    assert spooled() == []


APPEND_FOR_EVER = textwrap.dedent(
    """
    import sys
    from history.store import Store
    from tests.builders import SESSION, block, run
    with Store.open(sys.argv[1]) as store:
        store.append_session(SESSION)
        store.append_run(run("17.1"))
        number = int(sys.argv[2])
        while True:
            number += 1
            samples = {"point-query": {"qps": tuple(float(at) for at in range(2000))}}
            store.append_block(block(run("17.1"), float(number), number, samples=samples))
            print(number, flush=True)
    """
)


@pytest.mark.slow
def test_kill_9_in_the_middle_of_an_append_leaves_a_valid_store(url: str) -> None:
    """Every block that was reported as appended is there, whole; at most one more."""
    last = 0
    for round_ in range(4):
        command = [sys.executable, "-c", APPEND_FOR_EVER, url, str(last)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        assert process.stdout is not None
        for line in process.stdout:
            last = int(line)
            if last % 10 == round_ + 3:
                time.sleep(0.003 * round_)
                os.kill(process.pid, signal.SIGKILL)
                break
        rest = [int(line) for line in process.stdout]
        last = max([last, *rest])
        process.wait()
        process.stdout.close()
        with Store.open(url) as store:
            numbers = [one.number for one in store.blocks("s/17.1", details=False)]
            assert numbers[:last] == list(range(1, last + 1))
            assert len(numbers) <= last + 1
            assert verify(store).problems == ()
            last = len(numbers)
