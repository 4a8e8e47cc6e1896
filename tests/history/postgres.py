"""A real PostgreSQL, as an unprivileged user, on a socket in a directory of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import psycopg

#: Seconds until a server must answer.
START_SECONDS = 60
#: A test's server need not survive the machine.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def postgres_programs() -> Path:
    """Where Debian keeps the newest installed server, else where `initdb` is found."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    program = found[-1] if found else shutil.which("initdb")
    if program is None:
        raise RuntimeError("the tests need a PostgreSQL server; run: .ci/system-packages test")
    return Path(program).parent


class Cluster:
    """One PostgreSQL server as an unprivileged user; every test has a database of its own in it."""

    def __init__(self, *, durable: bool = False) -> None:
        self.durable = durable
        self.programs = postgres_programs()
        self.home = Path(tempfile.mkdtemp(prefix="pointdrop-pg-", dir="/tmp"))
        self.data = self.home / "data"
        self.account: dict[str, object] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self.account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(self.home, nobody.pw_uid, nobody.pw_gid)
        self.user = "pointdrop"
        flags = ["-U", self.user, "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-D", str(self.data)]
        self._run([str(self.programs / "initdb"), *flags])
        self.start()

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, cwd=self.home, capture_output=True, text=True, **self.account)  # type: ignore[call-overload]
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stderr}")

    def start(self) -> None:
        chosen = {"listen_addresses": ""} if self.durable else FAST | {"listen_addresses": ""}
        settings = [part for name, value in chosen.items() for part in ("-c", f"{name}={value}")]
        command = [str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.home), *settings]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.home, stdout=log, stderr=log, **self.account)  # type: ignore[call-overload]
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn("postgres")).close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start: {(self.home / 'log').read_text()}") from None
                time.sleep(0.05)

    def stop(self, *, hard: bool = False) -> None:
        """Fast shutdown; `hard`: at once, as when the machine dies."""
        self.process.send_signal(signal.SIGQUIT if hard else signal.SIGINT)
        self.process.wait(START_SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.stop(hard=True)  # nothing of it is kept
        shutil.rmtree(self.home)

    def dsn(self, database: str) -> str:
        return f"host={self.home} user={self.user} dbname={database}"

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def new_url(self) -> str:
        """The URL of a new, empty database."""
        name = f"h{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://{self.user}@/{name}?host={self.home}"
