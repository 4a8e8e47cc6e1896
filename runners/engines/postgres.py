"""Postgres, 9.6 and later."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import Signals
from typing import ClassVar

import psycopg

from history.model import EffectiveSetting
from runners.engines.base import INITIALISE_DEADLINE_S, Connection, Engine
from runners.engines.effective_settings import of_postgres
from runners.engines.mirrors import reachable_directory
from runners.engines.server_process import open_no_follow
from runners.errors import ServerDied
from runners.settings.dbms import release_numbers

#: Names the socket (`.s.PGSQL.5432`); there is no TCP port.
PORT = 5432
USER = "pointdrop"
DATABASE = "postgres"
CONNECT_DEADLINE_S = 5
#: What the build or `initdb` settled has the source of a default, though no option file can set it.
SETTINGS = (
    "SELECT name, setting, unit, boot_val, CASE context WHEN 'internal' THEN 'built in' ELSE source END "
    "FROM pg_settings ORDER BY name"
)
#: postmaster.pid: its seventh line is key and number of the shared memory, in all releases since 9.1.
SHARED_MEMORY_LINE = 6
LOCK_FILE_BYTES = 8192


class Postgres(Engine):
    """A Postgres server; options go to a file of ours, so that `initdb`'s guesses at this host change nothing."""

    #: Immediate shutdown: the postmaster takes its backends with it.
    death_signal: ClassVar[str] = "QUIT"
    #: Fast shutdown: open sessions are ended, a checkpoint is written.
    stop_signal: ClassVar[Signals] = Signals.SIGINT
    dbapi: ClassVar = psycopg
    option_file: ClassVar[str] = "postgresql.conf"
    unknown_option: ClassVar[re.Pattern[str]] = re.compile(r'unrecognized configuration parameter "(?P<option>[^"]+)"')
    bad_value: ClassVar[re.Pattern[str]] = re.compile(
        r'invalid value for parameter "(?P<option>[^"]+)": (?P<value>"[^"]*")'
        r"(?:(?s:.)*?HINT:\s*(?P<hint>Available values:.*))?"
    )

    def initialise(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        flags = [
            f"--{name}" if value is None else f"--{name}={value}" for name, value in self.options.initialise.items()
        ]
        where = ("-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        with self._initdb() as command:
            self.server.run([*command, *where, *flags], {}, INITIALISE_DEADLINE_S)

    @contextmanager
    def _initdb(self) -> Iterator[list[str]]:
        """The command line of initdb, which starts the server that lies beside it. A server that needs the loader it
        came with is started by a script beside a copy of initdb."""
        loader, program = self.installed.loader, self.installed.program("initdb")
        if loader is None:
            yield [str(program)]
            return
        with tempfile.TemporaryDirectory(dir=self._beside_initdb(), ignore_cleanup_errors=True) as name:
            folder = Path(name)
            folder.chmod(0o755)
            shutil.copyfile(program, folder / program.name)
            server = shlex.join(self.installed.command("postgres"))
            (folder / "postgres").write_text(f'#!/bin/sh\nexec {server} "$@"\n')
            for path in folder.iterdir():
                path.chmod(0o755)
            share = next(self.installed.prefix.glob("**/postgres.bki")).parent
            yield [*loader.command(folder / program.name), "-L", str(share)]

    def _beside_initdb(self) -> Path:
        """Never a server's own: root makes files there."""
        folder = reachable_directory(self.server.state / "initdb", self.account)
        folder.chmod(0o755)
        return folder

    def _readable(self) -> list[Path]:
        return [*super()._readable(), *([self._beside_initdb()] if self.installed.loader else [])]

    def server_command(self, under_valgrind: bool) -> list[str]:
        ours = {
            "config_file": self._write_options(),
            "listen_addresses": "",
            "unix_socket_directories": self.server.socket_directory,
            "port": PORT,
        }
        settings = [part for name, value in ours.items() for part in ("-c", f"{name}={value}")]
        return self.installed.command("postgres", "-D", str(self.data), *settings)

    @property
    def connection(self) -> Connection:
        return Connection("pgsql", self.server.socket_directory, PORT, USER, DATABASE)

    def version(self) -> str:
        return str(self.query("SHOW server_version")[0][0]).split()[0]

    def effective_settings(self) -> dict[str, EffectiveSetting]:
        return of_postgres(self.query(SETTINGS))

    def incarnation(self) -> str:
        """When a child crashes, the postmaster stays, ends all others and begins anew in other shared memory. It writes
        its number to the file that keeps other servers out of the data."""
        pid = super().incarnation()
        try:
            with open(self.data / "postmaster.pid", opener=open_no_follow) as file:
                lines = file.read(LOCK_FILE_BYTES).splitlines()
        except OSError as error:
            raise ServerDied(f"{self.server.name}: {error}; the end of its log:\n{self.server.log_tail()}") from error
        return " ".join([pid, *lines[SHARED_MEMORY_LINE:][:1]])

    def settle(self) -> None:
        """Vacuum and analyze every table with all its indexes, then write all dirty pages.

        Since 14 a vacuum that finds few dead rows leaves them in the indexes unless told otherwise; 12 has the option.
        The checkpoint before flushes the WAL: until a commit is on disk, which without synchronous_commit it may not be
        yet, vacuum cannot mark its rows as visible to all.
        """
        self.query("CHECKPOINT")
        release = self.installed.release
        options = "ANALYZE, INDEX_CLEANUP ON" if release_numbers(release.dbms, release.version) >= (12,) else "ANALYZE"
        tables = self.query(
            "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
        )
        for (table,) in tables:
            self.query(f"VACUUM ({options}) {table}")
        self.query("CHECKPOINT")

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        connection = self.connection
        return psycopg.connect(
            host=str(connection.socket),
            port=connection.port,
            user=connection.user,
            dbname=connection.database,
            autocommit=True,
            connect_timeout=CONNECT_DEADLINE_S * (10 if self.under_valgrind else 1),
            # libpq takes what is not given from PGOPTIONS, PGHOSTADDR and their like.
            options="",
            hostaddr="",
            target_session_attrs="any",
            sslmode="disable",
        )

    @property
    def _socket(self) -> Path:
        return self.server.socket_directory / f".s.PGSQL.{PORT}"
