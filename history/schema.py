"""The tables, for SQLite and PostgreSQL alike. `history/migrations` makes them; a test compares the two.

```
release     one build of one release, pinned or met in a run
host, fingerprint, epoch (a host with a fingerprint)
reading     what a host took for the machine canary's fixed work, before or after a session
session     of an epoch          run     of a session and a release, with its bundle
block       of a run             series  what a value is of; unit, group and direction with it
measurement one value: (series, block)
detail      per-second samples, function costs and plans of one test in one block, compressed
detection, finding, event (state and acknowledgements of a finding), link (its issues)
supersession  what a later row corrects, and why
writer      the tool version every row was written by, directly or through its block or detection
```

Rows are never changed or deleted: triggers refuse both. `id` is the public name of a row, `pk` a number for joins
that has no meaning outside one database; `digest` is the sha256 of the row's canonical record (`history.records`).
"""

from __future__ import annotations

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


def _of(target: str, *, name: str | None = None, nullable: bool = False) -> Column[int]:
    return Column(name or f"{target}_pk", Number, ForeignKey(f"{target}.pk"), nullable=nullable)


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable)


def _written() -> list[Column[Any]]:
    """When this store took the row, and by which tool version."""
    return [Column("written_at", UtcDateTime, nullable=False), _of("writer")]


writer = Table("writer", metadata, _key(), _text("version"), UniqueConstraint("version"))

release = Table(
    "release",
    metadata,
    _key(),
    *(_text(name) for name in ("dbms", "version", "line", "build", "archive_digest", "source")),
    Column("released", Date),
    Column("pinned", Boolean, nullable=False),
    _text("digest"),
    *_written(),
    UniqueConstraint("digest", "pinned"),
    Index("ix_release_dbms_version", "dbms", "version"),
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
)

host = Table("host", metadata, _key(), _text("name"), *_written(), UniqueConstraint("name"))
fingerprint = Table(
    "fingerprint", metadata, _key(), _text("digest"), _text("facts"), *_written(), UniqueConstraint("digest")
)
epoch = Table(
    "epoch",
    metadata,
    _key(),
    _of("host"),
    _of("fingerprint"),
    *_written(),
    UniqueConstraint("host_pk", "fingerprint_pk"),
)

reading = Table(
    "reading",
    metadata,
    _key(),
    _of("host"),
    Column("at", UtcDateTime, nullable=False),
    # By its public id, and no foreign key: the session before which a host was found sick never began.
    *(_text(name) for name in ("session_id", "phase")),
    *(Column(name, Float(53), nullable=False) for name in ("cpu_ms", "memory_ms", "sync_ms")),
    *(_text(name) for name in ("verdict", "reasons")),
    Column("quarantine", Boolean, nullable=False),
    _text("digest"),
    *_written(),
    UniqueConstraint("digest"),
    Index("ix_reading_host_pk_at", "host_pk", "at"),
)

session = Table(
    "session",
    metadata,
    _key(),
    _text("id"),
    _of("epoch"),
    _text("server"),
    _text("plan"),
    Column("seed", BigInteger, nullable=False),
    Column("started", UtcDateTime, nullable=False),
    _text("control"),
    _text("digest"),
    *_written(),
    UniqueConstraint("id"),
)

bundle = Table(
    "bundle",
    metadata,
    _key(),
    _text("digest"),
    Column("content", LargeBinary, nullable=False),
    *_written(),
    UniqueConstraint("digest"),
)

run = Table(
    "run",
    metadata,
    _key(),
    _text("id"),
    _of("session"),
    _of("release"),
    _of("bundle"),
    *(_text(name) for name in ("config", "benchmark", "profile", "lane", "digest")),
    *_written(),
    UniqueConstraint("id"),
    Index("ix_run_session_pk", "session_pk"),
    Index("ix_run_release_pk", "release_pk"),
)

block = Table(
    "block",
    metadata,
    _key(),
    _text("id"),
    _of("run"),
    Column("number", BigInteger, nullable=False),
    Column("started", UtcDateTime, nullable=False),
    Column("ended", UtcDateTime, nullable=False),
    *(_text(name) for name in ("status", "reason", "warnings", "digest")),
    *_written(),
    UniqueConstraint("id"),
    Index("ix_block_run_pk", "run_pk"),
)

SERIES_KEY = ("dbms", "line", "server", "config", "benchmark", "test", "metric")
SERIES_FACTS = ("test_group", "unit", "better")
series = Table(
    "series",
    metadata,
    _key(),
    *(_text(name) for name in (*SERIES_KEY, *SERIES_FACTS)),
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
    Column("value", Float(53), nullable=False),
    Column("operations", BigInteger),
    _text("warnings", nullable=True),
    # No index by block: a block's series are known from its run, and each is one step down this key.
    sqlite_with_rowid=False,
)

DETAIL_KINDS = ("samples", "functions", "plans")
detail = Table(
    "detail",
    metadata,
    Column("block_pk", Number, ForeignKey("block.pk"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("test", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

detection = Table(
    "detection",
    metadata,
    _key(),
    Column("at", UtcDateTime, nullable=False),
    _text("settings_digest"),
    _text("digest"),
    *_written(),
)
finding = Table(
    "finding",
    metadata,
    _key(),
    _of("detection"),
    Column("number", Integer, nullable=False),
    *(_text(name) for name in ("key", "kind", "tier", "dbms", "line", "release")),
    Column("content", LargeBinary, nullable=False),
    UniqueConstraint("detection_pk", "key"),
    Index("ix_finding_key", "key"),
)
event = Table(
    "event",
    metadata,
    _key(),
    *(_text(name) for name in ("key", "event", "actor", "detail", "digest")),
    Column("at", UtcDateTime, nullable=False),
    *_written(),
    UniqueConstraint("digest"),
    Index("ix_event_key", "key"),
)
link = Table(
    "link",
    metadata,
    _key(),
    *(_text(name) for name in ("key", "tracker", "url", "digest")),
    Column("number", BigInteger, nullable=False),
    *_written(),
    UniqueConstraint("digest"),
    Index("ix_link_key", "key"),
)

SUPERSEDED_KINDS = ("session", "run", "block")
supersession = Table(
    "supersession",
    metadata,
    _key(),
    *(_text(name) for name in ("kind", "target_id", "reason", "digest")),
    _text("replacement_id", nullable=True),
    Column("at", UtcDateTime, nullable=False),
    *_written(),
    UniqueConstraint("digest"),
    Index("ix_supersession_target", "kind", "target_id"),
)
