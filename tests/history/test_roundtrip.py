"""Whatever goes in comes out the same: through a database, through the interchange format, through both."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from history.errors import InvalidRecord
from history.exporters import write
from history.importing import import_file
from history.interchange import line_of_record, read_record
from history.maintenance import verify
from history.model import Block, CanaryReading, EffectiveSetting, Measurement, Run, Session
from history.records import digest, pack, unpack
from history.store import Store
from tests.builders import DAY, READING, SESSION, block, run
from tests.history.postgres import Cluster
from tests.history.values import BLOCKS, JSON, READINGS, RUNS, SESSIONS

#: The store is new for every example where that is cheap; PostgreSQL gets fewer examples.
SQLITE = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
POSTGRES = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def through(store: Store, session: Session, one: Run, of: Block) -> tuple[Session, Run, Block]:
    store.append_session(session)
    store.append_run(one)
    assert store.append_block(of)
    assert not store.append_block(of)
    return store.sessions()[0], store.runs()[0], store.blocks("r")[0]


@SQLITE
@given(SESSIONS, RUNS, BLOCKS)
def test_sqlite_gives_back_what_it_got(session: Session, one: Run, of: Block) -> None:
    with Store.open("sqlite://") as store:
        assert through(store, session, one, of) == (session, one, of)
        assert verify(store).problems == ()


@SQLITE
@given(READINGS)
def test_sqlite_gives_back_a_reading(reading: CanaryReading) -> None:
    with Store.open("sqlite://") as store:
        assert store.append_reading(reading) and not store.append_reading(reading)
        assert store.readings() == [reading] and verify(store).problems == ()


@POSTGRES
@given(READINGS)
def test_postgresql_gives_back_a_reading(cluster: Cluster, reading: CanaryReading) -> None:
    with Store.open(cluster.new_url()) as store:
        assert store.append_reading(reading) and not store.append_reading(reading)
        assert store.readings() == [reading] and verify(store).problems == ()


@POSTGRES
@given(SESSIONS, RUNS, BLOCKS)
def test_postgresql_gives_back_what_it_got(cluster: Cluster, session: Session, one: Run, of: Block) -> None:
    with Store.open(cluster.new_url()) as store:
        assert through(store, session, one, of) == (session, one, of)
        assert verify(store).problems == ()


@given(st.one_of(SESSIONS, RUNS, BLOCKS, READINGS))
def test_a_line_gives_back_its_record(record: Session | Run | Block | CanaryReading) -> None:
    assert read_record(line_of_record(record).encode()) == record


@given(JSON)
def test_packed_is_unpacked(value: object) -> None:
    assert unpack(pack(value)) == value


def test_minus_zero_is_zero_in_both_databases(store: Store) -> None:
    store.append_session(SESSION)
    store.append_run(run("17.1"))
    store.append_block(block(run("17.1"), -0.0))
    assert str(store.blocks("s/17.1")[0].measurements[0].value) == "0.0"
    assert not store.append_block(block(run("17.1"), 0.0))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 123456789.123456789, 2.0**53 + 2])
def test_numbers_survive_exactly(store: Store, tmp_path: Path, value: float) -> None:
    store.append_session(SESSION)
    store.append_run(run("17.1"))
    store.append_block(block(run("17.1"), value))
    store.append_reading(READING.model_copy(update={"cpu_ms": abs(value)}))
    write(store, "jsonl", tmp_path / "out.jsonl.gz", {})
    with Store.open(f"sqlite:///{tmp_path}/other.db") as other:
        assert import_file(other, tmp_path / "out.jsonl.gz").stored
        assert list(other.series()) == list(store.series())
        assert other.readings() == store.readings() != []
    (series,) = store.series()
    assert series.points[0].values[0].value == value


def test_the_order_of_measurements_and_keys_does_not_matter(store: Store) -> None:
    one, other = (Measurement(test=name, metric="qps", value=1.0) for name in "ab")
    first = block(run("17.1"), 0, measurements=(one, other), plans={"a": (), "b": ()})
    second = block(run("17.1"), 0, measurements=(other, one), plans={"b": (), "a": ()})
    assert digest(first) == digest(second)


def test_a_block_without_what_came_later_is_the_record_it_was() -> None:
    """Stores of before keep their digests; this one was made by code that knew neither phases nor settings."""
    before = block(run("17.1"), 100.0, samples={"point-query": {"qps": (1.5, 2.5)}})
    assert digest(before) == "da3a6d4d1bb66e1ae9fd46578b864125184f0161141943c24766c236cfb24847"
    assert digest(before.model_copy(update={"phases": {"block": {"stop": 0.5}}})) != digest(before)
    assert digest(before.model_copy(update={"settings": {"jit": EffectiveSetting(value="on")}})) != digest(before)


def test_two_values_of_one_test_and_metric_are_no_block(store: Store) -> None:
    one = Measurement(test="a", metric="qps", value=1.0)
    store.append_session(SESSION)
    store.append_run(run("17.1"))
    with pytest.raises(InvalidRecord, match="give each repetition its own block"):
        store.append_block(block(run("17.1"), 0, measurements=(one, one)))


def test_a_nul_character_is_refused_before_it_reaches_a_database(store: Store) -> None:
    with pytest.raises(InvalidRecord, match="NUL"):
        store.append_session(SESSION.model_copy(update={"plan": "a\0b"}))


def test_two_hosts_in_two_zones_append_to_one_history(store: Store) -> None:
    from datetime import timedelta, timezone

    there = timezone(timedelta(hours=-7))
    moved = SESSION.model_copy(update={"id": "t", "started": DAY.astimezone(there)})
    store.append_session(Session.model_validate(moved.model_dump()))
    assert store.sessions()[0].started == DAY
