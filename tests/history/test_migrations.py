"""Tables are what the code says, change with data in place in both directions, and keep their rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from history.database import current_revision, migrate, newest_revision, open_engine, parse_url, reading, writing
from history.errors import StoreUnavailable
from history.maintenance import verify
from history.schema import metadata
from history.store import Store
from tests.builders import READING, SESSION, block, run


def fill(store: Store) -> None:
    store.append_session(SESSION)
    for number, version in enumerate(("17.1", "17.2"), 1):
        store.append_run(run(version))
        store.append_block(block(run(version), 100.0 / number, samples={"point-query": {"qps": (1.5, 2.5)}}))


def test_the_migrations_make_the_tables_of_the_schema(store: Store) -> None:
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert current_revision(connection) == newest_revision()


def test_down_and_up_again_with_data_in_place(url: str) -> None:
    with Store.open(url) as store:
        fill(store)
        series = list(store.series())
        store.supersede("block", "s/17.2/1", "the fan was broken")
        migrate(store.engine, "0001")
    engine = open_engine(parse_url(url))
    with engine.connect() as connection:
        assert current_revision(connection) == "0001"
        assert "supersession" not in inspect(connection).get_table_names()
        assert connection.execute(text("SELECT count(*) FROM measurement")).scalar_one() == 2
    engine.dispose()
    with Store.open(url) as store:  # opening brings it up to date
        assert list(store.series()) == series, "going back drops corrections, and only them"
        assert verify(store).problems == ()


def test_readings_come_and_go_with_their_revision_and_nothing_else_does(url: str) -> None:
    """A history of before the machine canary was kept is brought up with its data, and can go back."""
    with Store.open(url) as store:
        fill(store)
        series = list(store.series())
        migrate(store.engine, "0002")
        with store.engine.connect() as connection:
            assert "reading" not in inspect(connection).get_table_names()
    for _ in range(2):
        with Store.open(url) as store:
            assert store.readings() == [] and list(store.series()) == series
            assert store.append_reading(READING) and not store.append_reading(READING)
            assert store.readings() == [READING] and verify(store).problems == ()
            migrate(store.engine, "0002")
            with store.engine.connect() as connection:
                assert connection.execute(text("SELECT count(*) FROM measurement")).scalar_one() == 2


def test_down_to_nothing_and_up_again(url: str) -> None:
    with Store.open(url) as store:
        fill(store)
        migrate(store.engine, "base")
        with store.engine.connect() as connection:
            assert inspect(connection).get_table_names() == ["alembic_version"]
    with Store.open(url) as store:
        fill(store)
        assert verify(store).blocks == 2


def test_a_history_of_a_newer_pointdrop_is_left_alone(url: str) -> None:
    with Store.open(url) as store, writing(store.engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreUnavailable, match="newer Pointdrop"):
        Store.open(url)


def test_many_processes_open_a_new_history_at_once(url: str) -> None:
    def one(_: int) -> Any:
        with Store.open(url) as store:
            return store.lines()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(8))) == [[]] * 8


def test_rows_cannot_be_changed_or_deleted(store: Store) -> None:
    fill(store)
    store.append_reading(READING)
    for statement in (
        "UPDATE measurement SET value = 0",
        "UPDATE block SET status = 'noisy'",
        "DELETE FROM measurement",
        "DELETE FROM session",
        "DELETE FROM series WHERE test = 'point-query'",
        "UPDATE reading SET verdict = 'usual'",
        "DELETE FROM reading",
    ):
        with pytest.raises(DBAPIError, match="append-only"), writing(store.engine) as connection:
            connection.execute(text(statement))
    assert verify(store).problems == ()


def test_every_table_is_kept(store: Store) -> None:
    """A new table must get its triggers too."""
    found = {
        "sqlite": "SELECT tbl_name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT event_object_table FROM information_schema.triggers",
    }[store.engine.dialect.name]
    with reading(store.engine) as connection:
        assert set(connection.execute(text(found)).scalars()) == {table.name for table in metadata.sorted_tables}


def test_rows_know_the_tool_version_that_wrote_them(store: Store) -> None:
    fill(store)
    with reading(store.engine) as connection:
        for table in metadata.sorted_tables:
            if "writer_pk" in table.c:
                query = text(f"SELECT DISTINCT writer.version FROM {table.name} JOIN writer ON writer.pk = writer_pk")
                versions = set(connection.execute(query).scalars())
                assert all(version.startswith("pointdrop ") for version in versions)
                assert versions or table.name not in ("session", "run", "block", "release", "series")
