"""Readings of the machine canary into the store and back: what a host took for a fixed piece of work, and when.

Same habits as `history.writing`: an open transaction, one value, True when it was new. A reading has no id of its
own that others name; the same reading again is nothing new. A history without any is as good as one with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from history import schema
from history.model import CanaryReading
from history.records import digest, text_of
from history.writing import RowKeys, append_row, shared_key

PLAIN = schema.PLAIN["reading"]


def append_reading(connection: Connection, row_keys: RowKeys, reading: CanaryReading) -> bool:
    """One reading, with its host."""
    row = {
        "host_pk": shared_key(connection, row_keys, schema.host, {"name": reading.host}),
        **reading.model_dump(include=set(PLAIN)),
        "reasons": text_of(reading.reasons),
        "digest": digest(reading),
    }
    return append_row(connection, row_keys, schema.reading, row)


def _stored(connection: Connection) -> Iterator[tuple[dict[str, Any], str]]:
    """What readings are made of, by time, then host, each with the digest it was written with."""
    table, host = schema.reading.c, schema.host.c
    columns = [table[name] for name in (*PLAIN, "reasons", "digest")]
    query = (
        select(host.name, *columns).join_from(schema.reading, schema.host).order_by(table.at, host.name, table.digest)
    )
    for name, *plain, reasons, written in connection.execute(query):
        yield {"host": name, **dict(zip(PLAIN, plain, strict=True)), "reasons": reasons}, written


def _reading_of(stored: dict[str, Any]) -> CanaryReading:
    return CanaryReading(**{**stored, "reasons": tuple(json.loads(stored["reasons"]))})


def readings(connection: Connection) -> list[CanaryReading]:
    """All of them, by time, then host."""
    return [_reading_of(stored) for stored, _ in _stored(connection)]


def problems(connection: Connection) -> Iterator[str]:
    """A sentence for each reading that is not what was written."""
    for stored, written in _stored(connection):
        try:
            whole = digest(_reading_of(stored)) == written
        except ValueError:  # pydantic's and json's errors are of this kind
            whole = False
        if not whole:
            name = f"{stored['host']}/{stored['at'].isoformat()}"
            yield f"reading {name} is not what was written; restore it from a backup"
