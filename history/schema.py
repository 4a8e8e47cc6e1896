"""The tables, for SQLite and PostgreSQL alike. `history/migrations` makes them; a test compares the two.

```
release     one build of one release, pinned or met in a run
host, fingerprint, epoch (a host with a fingerprint)
reading     what a host took for the machine canary's fixed work, before or after a session
session     of an epoch          run     of a session and a release, with its bundle
block       of a run             series  what a value is of; unit, group and direction with it
measurement one value: (series, block)
detail      per-second samples, function costs and plans of one test in one block, and its phases and the
            settings of its server, compressed
detection, finding, event (state and acknowledgements of a finding), link (its issues)
supersession  what a later row corrects, and why
writer      the tool version every row was written by, directly or through its block or detection
```

Rows are never changed or deleted: triggers refuse both. `id` is the public name of a row, `pk` a number for joins
that has no meaning outside one database; `digest` is the sha256 of the row's canonical record (`history.records`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMES)

#: SQLite numbers rows by itself only for INTEGER; PostgreSQL needs 64 bits for what may pass two thousand million.
Number = BigInteger().with_variant(Integer(), "sqlite")


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC: `timestamptz` in PostgreSQL, ISO text in SQLite, which has no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _key() -> Column[int]:
    return Column("pk", Number, primary_key=True, autoincrement=True)


def _of(target: str, *, index: bool = False) -> Column[int]:
    return Column(f"{target}_pk", Number, ForeignKey(f"{target}.pk"), nullable=False, index=index)


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _column(name: str, kind: TypeEngine[Any] | type[TypeEngine[Any]]) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _table(name: str, *parts: SchemaItem, unique: Sequence[str] = ()) -> Table:
    """A table of numbered rows, each with when this store took it, and by which tool version."""
    constraints = [UniqueConstraint(*unique)] if unique else []
    return Table(name, metadata, _key(), *parts, _column("written_at", UtcDateTime), _of("writer"), *constraints)


writer = Table("writer", metadata, _key(), *_texts("version"), UniqueConstraint("version"))

release = _table(
    "release",
    *_texts("dbms", "version", "line", "build", "archive_digest", "source"),
    Column("released", Date),
    _column("pinned", Boolean),
    *_texts("digest"),
    Index(None, "dbms", "version"),
    # The first pin of a build wins, whoever else pins at the same moment.
    Index(
        "uq_release_pin",
        "dbms",
        "version",
        "build",
        unique=True,
        sqlite_where=text("pinned"),
        postgresql_where=text("pinned"),
    ),
    unique=("digest", "pinned"),
)

host = _table("host", *_texts("name"), unique=("name",))
fingerprint = _table("fingerprint", *_texts("digest", "facts"), unique=("digest",))
epoch = _table("epoch", _of("host"), _of("fingerprint"), unique=("host_pk", "fingerprint_pk"))

reading = _table(
    "reading",
    _of("host"),
    _column("at", UtcDateTime),
    # By its public id, and no foreign key: the session before which a host was found sick never began.
    *_texts("session_id", "phase"),
    *(_column(name, Float(53)) for name in ("cpu_ms", "memory_ms", "sync_ms")),
    *_texts("verdict", "reasons"),
    _column("quarantine", Boolean),
    *_texts("digest"),
    Index(None, "host_pk", "at"),
    unique=("digest",),
)

session = _table(
    "session",
    *_texts("id"),
    _of("epoch"),
    *_texts("server", "plan"),
    _column("seed", BigInteger),
    _column("started", UtcDateTime),
    *_texts("control", "digest"),
    unique=("id",),
)

bundle = _table("bundle", *_texts("digest"), _column("content", LargeBinary), unique=("digest",))

run = _table(
    "run",
    *_texts("id"),
    _of("session", index=True),
    _of("release", index=True),
    _of("bundle"),
    *_texts("config", "benchmark", "profile", "lane", "digest"),
    unique=("id",),
)

block = _table(
    "block",
    *_texts("id"),
    _of("run", index=True),
    _column("number", BigInteger),
    _column("started", UtcDateTime),
    _column("ended", UtcDateTime),
    *_texts("status", "reason", "warnings", "digest"),
    unique=("id",),
)

SERIES_FACTS = ("test_group", "unit", "better")
series = Table(
    "series",
    metadata,
    _key(),
    *_texts("dbms", "line", "server", "config", "benchmark", "test", "metric", *SERIES_FACTS),
    _of("writer"),
    # `dbms, server, config, benchmark, line`: the order in which a line is read.
    UniqueConstraint(
        "dbms", "server", "config", "benchmark", "line", "test", "metric", *SERIES_FACTS, name="uq_series_key"
    ),
)

measurement = Table(
    "measurement",
    metadata,
    # No foreign keys: both rows are made or found in the same transaction, none is ever deleted, and checking them for
    # every value costs a third of an append. `history verify` looks for orphans.
    Column("series_pk", Number, primary_key=True, autoincrement=False),
    Column("block_pk", Number, primary_key=True, autoincrement=False),
    _column("value", Float(53)),
    Column("operations", BigInteger),
    Column("warnings", Text),
    # No index by block: a block's series are known from its run, and each is one step down this key.
    sqlite_with_rowid=False,
)

#: Details by test, or by part; of a block as a whole, with no test.
DETAIL_KINDS = ("samples", "functions", "calls", "plans", "phases")
WHOLE_DETAIL_KINDS = ("settings",)
detail = Table(
    "detail",
    metadata,
    Column("block_pk", Number, ForeignKey("block.pk"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("test", Text, primary_key=True),
    _column("content", LargeBinary),
)

detection = _table("detection", _column("at", UtcDateTime), *_texts("settings_digest", "digest"))
finding = Table(
    "finding",
    metadata,
    _key(),
    _of("detection"),
    _column("number", Integer),
    *_texts("key", "kind", "tier", "dbms", "line", "release"),
    _column("content", LargeBinary),
    UniqueConstraint("detection_pk", "key"),
    Index(None, "key"),
)
event = _table(
    "event",
    *_texts("key", "event", "actor", "detail", "digest"),
    _column("at", UtcDateTime),
    Index(None, "key"),
    unique=("digest",),
)
link = _table(
    "link",
    *_texts("key", "tracker", "url", "digest"),
    _column("number", BigInteger),
    Index(None, "key"),
    unique=("digest",),
)

#: Columns that hold a field of the record as it is, besides its id.
PLAIN = {
    "session": ("server", "plan", "seed", "started", "control"),
    "run": ("config", "benchmark", "profile", "lane"),
    "block": ("number", "started", "ended", "status", "reason"),
    "reading": ("at", "session_id", "phase", "cpu_ms", "memory_ms", "sync_ms", "verdict", "quarantine"),
}

SUPERSEDED_KINDS = ("session", "run", "block")
supersession = _table(
    "supersession",
    *_texts("kind", "target_id", "reason", "digest"),
    Column("replacement_id", Text),
    _column("at", UtcDateTime),
    Index("ix_supersession_target", "kind", "target_id"),
    unique=("digest",),
)
