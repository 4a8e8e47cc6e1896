"""Keeping a history well: verify, backup, restore, merge, recover.

A backup is a SQLite file of the same tables with the same rows, whatever the history itself is in; it can be opened,
queried and restored into SQLite or PostgreSQL. A merge takes over what another history has and this one lacks.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, func, select, text

from history import canary, outcomes, schema, writing
from history.database import (
    advice,
    current_revision,
    newest_revision,
    parse_url,
    reading,
    sqlite_path,
    sqlite_url,
)
from history.database import writing as write_transaction
from history.errors import InvalidRecord, StoreUnavailable
from history.files import replaced, write_atomically
from history.importing import ImportReport, Rejection, import_lines, read_lines
from history.interchange import KINDS, Record
from history.model import Row
from history.queries import blocks, pins, runs, sessions
from history.records import digest
from history.spool import locked, spooled
from history.store import Store

#: Rows copied with one statement.
ROWS = 5_000
#: Problems that are told one by one.
MAX_PROBLEMS = 50
#: Of the file that says why a spool file could not be taken whole.
REASONS = ".reasons.txt"


class VerifyReport(Row):
    """What was checked, and what is wrong."""

    sessions: int
    runs: int
    blocks: int
    measurements: int
    problems: tuple[str, ...] = ()


def verify(store: Store, *, deep: bool = True) -> VerifyReport:
    """Check the database file, the foreign keys, the revision, and (`deep`) every row against its digest."""
    problems: list[str] = []
    seen: Counter[str] = Counter()
    measurements = 0
    try:
        with reading(store.engine) as connection:
            problems += _database_problems(connection)
            if current_revision(connection) != newest_revision():
                problems.append("the tables are of another revision; open the history once to migrate it")
            measurements = int(connection.execute(select(func.count()).select_from(schema.measurement)).scalar_one())
            for problem in _row_problems(connection, seen, deep):
                if len(problems) < MAX_PROBLEMS:
                    problems.append(problem)
    except StoreUnavailable as error:  # so damaged that it cannot be read on
        problems.append(str(error))
    return VerifyReport(
        sessions=seen["session"],
        runs=seen["run"],
        blocks=seen["block"],
        measurements=measurements,
        problems=tuple(problems),
    )


def _database_problems(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return
    for said in connection.execute(text("PRAGMA integrity_check")).scalars():
        if said != "ok":
            yield f"integrity check: {said}"
    for table, row, parent, _ in connection.execute(text("PRAGMA foreign_key_check")):
        yield f"row {row} of {table} points to no row of {parent}"


def _orphans(connection: Connection) -> Iterator[str]:
    """Measurements have no foreign keys, so their parents are looked for here."""
    value = schema.measurement.c
    for table, column in ((schema.series, value.series_pk), (schema.block, value.block_pk)):
        of = select(column).distinct().where(column.not_in(select(table.c.pk)))
        for (pk,) in connection.execute(of):
            yield f"measurements point to {table.name} {pk}, which is not there; restore them from a backup"


def _row_problems(connection: Connection, seen: Counter[str], deep: bool) -> Iterator[str]:
    stored = {
        table.name: {row.id: row.digest for row in connection.execute(select(table.c.id, table.c.digest))}
        for table in (schema.session, schema.run, schema.block)
    }
    for name, digests in stored.items():
        seen[name] = len(digests)
    if not deep:
        return
    yield from _orphans(connection)
    yield from canary.problems(connection)
    for record in _records(connection):
        kind = KINDS[type(record)]
        if digest(record) != stored[kind].pop(record.id):
            yield f"{kind} {record.id} is not what was written; restore it from a backup"
    for name, digests in stored.items():
        for missing in digests:
            yield f"{name} {missing} cannot be read back"


def _records(connection: Connection) -> Iterator[Record]:
    """Everything that was measured, parents first, the blocks of one run in memory at a time."""
    yield from sessions(connection)
    for run in list(runs(connection)):
        yield run
        yield from blocks(connection, run.id)


def backup(store: Store, out: Path) -> Path:
    """Write a backup of one moment to `out`, which appears whole or not at all."""
    if out.exists():
        raise InvalidRecord(f"{out} exists; name another file, a backup overwrites nothing")
    try:
        with replaced(out) as draft:
            _copy_whole(store, draft)
    except sqlite3.Error as error:
        raise StoreUnavailable(f"the backup {out}: {advice(str(error))}") from error
    except OSError as error:
        raise StoreUnavailable(f"the backup {out} cannot be written: {error.strerror or error}") from error
    return out


def _copy_whole(store: Store, out: Path) -> None:
    if sqlite_path(store.url) is not None:
        with store.engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("VACUUM INTO ?", (str(out),))
        return
    with Store.open(sqlite_url(out)) as copy, reading(store.engine) as source:
        with write_transaction(copy.engine) as target:
            copy_tables(source, target)
        with copy.engine.connect() as connection:
            driver = connection.connection.driver_connection
            driver.execute("PRAGMA journal_mode=DELETE")  # one file, without its log beside it


def restore(source: Path, url: str) -> VerifyReport:
    """Put a backup into an empty history, after checking it. Returns what the restored history holds."""
    if not source.is_file():
        raise InvalidRecord(f"there is no backup {source}")
    with tempfile.TemporaryDirectory(prefix="pointdrop-restore-") as folder:
        copy = Path(folder) / "backup.db"  # the backup itself is neither migrated nor written to
        shutil.copyfile(source, copy)
        try:
            backup_store = Store.open(sqlite_url(copy))
        except StoreUnavailable as error:
            raise InvalidRecord(f"{source} is no backup of a history: {str(error).partition(': ')[2]}") from error
        with backup_store as held:
            report = verify(held)
            if report.problems:
                raise InvalidRecord(f"{source} is damaged: {report.problems[0]}")
            with Store.open(url) as target:
                with reading(held.engine) as rows, write_transaction(target.engine) as connection:
                    if connection.execute(select(schema.writer.c.pk).limit(1)).first():
                        raise InvalidRecord(f"{target.url} holds rows already; restore into an empty one, or merge")
                    copy_tables(rows, connection)
                return verify(target)


def copy_tables(source: Connection, target: Connection) -> None:
    """Every row, with its numbers; the target's tables are empty."""
    for table in schema.metadata.sorted_tables:
        rows = source.execution_options(yield_per=ROWS).execute(select(table)).mappings()
        for chunk in rows.partitions(ROWS):
            if table is schema.measurement:
                names = writing.MEASUREMENT_COLUMNS
                writing.insert_measurements(target, [tuple(row[name] for name in names) for row in chunk])
            else:
                target.execute(table.insert(), [dict(row) for row in chunk])
        if target.dialect.name == "postgresql" and "pk" in table.c:
            target.execute(
                text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'pk'), max(pk)) FROM {table.name}")
            )


def merge(store: Store, other: Store) -> dict[str, int]:
    """Take over everything `other` has: pins, what was measured, corrections, detections, events, links.

    All of it is of one moment of `other`, which others may write to meanwhile. Twice is once. ConflictingRecord stops
    it when the two hold different rows of one id; what was taken over until then is stored, run by run.
    """
    new: Counter[str] = Counter()
    with reading(other.engine) as source:
        for release in pins(source):
            new["release"] += store.pin_release(release)
        for session in sessions(source):
            new["session"] += store.append_session(session)
        for run in list(runs(source)):
            run_is_new, *blocks_are_new = store.transact(partial(_put_all, records=(run, *blocks(source, run.id))))
            new["run"] += run_is_new
            new["block"] += sum(blocks_are_new)
        for canary_reading in canary.readings(source):
            new["reading"] += store.append_reading(canary_reading)
        for correction in outcomes.supersessions(source):
            new["supersession"] += store.transact(partial(outcomes.supersede, correction=correction))
        for detection in outcomes.detections(source):
            findings = outcomes.findings(source, detection.pk)
            new["detection"] += store.transact(partial(outcomes.take_over, detection=detection, findings=findings))
        for event in outcomes.events(source):
            new["event"] += store.append_event(event)
        for link in outcomes.links(source):
            new["link"] += store.append_link(link)
    return {kind: count for kind, count in new.items() if count}


def _put_all(connection: Connection, row_keys: writing.RowKeys, records: Sequence[Record]) -> list[bool]:
    return [Store.put(connection, row_keys, record) for record in records]


@contextmanager
def opened(url: str | URL) -> Iterator[Store]:
    """Another history, which has to be there: opening a wrong path would make an empty one."""
    path = sqlite_path(parse_url(url))
    if path is not None and not path.is_file():
        raise InvalidRecord(f"there is no history {path}")
    with Store.open(url) as store:
        yield store


def recover_spool(store: Store, dirs: Sequence[Path] | None = None) -> list[ImportReport]:
    """Import spooled results; a file whose results are in the history is removed.

    Of any other the good records come in. What is left of it stays to be tried again, the reasons beside it in a file
    of its name with REASONS. A process that is killed here leaves files that are recovered as well the next time. A
    last line without its end is what a killed process left: the results in it were never finished, and it is dropped.
    """
    reports = []
    for path in spooled(dirs):
        try:
            with locked(path, "rb") as file:
                reports.append(_recover_file(store, path, file.read()))
        except FileNotFoundError:  # somebody else was recovering it
            continue
    return reports


def _recover_file(store: Store, path: Path, content: bytes) -> ImportReport:
    """Import one file, which the caller holds, and leave what could not be taken. Lines are those of what is left."""
    whole = content[: content.rfind(b"\n") + 1]
    report = ImportReport(file=str(path))
    if whole:
        report = import_lines(store, str(path), lambda: read_lines([whole]), partial=True)
    reasons = path.with_suffix(REASONS)
    if report.stored:
        reasons.unlink(missing_ok=True)
        path.unlink()
        return report
    bad = {rejection.line: rejection.reason for rejection in report.rejected}
    # Sessions and runs stay, so that the file can be imported anywhere; a file not read to its end stays as it is.
    lines = [
        (line, bad.get(number))
        for number, line in enumerate(whole.split(b"\n")[:-1], 1)
        if number in bad or bad.keys() & {0, 1} or not line.startswith((b'{"block":', b'{"reading":'))
    ]
    rejected = [Rejection(line=0, reason=bad[0])] if 0 in bad else []
    rejected += [Rejection(line=number, reason=reason) for number, (_, reason) in enumerate(lines, 1) if reason]
    write_atomically(reasons, "".join(f"line {rejection.line}: {rejection.reason}\n" for rejection in rejected))
    write_atomically(path, b"".join(line + b"\n" for line, _ in lines))
    return report.model_copy(update={"rejected": tuple(rejected)})
