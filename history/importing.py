"""Files into a history: each is stored whole or not at all, and twice is once.

A `pointdrop.run/1` file is read line by line; other formats are read whole by `history.importers`. Every line that
cannot be taken is reported with its number and the reason, and then nothing of the file is stored.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from pydantic import Field
from sqlalchemy import Connection

from history.errors import HistoryError, InvalidRecord, StoreUnavailable, UnknownSeries
from history.interchange import KINDS, Record, read_header, read_record
from history.limits import MAX_FILE_BYTES, MAX_LINE_BYTES, MAX_LINES, MAX_REJECTIONS
from history.model import Block, Row, Run, Session
from history.store import Store
from history.writing import RowKeys

GZIP_MAGIC = b"\x1f\x8b"


class Rejection(Row):
    """One line that was not taken."""

    line: int
    """From 1; 0 stands for the file."""
    reason: str


class ImportReport(Row):
    """What became of one file."""

    file: str
    new: dict[str, int] = Field(default_factory=dict)
    """Records by kind that the history did not have."""
    unchanged: int = 0
    """Records it had already."""
    rejected: tuple[Rejection, ...] = ()
    """The first of them; `rejections` counts all."""
    rejections: int = 0

    @property
    def stored(self) -> bool:
        """Whether all of the file's records are in the history now."""
        return self.rejections == 0


class RecordLine(NamedTuple):
    """A record, or why there is none, with the number of its line."""

    number: int
    record: Record | None
    reason: str = ""


class _Undone(Exception):
    """Ends the transaction of a file that shall not be stored."""


def read_bytes(path: Path) -> bytes:
    """A whole file, decompressed. InvalidRecord when it is too large or damaged."""
    content = b"".join(chunks(path))
    if len(content) > MAX_FILE_BYTES:
        raise InvalidRecord(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    return content


def chunks(path: Path) -> Iterator[bytes]:
    """A file piece by piece, decompressed. InvalidRecord when it is damaged or cannot be read."""
    size, total = 1 << 20, 0
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == GZIP_MAGIC
        with gzip.open(path) if zipped else path.open("rb") as file:
            while total <= MAX_FILE_BYTES and (chunk := file.read(size)):
                total += len(chunk)
                yield chunk
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidRecord(f"{path} is damaged: {error}") from None
    except OSError as error:
        raise InvalidRecord(f"{path} cannot be read: {error.strerror or error}") from None


def split_lines(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not empty. InvalidRecord when a line, or their number, is out of bounds."""
    rest, number, total = b"", 0, 0
    for chunk in chunks:
        total += len(chunk)
        if total > MAX_FILE_BYTES:
            raise InvalidRecord(f"larger than {MAX_FILE_BYTES} bytes; split the file")
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            number += 1
            if number > MAX_LINES or len(line) > MAX_LINE_BYTES:
                raise InvalidRecord(f"line {number}: more than {MAX_LINES} lines or {MAX_LINE_BYTES} bytes in one")
            if line.strip():
                yield number, line
        if len(rest) > MAX_LINE_BYTES:
            raise InvalidRecord(f"line {number + 1} is longer than {MAX_LINE_BYTES} bytes")
    if rest.strip():
        yield number + 1, rest


def read_lines(chunks: Iterable[bytes]) -> Iterator[RecordLine]:
    """Records of a `pointdrop.run/1` file, one bad line after another."""
    first = True
    try:
        for number, line in split_lines(chunks):
            try:
                if first:
                    read_header(line)
                    first = False
                    continue
                yield RecordLine(number, read_record(line))
            except InvalidRecord as error:
                yield RecordLine(number, None, str(error))
                if first:
                    return
    except InvalidRecord as error:
        yield RecordLine(0, None, str(error))
        return
    if first:
        yield RecordLine(0, None, "the file is empty")


def import_lines(
    store: Store, name: str, lines: Callable[[], Iterable[RecordLine]], *, dry_run: bool = False, partial: bool = False
) -> ImportReport:
    """Store all records of one source in one transaction, or none. `lines` may be called more than once.

    `dry_run` does everything but keep it. `partial` stores the good records of a source that has bad ones too, and
    reports every one of these.
    """
    report = ImportReport(file=name)
    reported = MAX_LINES if partial else MAX_REJECTIONS

    def work(connection: Connection, row_keys: RowKeys) -> ImportReport:
        nonlocal report
        new: Counter[str] = Counter()
        rejected: list[Rejection] = []
        refused: set[tuple[type[Record], str]] = set()
        unchanged = rejections = 0
        for line in lines():
            reason = line.reason
            if line.record is not None:
                try:  # also after a rejection, so that one import tells all that is wrong
                    if (parent := _parent(line.record)) in refused:
                        raise UnknownSeries(f"its {KINDS[parent[0]]} {parent[1]} could not be taken")
                    with connection.begin_nested() if partial else nullcontext():
                        fresh = store.put(connection, row_keys, line.record)
                    new[KINDS[type(line.record)]] += fresh
                    unchanged += not fresh
                    continue
                except StoreUnavailable:
                    raise
                except HistoryError as error:
                    row_keys.forget()
                    refused.add((type(line.record), line.record.id))
                    reason = str(error)
            rejections += 1
            if len(rejected) < reported:
                rejected.append(Rejection(line=line.number, reason=reason))
        if rejections and not partial:
            report = ImportReport(file=name, rejected=tuple(rejected), rejections=rejections)
            raise _Undone
        report = ImportReport(
            file=name,
            new={kind: count for kind, count in new.items() if count},
            unchanged=unchanged,
            rejected=tuple(rejected),
            rejections=rejections,
        )
        if dry_run:
            raise _Undone
        return report

    try:
        return store.transact(work)
    except _Undone:
        return report


def _parent(record: Record) -> tuple[type[Record], str] | None:
    """The record that has to be stored before this one."""
    if isinstance(record, Block):
        return Run, record.run_id
    return (Session, record.session_id) if isinstance(record, Run) else None


def import_file(store: Store, path: Path, *, dry_run: bool = False) -> ImportReport:
    """One `pointdrop.run/1` file, gzip'd or not."""
    return import_lines(store, str(path), lambda: read_lines(chunks(path)), dry_run=dry_run)


def import_records(store: Store, name: str, records: Sequence[Record]) -> ImportReport:
    """Records made by this process, for instance out of another format; their numbers count from 1."""
    return import_lines(store, name, lambda: [RecordLine(number, record) for number, record in enumerate(records, 1)])
