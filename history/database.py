"""Opening a database, migrating it, and turning what drivers say into errors a person can act on.

SQLite runs in WAL mode with foreign keys on, and a commit is on disk when it returns. Writers take their lock at the
start of a transaction, so that none fails half way; they wait for each other up to BUSY_SECONDS.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import StaticPool

from history.errors import BadUrl, StoreUnavailable

#: How long a writer of SQLite waits for another.
BUSY_SECONDS = 60
#: Seconds until a PostgreSQL that does not answer counts as gone.
CONNECT_SECONDS = 10
#: Page cache of one connection to SQLite, in KiB.
SQLITE_CACHE_KIB = 64 * 1024
#: "pointdrop" as a number: the advisory lock under which PostgreSQL migrates.
MIGRATION_LOCK = 0x706F696E74

MIGRATIONS = Path(__file__).parent / "migrations"
#: Alembic keeps the migration under way in module globals, so one thread of a process migrates at a time.
_MIGRATING = threading.Lock()


def parse_url(url: str | URL) -> URL:
    """`url` checked: SQLite with a file, or PostgreSQL through psycopg. BadUrl says which forms there are."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise BadUrl(f"{url!r} is no history; give sqlite:///PATH or postgresql+psycopg://USER@HOST/DATABASE") from None
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise BadUrl(f"a history is in sqlite or postgresql+psycopg, not in {parsed.drivername}")
    return parsed


def sqlite_path(url: URL) -> Path | None:
    """The file of a SQLite history; None for PostgreSQL, and for a history in memory."""
    in_file = url.drivername == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(url.database or "") if in_file else None


def sqlite_url(path: Path) -> URL:
    """The URL of a SQLite history in a file, whatever characters its name has."""
    return URL.create("sqlite", database=str(path))


def open_engine(url: URL) -> Engine:
    """An engine with the settings above. Connects to nothing yet."""
    if url.drivername != "sqlite":
        return create_engine(url, connect_args={"connect_timeout": CONNECT_SECONDS})
    path = sqlite_path(url)
    if path is None:  # one connection, or every one would see a database of its own
        engine = create_engine(url, poolclass=StaticPool)
    else:
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{path.parent} cannot be made: {error.strerror}") from error

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin in `begin` below, not when the driver thinks so
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            f"cache_size=-{SQLITE_CACHE_KIB}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection whose queries all see one state of the history."""
    with explained(engine):
        if engine.dialect.name == "postgresql":
            _drop_stale(engine)
        with engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield connection


def _drop_stale(engine: Engine) -> None:
    """Empty the pool of connections that a restart of the server has cut.

    Only readers ask first: a writer repeats its transaction anyway, and should not pay for another round trip.
    """
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction that writes: all of it is stored, or nothing."""
    with explained(engine), engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


@contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Turn errors about the database itself into StoreUnavailable, also those of the driver where it is used alone."""
    try:
        yield
    except _driver_errors("Error") as error:
        said = error.orig if isinstance(error, DBAPIError) else error
        damaged = type(said) is sqlite3.DatabaseError  # its subclasses are about what was asked
        unavailable = isinstance(said, _driver_errors("OperationalError"))
        if not (damaged or unavailable or getattr(said, "sqlstate", None) in REFUSED):
            raise
        raise StoreUnavailable(f"{_where(engine.url)}: {advice(str(said))}") from error


def _driver_errors(name: str) -> tuple[type[Exception], ...]:
    """DBAPIError, and the error of that name of each driver in use: psycopg is loaded for a history in PostgreSQL."""
    drivers = (sqlite3, sys.modules.get("psycopg"))
    return (DBAPIError, *(getattr(driver, name) for driver in drivers if driver))


#: States of PostgreSQL that are about the database, not about what was asked of it, as its OperationalError is:
#: read-only transaction, no privilege, disk full, shutting down.
REFUSED = frozenset({"25006", "42501", "53100", "57P01", "57P02", "57P03"})
#: States after which the same transaction may succeed: serialization failure, deadlock, connection cut by the server.
PASSING = frozenset({"40001", "40P01", "57P01"})


def is_passing(error: BaseException) -> bool:
    """Whether the same transaction may succeed a moment later."""
    cause = error.__cause__ if isinstance(error, StoreUnavailable) else error
    said = cause.orig if isinstance(cause, DBAPIError) else cause
    cut = isinstance(cause, DBAPIError) and cause.connection_invalidated
    return cut or getattr(said, "sqlstate", None) in PASSING


def _where(url: URL) -> str:
    return url.render_as_string(hide_password=True)


#: What a driver says, and what to do about it.
ADVICE = (
    ("disk is full", "the disk is full; free some space"),
    ("no space left", "the disk is full; free some space"),
    ("readonly", "the file is read-only; give this account write permission on it and its directory"),
    ("read-only", "the database is read-only; connect to the primary, or end its read-only mode"),
    ("permission denied", "this account may not write there; grant it the permission"),
    ("unable to open", "the file cannot be opened; check that its directory exists and may be written"),
    ("locked", "another process holds the database; wait for it to finish"),
    ("malformed", "the file is damaged; restore a backup with: pointdrop history restore"),
    ("not a database", "the file is no SQLite database; name another with --history"),
    ("refused", "nothing listens there; start PostgreSQL or correct the host and port"),
    ("password", "the password is wrong; correct it in the URL or in ~/.pgpass"),
)


def advice(said: str) -> str:
    """What the driver said, on one line, and what to do next."""
    said = " ".join(said.split())
    hint = next((hint for words, hint in ADVICE if words in said.lower()), "see that the database runs, then repeat")
    return f"{hint} ({said})"


# --- migrations --------------------------------------------------------------------------------------------------


def newest_revision() -> str:
    """The revision this version of Pointdrop reads and writes; each is in a file that begins with its number."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def current_revision(connection: Connection) -> str | None:
    """The revision the database is at; None when it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the database to `revision`, up or down, in one transaction; other processes wait meanwhile.

    StoreUnavailable when a newer Pointdrop wrote it.
    """
    with explained(engine), engine.connect() as connection:
        if revision == "head" and current_revision(connection) == newest_revision():
            return
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    with _MIGRATING, writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes["connection"] = connection
        script = ScriptDirectory.from_config(config)
        now = current_revision(connection)
        revisions = {script_revision.revision for script_revision in script.walk_revisions()}
        if now is not None and now not in revisions:
            raise StoreUnavailable(
                f"{_where(engine.url)} was written by a newer Pointdrop (revision {now}); update this one"
            )
        target = script.as_revision_number(revision)
        order = ["base", *reversed([script_revision.revision for script_revision in script.walk_revisions()])]
        back = order.index(str(target or "base")) < order.index(now or "base")
        (command.downgrade if back else command.upgrade)(config, revision)
