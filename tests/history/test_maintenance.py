"""Verify, backup, restore and merge, between the two databases and within each."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from history import maintenance, queries
from history.database import writing
from history.errors import ConflictingRecord, InvalidRecord
from history.maintenance import backup, merge, opened, restore, verify
from history.model import Finding, FindingEvent, IssueLink, Release, Session
from history.store import Store
from tests.builders import DAY, READING, SESSION, block, run
from tests.history.postgres import Cluster

FINDING = Finding(
    key="postgres/17/17.2/regression",
    kind="regression",
    tier="confirmed",
    dbms="postgres",
    line="17",
    previous="17.1",
    release="17.2",
    moves=(),
    evidence=("2 of 2 blocks agree",),
)


def fill(store: Store) -> None:
    store.pin_release(Release(dbms="postgres", version="17.1", line="17", build="maven", digest="ab"))
    store.append_session(SESSION)
    for version, value in (("17.1", 100.0), ("17.2", 90.0)):
        store.append_run(run(version))
        store.append_block(block(run(version), value, samples={"point-query": {"qps": (1.5, 2.5)}}))
    store.append_block(block(run("17.2"), 5.0, 2))
    store.supersede("block", "s/17.2/2", "the disk was full")
    store.append_detection([FINDING], "settings")
    store.append_event(FindingEvent(key=FINDING.key, event="filed", at=DAY, detail={"number": 7}))
    store.append_link(IssueLink(key=FINDING.key, tracker="files", number=7))
    store.append_reading(READING)


def contents(store: Store) -> list[object]:
    return [
        list(store.series()),
        store.sessions(),
        store.runs(),
        store.releases(),
        store.findings(),
        store.events(),
        store.links(),
        store.readings(),
        [one[:4] for one in store.supersessions()],
        store.samples("s/17.1/1"),
    ]


def test_verify_counts_what_is_there(store: Store) -> None:
    fill(store)
    report = verify(store)
    assert report.model_dump() == {"sessions": 1, "runs": 2, "blocks": 3, "measurements": 3, "problems": ()}


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE measurement SET value = 100.1 WHERE value = 100", "block s/17.1/1 is not what was written"),
        ("DELETE FROM measurement WHERE value = 90", "block s/17.2/1 is not what was written"),
        ("UPDATE run SET config = 'other' WHERE id = 's/17.1'", "run s/17.1 is not what was written"),
        ("UPDATE session SET seed = 8", "session s is not what was written"),
        ("UPDATE reading SET cpu_ms = 1", "reading bee/2026-01-04T23:59:00+00:00 is not what was written"),
        ("UPDATE reading SET cpu_ms = -1", "reading bee/2026-01-04T23:59:00+00:00 is not what was written"),
        ("UPDATE reading SET reasons = '['", "reading bee/2026-01-04T23:59:00+00:00 is not what was written"),
        ("UPDATE measurement SET block_pk = 99 WHERE value = 90", "block 99, which is not there"),
    ],
)
def test_verify_finds_what_was_changed_behind_its_back(store: Store, statement: str, problem: str) -> None:
    fill(store)
    with writing(store.engine) as connection:
        if store.engine.dialect.name == "sqlite":
            for table in ("measurement", "reading", "run", "session"):
                for verb in ("update", "delete"):
                    connection.execute(text(f"DROP TRIGGER keep_{table}_{verb}"))
        else:
            connection.execute(text("DROP FUNCTION pointdrop_keep() CASCADE"))
        connection.execute(text(statement))
    assert any(problem in one for one in verify(store).problems), verify(store).problems


def test_verify_finds_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with Store.open(f"sqlite:///{path}") as store:
        fill(store)
    with sqlite3.connect(path) as connection:
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ix_run_session_pk'").fetchone()[0]
    content = bytearray(path.read_bytes())
    content[(root - 1) * page + 8 : root * page] = b"\xff" * (page - 8)
    path.write_bytes(content)
    with Store.open(f"sqlite:///{path}") as store:
        problems = verify(store, deep=False).problems
        assert any("integrity check" in one or "damaged" in one for one in problems), problems


def test_a_backup_restores_into_either_database(store: Store, cluster: Cluster, tmp_path: Path) -> None:
    fill(store)
    kept = contents(store)
    path = backup(store, tmp_path / "backups" / "history.db")
    before = path.read_bytes()
    for url in (f"sqlite:///{tmp_path}/restored.db", cluster.new_url()):
        assert restore(path, url).problems == ()
        with Store.open(url) as restored:
            assert contents(restored) == kept
            assert not restored.append_session(SESSION)
            assert restored.append_session(SESSION.model_copy(update={"id": "new"})), "numbers go on after the copied"
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["history.db"]


def test_a_backup_overwrites_nothing_and_a_restore_neither(store: Store, tmp_path: Path) -> None:
    fill(store)
    path = backup(store, tmp_path / "b.db")
    with pytest.raises(InvalidRecord, match="overwrites nothing"):
        backup(store, path)
    with pytest.raises(InvalidRecord, match="holds rows already"):
        restore(path, store.url.render_as_string(hide_password=False))


def test_a_damaged_backup_is_not_restored(store: Store, tmp_path: Path) -> None:
    fill(store)
    path = backup(store, tmp_path / "b.db")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER keep_measurement_update")
        connection.execute("UPDATE measurement SET value = 1")
    with pytest.raises(InvalidRecord, match="damaged"):
        restore(path, f"sqlite:///{tmp_path}/r.db")
    with pytest.raises(InvalidRecord, match="no backup"):
        restore(tmp_path / "nothing.db", f"sqlite:///{tmp_path}/r.db")


def test_a_merge_takes_over_what_is_missing_and_nothing_twice(store: Store, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/other.db") as other:
        fill(other)
        new = merge(store, other)
        assert (new["block"], new["detection"], new["event"], new["link"], new["supersession"]) == (3, 1, 1, 1, 1)
        assert contents(store) == contents(other)
        assert merge(store, other) == {}


def test_a_merge_keeps_the_newest_detection_newest(store: Store, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/other.db") as other:
        other.append_detection([FINDING], "old")
        store.append_detection([], "new")
        merge(store, other)
        assert store.findings() == []


def test_a_merge_is_of_one_moment_of_a_history_that_grows(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that begins after the sessions were read brings neither its run nor its correction."""
    late = SESSION.model_copy(update={"id": "late"})
    with Store.open(f"sqlite:///{tmp_path}/other.db") as other, Store.open(other.url) as runner:
        fill(other)
        held = contents(other)

        def read(connection: Connection) -> list[Session]:
            found = queries.sessions(connection)
            runner.append_session(late)
            runner.append_run(run("17.3", session="late"))
            runner.append_block(block(run("17.3", session="late"), 80.0))
            runner.supersede("session", "late", "too late")
            return found

        with monkeypatch.context() as patched:
            patched.setattr(maintenance, "sessions", read)
            merge(store, other)
        assert contents(store) == held
        merge(store, other)
        assert contents(store) == contents(other) != held


def test_a_merge_stops_at_a_conflict(store: Store, tmp_path: Path) -> None:
    fill(store)
    with Store.open(f"sqlite:///{tmp_path}/other.db") as other:
        other.append_session(SESSION.model_copy(update={"started": DAY + timedelta(days=1)}))
        with pytest.raises(ConflictingRecord, match="session s"):
            merge(store, other)


def test_merging_from_a_history_that_is_not_there_makes_none(tmp_path: Path) -> None:
    path = tmp_path / "typo.db"
    with pytest.raises(InvalidRecord, match="no history"), opened(f"sqlite:///{path}"):
        pass
    assert not path.exists()


def test_a_backup_while_others_append_is_of_one_moment(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:
        fill(store)
        with Store.open(store.url) as writer:
            writer.append_run(run("17.3"))
            path = backup(store, tmp_path / "b.db")
            writer.append_block(block(run("17.3"), 1.0))
    shutil.copyfile(path, tmp_path / "c.db")
    with Store.open(f"sqlite:///{tmp_path}/c.db") as copy:
        assert verify(copy).problems == ()
        assert (len(copy.runs()), len(copy.blocks("s/17.3"))) == (3, 0)
