"""Rows into tables: each function takes an open transaction and one value, and returns whether it was new.

The same id with the same contents is nothing new; with other contents it is ConflictingRecord. Rows that many values
share (host, fingerprint, release, series, ...) are looked up once and remembered for as long as the store is open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from history import schema
from history.errors import ConflictingRecord, UnknownSeries
from history.model import Block, LineKey, Measurement, Release, Run, Session
from history.queries import LINE_COLUMNS
from history.records import digest, in_order, pack, text_of, writer

#: Columns of a measurement, in the order of the tuples that are written.
MEASUREMENT_COLUMNS = ("series_pk", "block_pk", "value", "operations", "warnings")


#: Where `RowKeys` has no series: facts that are nobody's.
NO_SERIES: tuple[tuple[str, ...], int] = ((), 0)


@dataclass
class RowKeys:
    """Numbers of rows that are certainly committed or belong to the transaction under way."""

    by_values: dict[Hashable, int] = field(default_factory=dict)
    runs: dict[str, tuple[int, LineKey]] = field(default_factory=dict)
    """By id: the run's number, and what all its series share."""
    series: dict[LineKey, dict[tuple[str, str], tuple[tuple[str, ...], int]]] = field(default_factory=dict)
    """By line, then (test, metric): (group, unit, better) and number."""

    def forget(self) -> None:
        """After a transaction that failed, nothing is certain."""
        self.by_values.clear()
        self.runs.clear()
        self.series.clear()


def insert_new(connection: Connection, table: Table, values: dict[str, Any]) -> int | None:
    """The number of the new row, or None when a unique key says it is there already."""
    return connection.execute(_insertion(table, connection.dialect.name), values).scalar_one_or_none()


@cache
def _insertion(table: Table, dialect: str) -> Any:
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    return insert(table).on_conflict_do_nothing().returning(table.c.pk)


def stamp(connection: Connection, row_keys: RowKeys) -> dict[str, Any]:
    """When and by which tool version a row is written."""
    return {"written_at": datetime.now(UTC), "writer_pk": writer_key(connection, row_keys)}


def writer_key(connection: Connection, row_keys: RowKeys) -> int:
    """The number of this tool version."""
    return shared_key(connection, row_keys, schema.writer, {"version": writer()}, stamped=False)


def append_row(connection: Connection, row_keys: RowKeys, table: Table, row: dict[str, Any]) -> bool:
    """A stamped row; False when a unique key says it is there already."""
    return insert_new(connection, table, row | stamp(connection, row_keys)) is not None


def shared_key(
    connection: Connection,
    row_keys: RowKeys,
    table: Table,
    unique: dict[str, Any],
    rest: dict[str, Any] | None = None,
    *,
    stamped: bool = True,
) -> int:
    """The number of the row of `table` with the values `unique`, made if there is none."""
    name = (table.name, *unique.values())
    if name in row_keys.by_values:
        return row_keys.by_values[name]
    query = select(table.c.pk).where(*(table.c[column] == value for column, value in unique.items()))
    pk = connection.execute(query).scalar_one_or_none()
    if pk is None:
        row = unique | (rest or {}) | (stamp(connection, row_keys) if stamped else {})
        pk = insert_new(connection, table, row)
    if pk is None:  # another process was quicker
        pk = connection.execute(query).scalar_one()
    row_keys.by_values[name] = int(pk)
    return row_keys.by_values[name]


def is_new(connection: Connection, table: Table, public: dict[str, str], content: str) -> bool:
    """False when the row is stored with this very digest; ConflictingRecord when with another."""
    query = select(table.c.digest).where(*(table.c[column] == value for column, value in public.items()))
    held = connection.execute(query).scalar_one_or_none()
    if held is not None and held != content:
        raise ConflictingRecord(
            f"{table.name} {' '.join(public.values())} is stored with other contents; "
            "a correction is a new row with its own id that supersedes this one"
        )
    return held is None


def _insert_or_match(connection: Connection, table: Table, public: dict[str, str], row: dict[str, Any]) -> int | None:
    """Insert a row by its public id; None when another process has just written the same."""
    pk = insert_new(connection, table, public | row)
    if pk is None:
        is_new(connection, table, public, row["digest"])
    return pk


def append_session(connection: Connection, row_keys: RowKeys, session: Session) -> bool:
    """Session, with its host, fingerprint and epoch."""
    content = digest(session)
    if not is_new(connection, schema.session, {"id": session.id}, content):
        return False
    host = shared_key(connection, row_keys, schema.host, {"name": session.host})
    facts = {"facts": text_of(session.fingerprint.facts)}
    prints = shared_key(connection, row_keys, schema.fingerprint, {"digest": session.fingerprint.digest}, facts)
    row = {
        "epoch_pk": shared_key(connection, row_keys, schema.epoch, {"host_pk": host, "fingerprint_pk": prints}),
        "digest": content,
        **session.model_dump(include=set(schema.PLAIN["session"])),
        **stamp(connection, row_keys),
    }
    return _insert_or_match(connection, schema.session, {"id": session.id}, row) is not None


def release_row(release: Release, pinned: bool) -> dict[str, Any]:
    """Columns of a release besides its digest."""
    values = release.model_dump()
    values["archive_digest"] = values.pop("digest")
    return values | {"pinned": pinned}


def append_run(connection: Connection, row_keys: RowKeys, run: Run) -> bool:
    """Run, with its release and bundle. UnknownSeries without its session."""
    content = digest(run)
    if not is_new(connection, schema.run, {"id": run.id}, content):
        return False
    query = select(schema.session.c.pk).where(schema.session.c.id == run.session_id)
    session_pk = connection.execute(query).scalar_one_or_none()
    if session_pk is None:
        raise UnknownSeries(f"run {run.id} is of session {run.session_id}, which is not stored; append it first")
    _check_pin(connection, run.release)
    release = {"digest": digest(run.release), "pinned": False}
    # Runs of one session mostly share options and bundle; they are stored once.
    whole = run.model_dump(mode="json", include={"options", "bundle", "toolchain"})
    bundle = pack(whole)
    # What a run of before could not have is not in its name, or it would be stored once more.
    named = hashlib.sha256(text_of(list(whole.values())).encode()).hexdigest()
    row = {
        "session_pk": session_pk,
        "release_pk": shared_key(
            connection, row_keys, schema.release, release, release_row(run.release, False) | release
        ),
        "bundle_pk": shared_key(connection, row_keys, schema.bundle, {"digest": named}, {"content": bundle}),
        "digest": content,
        **run.model_dump(include=set(schema.PLAIN["run"])),
        **stamp(connection, row_keys),
    }
    return _insert_or_match(connection, schema.run, {"id": run.id}, row) is not None


def _check_pin(connection: Connection, release: Release) -> None:
    """ConflictingRecord when this build is pinned to another archive."""
    table = schema.release
    query = select(table.c.archive_digest).where(
        table.c.pinned,
        table.c.dbms == release.dbms,
        table.c.version == release.version,
        table.c.build == release.build,
    )
    held = connection.execute(query).scalar_one_or_none()
    if held and release.digest and held != release.digest:
        raise ConflictingRecord(
            f"{release.name} ({release.build or 'no build named'}) is pinned to {held}, not to {release.digest}; "
            "the archive changed after it was pinned, so find out why before measuring it"
        )


def pin_release(connection: Connection, row_keys: RowKeys, release: Release) -> bool:
    """The first pin of a build wins; the same digest again is nothing new."""
    _check_pin(connection, release)
    row = release_row(release, True) | {"digest": digest(release)} | stamp(connection, row_keys)
    pk = insert_new(connection, schema.release, row)
    if pk is None:
        _check_pin(connection, release)
    return pk is not None


def _run_and_line(connection: Connection, row_keys: RowKeys, run_id: str) -> tuple[int, LineKey]:
    """The number of a run, and what its series share. UnknownSeries when the run is not stored."""
    if run_id not in row_keys.runs:
        run, session, release = schema.run.c, schema.session.c, schema.release.c
        query = (
            select(run.pk, *LINE_COLUMNS)
            .select_from(schema.run)
            .join(schema.session, session.pk == run.session_pk)
            .join(schema.release, release.pk == run.release_pk)
            .where(run.id == run_id)
        )
        row = connection.execute(query).one_or_none()
        if row is None:
            raise UnknownSeries(f"run {run_id} is not stored; append it before its blocks")
        row_keys.runs[run_id] = (row[0], LineKey(*row[1:]))
    return row_keys.runs[run_id]


def _series_keys(
    connection: Connection, row_keys: RowKeys, line: LineKey, measurements: Sequence[Measurement]
) -> list[int]:
    """The numbers of the series that measurements belong to, made where there is none."""
    stored = row_keys.series.get(line)
    if stored is None:
        stored = row_keys.series[line] = _load_series(connection, line)
    new = [
        measurement
        for measurement in measurements
        if stored.get((measurement.test, measurement.metric), NO_SERIES)[0]
        != (measurement.group, measurement.unit, measurement.better)
    ]
    for measurement in in_order(new):  # all publishers in one order, or two would wait for each other's new series
        _new_series(connection, row_keys, line, measurement)
    return [stored[measurement.test, measurement.metric][1] for measurement in measurements]


def _new_series(connection: Connection, row_keys: RowKeys, line: LineKey, measurement: Measurement) -> None:
    """A series for a new test or metric, or for one in another group.

    ConflictingRecord when the same test and metric is stored with another unit or direction: such values must never
    meet in one series.
    """
    facts = (measurement.group, measurement.unit, measurement.better)
    held = row_keys.series[line].get((measurement.test, measurement.metric))
    if held is not None and held[0][1:] != facts[1:]:
        raise ConflictingRecord(
            f"{measurement.metric} of {measurement.test} is stored in {held[0][1]!r} ({held[0][2]} is better), this "
            f"one is in {measurement.unit!r} ({measurement.better} is better); give the metric another name"
        )
    unique = line._asdict() | {"test": measurement.test, "metric": measurement.metric}
    unique |= zip(schema.SERIES_FACTS, facts, strict=True)
    rest = {"writer_pk": writer_key(connection, row_keys)}
    pk = shared_key(connection, row_keys, schema.series, unique, rest, stamped=False)
    row_keys.series[line][measurement.test, measurement.metric] = (facts, pk)


def _load_series(connection: Connection, line: LineKey) -> dict[tuple[str, str], tuple[tuple[str, ...], int]]:
    table = schema.series.c
    query = (
        select(table.test, table.metric, table.test_group, table.unit, table.better, table.pk)
        .where(*(table[name] == value for name, value in line._asdict().items()))
        .order_by(table.pk)
    )
    return {(row[0], row[1]): ((row[2], row[3], row[4]), row[5]) for row in connection.execute(query)}


def append_block(connection: Connection, row_keys: RowKeys, block: Block) -> bool:
    """Block with its measurements and details. UnknownSeries without its run."""
    run_pk, line = _run_and_line(connection, row_keys, block.run_id)
    row = {
        "run_pk": run_pk,
        "digest": digest(block),
        **block.model_dump(include=set(schema.PLAIN["block"])),
        "warnings": text_of(block.warnings),
        **stamp(connection, row_keys),
    }
    pk = _insert_or_match(connection, schema.block, {"id": block.id}, row)
    if pk is None:
        return False
    keys = _series_keys(connection, row_keys, line, block.measurements)
    rows = [
        (key, pk, measured.value, measured.operations, text_of(measured.warnings) if measured.warnings else None)
        for key, measured in zip(keys, block.measurements, strict=True)
    ]
    insert_measurements(connection, rows)
    details = [
        {"block_pk": pk, "kind": kind, "test": test, "content": pack(value)}
        for kind, by_test in block.model_dump(mode="json", include=set(schema.DETAIL_KINDS)).items()
        for test, value in by_test.items()
    ]
    details += [
        {"block_pk": pk, "kind": kind, "test": "", "content": pack(value)}
        for kind, value in block.model_dump(mode="json", include=set(schema.WHOLE_DETAIL_KINDS)).items()
    ]
    if details:
        connection.execute(schema.detail.insert(), details)
    return True


def insert_measurements(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """The one place where volume counts: COPY in PostgreSQL, one prepared statement in SQLite."""
    if not rows:
        return
    columns = ", ".join(MEASUREMENT_COLUMNS)
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(MEASUREMENT_COLUMNS))
        connection.exec_driver_sql(f"INSERT INTO measurement ({columns}) VALUES ({marks})", list(rows))
        return
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(f"COPY measurement ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
