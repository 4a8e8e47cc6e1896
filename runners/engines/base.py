"""What every engine can do; one subclass a DBMS.

engine = engine_for(installed, options, directory, state=state)
with engine:                       # always stopped, also after an error or Ctrl-C
    engine.initialise()
    engine.start()
    engine.wait_ready()            # checks the version too
    ... load ...
    engine.settle()
    engine.stop()
    engine.save(prepared)          # later: engine.restore(prepared); engine.start(); ...
"""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from history.model import EffectiveSetting
from runners.bounds import scope
from runners.engines.account import Account
from runners.engines.mirrors import copy_tree
from runners.engines.server_process import NotReady, ServerProcess
from runners.errors import EngineError, ServerDied, WrongVersion
from runners.releases.installed import Installed
from runners.sandbox import SERVER, sandboxed
from runners.settings.dbms import ConfigNotRunnable, RenderedOptions, UnknownOption, release_numbers

#: Seconds until a server must answer; crash recovery of a large pool is the longest case.
READY_DEADLINE_S = 120.0
STOP_DEADLINE_S = 120.0
INITIALISE_DEADLINE_S = 300.0
#: Valgrind makes a server slower by this factor or less.
VALGRIND_SLOWDOWN = 10.0

Query = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Connection:
    """What a client needs to connect; `driver` is sysbench's word."""

    driver: Literal["pgsql", "mysql"]
    socket: Path
    """The socket's directory for pgsql, the socket itself for mysql."""
    port: int
    user: str
    database: str


class Engine(ABC):
    """One server of one release with one config in one directory."""

    #: What the server gets when the harness dies.
    death_signal: ClassVar[str] = "KILL"
    stop_signal: ClassVar[Signals] = Signals.SIGTERM
    #: In the log of a server that refused an option: `option`; and with it `value`, and a `hint` where there is one.
    unknown_option: ClassVar[re.Pattern[str]]
    bad_value: ClassVar[re.Pattern[str]]
    #: The DB-API module that clients of this server use.
    dbapi: ClassVar[Any]
    option_file: ClassVar[str]

    def __init__(
        self,
        installed: Installed,
        options: RenderedOptions,
        directory: Path,
        account: Account,
        state: Path,
        sandbox: bool,
    ) -> None:
        self.installed = installed
        self.options = options
        self.directory = directory.resolve()
        self.account = account
        self.wrapper: tuple[str, ...] = ()
        self.data = self.directory / "data"
        self.directory.mkdir(parents=True, exist_ok=True)
        account.own(self.directory)
        self.server = ServerProcess(installed.release.name, self.directory, account, state, self.death_signal)
        if sandbox:
            self.server.confine = self._sandboxed
            self.server.scope = scope()
            self.server.watches_disk = True

    # --- what differs from DBMS to DBMS ---------------------------------------------------------------------

    @abstractmethod
    def initialise(self) -> None:
        """Make an empty data directory with the benchmark's user; a data directory that is there is replaced."""

    @abstractmethod
    def server_command(self, under_valgrind: bool) -> list[str]:
        """The server's command line, its option file written."""

    @property
    @abstractmethod
    def connection(self) -> Connection:
        """How clients connect."""

    @abstractmethod
    def version(self) -> str:
        """The version the running server reports, as its release is called."""

    @abstractmethod
    def settle(self) -> None:
        """Bring storage into a state that does not depend on what ran before (the field's "postwrite")."""

    @abstractmethod
    def effective_settings(self) -> dict[str, EffectiveSetting]:
        """What the running server says its options are, by name; the same from two servers started alike."""

    @property
    @abstractmethod
    def _socket(self) -> Path:
        """The socket itself."""

    @abstractmethod
    def _connect(self) -> Any:
        """A connection of `dbapi` that commits each statement."""

    def incarnation(self) -> str:
        """Names the running server, and another one once it has begun anew, with cold caches; ServerDied when it does
        not run."""
        return str(self.server.pid)

    @contextmanager
    def purge_paused(self) -> Iterator[None]:
        """While this lasts no background work removes old row versions: what it does meanwhile follows wall time, and
        where it merges pages the next statements split them again. Nothing to do where a config turns such work off."""
        yield

    def drain_background_work(self) -> None:
        """Let the next clean stop do all that background work has put off: a server on a copy of the data begins with
        none. Takes long on large data. Nothing to do where settling leaves none."""
        return

    # --- what does not --------------------------------------------------------------------------------------

    def start(self, wrapper: Sequence[str] = ()) -> None:
        """Start the server; `wrapper` is a command line to put in front of it, such as valgrind's."""
        self.wrapper = tuple(wrapper)
        self.server.start([*self.wrapper, *self.server_command(self.under_valgrind)], self.environment())

    def wait_ready(self, deadline_s: float = READY_DEADLINE_S) -> None:
        """Wait until the server answers, and check that it is the release asked for.

        ServerDied, ServerTimeout (both with the end of the log), WrongVersion, UnknownOption, ConfigNotRunnable.
        """
        try:
            self.server.wait_ready(self._probe, deadline_s * (VALGRIND_SLOWDOWN if self.under_valgrind else 1))
        except ServerDied as error:
            raise self._explained(error) from error
        wanted, reported = self.installed.release.version, self.version()
        if not same_version(wanted, reported):
            self.kill()
            raise WrongVersion(
                f"{self.installed.prefix} holds {self.installed.release.dbms} {reported}, not {wanted}: "
                "the release manifest names the wrong archive"
            )

    def _explained(self, error: ServerDied) -> Exception:
        """An option that this release or build refuses is the config's fault, and the log says which."""
        where = f"config {self.options.config} on {self.installed.release.name}"
        if unknown := self.unknown_option.search(str(error)):
            option = unknown["option"]
            return UnknownOption(f"{where}: there is no option {option}; give it `since` or `before` in configs.toml")
        if bad := self.bad_value.search(str(error)):
            hint = bad.groupdict().get("hint")
            refused = f"{where}: this build does not have {bad['option']} = {bad['value']}"
            return ConfigNotRunnable(refused + (f" ({hint})" if hint else ""))
        return error

    @property
    def under_valgrind(self) -> bool:
        return any(Path(part).name == "valgrind" for part in self.wrapper)

    def query(self, sql: str) -> Query:
        """One statement on a connection of its own; the rows, empty for statements without a result."""
        with self._failing_as_engine(sql), self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall()) if cursor.description else []

    @contextmanager
    def _failing_as_engine(self, sql: str) -> Iterator[None]:
        """EngineError, which names the statement, for an error of the client."""
        try:
            yield
        except self.dbapi.Error as error:
            raise EngineError(f"{self.installed.release.name}: {sql}: {error}") from error

    def _probe(self) -> None:
        """Raise NotReady while the server does not answer."""
        if not self._socket.exists():
            raise NotReady
        try:
            self._connect().close()
        except self.dbapi.OperationalError as error:
            raise NotReady from error

    def _write_options(self) -> Path:
        """The option file, in the server's directory."""
        file = self.directory / self.option_file
        with self.account.create(file) as out:
            out.write(self.options.text.encode())
        return file

    def stop(self, deadline_s: float = STOP_DEADLINE_S) -> tuple[str, ...]:
        """A clean stop; past the deadline the server is killed, which the returned warnings say."""
        return self.server.stop(self.stop_signal, deadline_s * (VALGRIND_SLOWDOWN if self.under_valgrind else 1))

    def kill(self) -> None:
        """End the server at once; its data directory is then good for nothing but a test of recovery."""
        self.server.kill()

    def save(self, target: Path) -> None:
        """Copy the stopped server's data to `target`, sharing blocks where the file system can."""
        self._copy(self.data, target)

    def restore(self, source: Path) -> None:
        """Replace the stopped server's data by what `save` kept."""
        self._copy(source, self.data)
        self.account.own(self.data)

    def _copy(self, source: Path, target: Path) -> None:
        if self.server.running:
            raise EngineError(f"stop {self.installed.release.name} before its data is copied")
        if target.exists():
            shutil.rmtree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_tree(source, target)

    def _sandboxed(self, argv: Sequence[str]) -> list[str]:
        # Valgrind is steered from outside by process id, so its processes keep theirs.
        return sandboxed(
            argv,
            bounds=SERVER,
            readable=self._readable(),
            writable=(self.directory, self.server.socket_directory),
            share_processes=self.under_valgrind,
        )

    def _readable(self) -> list[Path]:
        """What a sandbox shows of the machine besides the system."""
        return [self.installed.prefix]

    def environment(self) -> dict[str, str]:
        """What programs of the release find in their environment, besides what every program has."""
        return {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop() if kind is None else self.kill()


def same_version(wanted: str, reported: str) -> bool:
    """Whether the numbers agree; 17 is 17.0, and a build's own suffix does not matter.

    >>> same_version("10.11.19", "10.11.19"), same_version("17.0", "17"), same_version("17.2", "17.20")
    (True, True, False)
    """
    return release_numbers("", wanted) == release_numbers("", reported)
