"""What MySQL, MariaDB and MyRocks have in common: mysqld, its option file, its client protocol."""

from __future__ import annotations

import re
import shutil
import uuid
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

import pymysql

from runners.engines.base import INITIALISE_DEADLINE_S, READY_DEADLINE_S, Connection, Engine
from runners.engines.effective_settings import given_to
from runners.engines.mirrors import reachable_directory
from runners.errors import EngineError, ServerDied
from runners.settings.dbms import release_numbers

USER = "root"
DATABASE = "pointdrop"
#: Clients want a number even where only the socket is used.
PORT = 3306
CONNECT_DEADLINE_S = 5
STATEMENT_DEADLINE_S = 3600

#: A data directory in the making needs no durability; what a power failure leaves of it is made again.
UNSAFE_BUT_QUICK = ("--loose-skip-log-bin", "--innodb-flush-method=nosync", "--loose-debug-no-sync")

#: Seconds until dirty pages are written and old row versions are gone.
SETTLE_DEADLINE_S = 900.0
SETTLE_POLL_S = 0.2
#: Pages that background work dirties all the time; fewer than this count as clean.
CLEAN_PAGES = 50
#: Likewise for transactions that purge has not reached.
CLEAN_HISTORY = 50
#: Polls in a row after which a history that no longer shrinks is as short as it gets: some releases shorten the list
#: only once in many batches of purge.
STEADY_POLLS = 10

#: Name an archive asks for: name the same library has now. Debian 13 and Ubuntu 24.04 renamed libaio, because the size
#: of a time changed on 32-bit machines; on the 64-bit ones only the name keeps old servers from starting.
RENAMED_LIBRARIES = {"libaio.so.1": "libaio.so.1t64"}
#: Libraries of the system that old servers ask for, and Debian's package of each.
LIBRARY_PACKAGES = {
    "libaio.so.1": "libaio1",
    "libnuma.so.1": "libnuma1",
    "libcrypt.so.1": "libcrypt1",
    "libtinfo.so.5": "libtinfo5",
    "libncurses.so.5": "libncurses5",
    "libz.so.1": "zlib1g",
}
_MISSING_LIBRARY = re.compile(r"error while loading shared libraries: (?P<library>[^:\s]+):")
SYSTEM_LIBRARIES = tuple(Path("/usr/lib").glob("*-linux-gnu"))
#: Bootstrap knows the host's name only as a variable; accounts for it are of no use on a socket.
_NAMES_HOST = "@current_hostname"


class MySQLFamily(Engine):
    """A mysqld or mariadbd that listens on a Unix socket only."""

    dbapi: ClassVar = pymysql
    option_file: ClassVar[str] = "my.cnf"
    # What a server warns of is not why it ended: options that begin with `loose` may be missing.
    unknown_option: ClassVar[re.Pattern[str]] = re.compile(
        r"unknown (?:variable|option) '(?:--)?(?!-|loose)(?P<option>[^'=]+)"
    )
    bad_value: ClassVar[re.Pattern[str]] = re.compile(
        r"(?:[Ee]rror while setting value '|Unrecognized value )(?P<value>[^'\n]*?)(?:' to '| for )(?P<option>[\w-]+)"
    )
    programs: ClassVar[tuple[str, ...]] = ("mysqld",)
    local_only: ClassVar[tuple[str, ...]]
    """Options that turn off what listens elsewhere, or makes keys at each start that a local client never uses."""

    # --- the data directory ---------------------------------------------------------------------------------

    def _fresh_data(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir()
        self.account.own(self.data)
        self._tmp.mkdir(exist_ok=True)
        self.account.own(self._tmp)

    def _initialise(self, *mode: str, text_in: str = "") -> None:
        """Run the server once in a mode that makes a data directory. Only InnoDB's options shape its files."""
        shaping = [f"--{name}={value}" for name, value in self.options.options.items() if name.startswith("innodb_")]
        argv = self.installed.command(
            self._server_program(), "--no-defaults", *mode, *self._places(), *shaping, *UNSAFE_BUT_QUICK
        )
        try:
            self.server.run(argv, self.environment(), INITIALISE_DEADLINE_S, text_in)
        except ServerDied as error:
            raise self._explained(error) from error

    def _bootstrap(self, scripts: Iterable[Path], preamble: str = "") -> None:
        """Make the system tables from the release's own scripts, as its install script (a shell or Perl program that
        knows nothing of a private loader) would."""
        self._fresh_data()
        lines = ["CREATE DATABASE mysql;", "USE mysql;", preamble]
        for script in scripts:
            text = script.read_text(encoding="utf-8", errors="surrogateescape")
            lines += [line for line in text.splitlines() if _NAMES_HOST not in line]
        self._initialise("--bootstrap", text_in="\n".join(lines) + "\n")

    def _scripts(self, names: Iterable[tuple[str, ...]], optional: bool = False) -> list[Path]:
        """For each tuple of names the first script that the release has; EngineError when it has none and must."""
        folders = [path.parent for path in sorted(self.installed.prefix.glob("**/fill_help_tables.sql"))]
        scripts = []
        for alternatives in names:
            paths = (folder / name for name in alternatives for folder in folders)
            path = next((path for path in paths if path.exists()), None)
            if path is not None:
                scripts.append(path)
            elif not optional:
                raise EngineError(f"{self.installed.release.name} has no {' or '.join(alternatives)}")
        return scripts

    def _explained(self, error: ServerDied) -> Exception:
        if missing := _MISSING_LIBRARY.search(str(error)):
            library = missing["library"]
            package = LIBRARY_PACKAGES.get(library)
            remedy = f"run `apt-get install {package}`" if package else "install the package that has it"
            return EngineError(f"{self.installed.release.name} needs {library}, which this machine lacks; {remedy}")
        return super()._explained(error)

    # --- the server -----------------------------------------------------------------------------------------

    def server_command(self, under_valgrind: bool) -> list[str]:
        file = self._write_options()
        self._tmp.mkdir(exist_ok=True)
        self.account.own(self._tmp)
        return self.installed.command(
            self._server_program(), f"--defaults-file={file}", *self._arguments(under_valgrind)
        )

    def _arguments(self, under_valgrind: bool) -> list[str]:
        """What the server is told beside its option file."""
        return [
            *self._places(),
            f"--socket={self._socket}",
            f"--pid-file={self.server.socket_directory / 'mysqld.pid'}",
            "--skip-networking",
            *self.local_only,
            *(self._valgrind_options() if under_valgrind else []),
        ]

    @property
    def _given(self) -> dict[str, str]:
        """Where the running server was told the value of a variable."""
        return given_to(self.options.options, self._arguments(self.under_valgrind))

    def _valgrind_options(self) -> list[str]:
        """io_uring hangs under valgrind."""
        return ["--innodb-use-native-aio=0"]

    def _places(self) -> list[str]:
        """Where the release's parts are, since none of them was built for this prefix."""
        prefix = self.installed.prefix
        places = [f"--basedir={prefix}", f"--datadir={self.data}", f"--tmpdir={self._tmp}", "--secure-file-priv="]
        for pattern, option, up in (
            ("**/english/errmsg.sys", "--lc-messages-dir", 2),
            ("**/charsets/Index.xml", "--character-sets-dir", 1),
            ("**/plugin/*.so", "--plugin-dir", 1),
        ):
            file = next(iter(sorted(prefix.glob(pattern))), None)
            if file is not None:
                places.append(f"{option}={file.parents[up - 1]}")
        return places

    def environment(self) -> dict[str, str]:
        """Archives bring some libraries in `lib` or `libs`; a private loader has its own path to them."""
        if self.installed.command(self._server_program())[0] != str(self.installed.program(*self.programs)):
            return {}
        prefix = self.installed.prefix
        folders = [path for path in (prefix / "libs", prefix / "lib", prefix) if list(path.glob("*.so*"))]
        folders += self._libraries()
        return {"LD_LIBRARY_PATH": ":".join(map(str, folders))} if folders else {}

    def _readable(self) -> list[Path]:
        return [*super()._readable(), *self._libraries()]

    def _libraries(self) -> list[Path]:
        """The folder with libraries by their old names, where this machine needs one; never a server's own."""
        if not (links := renamed_libraries()):
            return []
        folder = reachable_directory(self.server.state / "renamed", self.account)
        link_libraries(links, folder)
        return [folder]

    def _server_program(self) -> str:
        return self.installed.program(*self.programs).name

    @property
    def connection(self) -> Connection:
        return Connection("mysql", self._socket, PORT, USER, DATABASE)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The release's version, to tell eras apart."""
        release = self.installed.release
        return release_numbers(release.dbms, release.version)

    def wait_ready(self, deadline_s: float = READY_DEADLINE_S) -> None:
        super().wait_ready(deadline_s)
        if not self.query(f"SHOW DATABASES LIKE '{DATABASE}'"):
            self.query(f"CREATE DATABASE {DATABASE}")

    def version(self) -> str:
        """`10.11.19` of `10.11.19-MariaDB-log`."""
        return str(self.query("SELECT VERSION()")[0][0]).split("-")[0]

    @contextmanager
    def purge_paused(self) -> Iterator[None]:
        """An open snapshot holds purge back."""
        begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        with ExitStack() as stack:
            with self._failing_as_engine(begin):
                stack.enter_context(self._connect()).query(begin)
            yield

    def drain_background_work(self) -> None:
        """A slow shutdown purges to the end, where settling stops at a history that no longer shrinks."""
        self.query("SET GLOBAL innodb_fast_shutdown = 0")

    def _connect(self) -> pymysql.Connection:
        slower = 10 if self.under_valgrind else 1
        return pymysql.connect(
            unix_socket=str(self._socket),
            user=USER,
            autocommit=True,
            connect_timeout=CONNECT_DEADLINE_S * slower,
            read_timeout=STATEMENT_DEADLINE_S,
        )

    @property
    def _socket(self) -> Path:
        return self.server.socket_directory / "mysqld.sock"

    @property
    def _tmp(self) -> Path:
        return self.directory / "tmp"

    # --- settle ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _reset_binlog_statement(self) -> str:
        """How this release forgets its binlog."""

    def settle(self) -> None:
        """Forget the binlog, analyze every table, write dirty pages, let purge catch up."""
        if self.query("SELECT @@log_bin")[0][0]:
            self.query(self._reset_binlog_statement())
        self._analyze()
        self._flush()

    def _analyze(self) -> None:
        tables = self.query(
            f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{DATABASE}' ORDER BY table_name"
        )
        for (table,) in tables:
            self.query(f"ANALYZE TABLE {DATABASE}.`{table}`")

    def _flush(self) -> None:
        """Ask InnoDB to keep no dirty page, wait until that is so, and put its settings back."""
        # The low-water mark came with MySQL 5.6; it must never lie above the other.
        rows = self.query("SHOW GLOBAL VARIABLES LIKE 'innodb_max_dirty_pages_pct%'")
        before = {str(name): str(value) for name, value in rows}
        try:
            for name in sorted(before, reverse=True):
                self.query(f"SET GLOBAL {name} = 0")
            self._wait_clean()
        finally:
            for name in sorted(before):
                self.query(f"SET GLOBAL {name} = {before[name]}")

    def _wait_clean(self) -> None:
        """Wait until next to nothing is left to write and to purge."""
        histories: list[int] = []

        def clean() -> bool:
            dirty, history = self._work_left()
            histories.append(history)
            latest = histories[-STEADY_POLLS:]
            steady = len(latest) == STEADY_POLLS and min(latest) == latest[0]
            return dirty <= CLEAN_PAGES and (history <= CLEAN_HISTORY or steady)

        self.server.wait_until(clean, SETTLE_DEADLINE_S, SETTLE_POLL_S, "writing dirty pages")

    def _work_left(self) -> tuple[int, int]:
        """Dirty pages, and transactions that purge has not reached."""
        names = ("buffer_pool_pages_dirty", "trx_rseg_history_len")
        rows = self.query(f"SELECT name, count FROM information_schema.innodb_metrics WHERE name IN {names}")
        left = {str(name): int(count) for name, count in rows}
        return left[names[0]], left[names[1]]


def renamed_libraries(system: Sequence[Path] = SYSTEM_LIBRARIES) -> dict[str, Path]:
    """Old names that the system lacks, each with the library that had it."""
    links: dict[str, Path] = {}
    for old, new in RENAMED_LIBRARIES.items():
        candidates = [place / new for place in system if (place / new).exists()]
        if candidates and not any((place / old).exists() for place in system):
            links[old] = candidates[0]
    return links


def link_libraries(links: Mapping[str, Path], folder: Path) -> None:
    """Make the links in `folder`, which exists and is the harness's: no server may write there, since root makes them.

    Other processes may do the same, and servers use them, meanwhile.
    """
    folder.chmod(0o755)
    for name, library in links.items():
        link = folder / name
        if link.is_symlink() and link.readlink() == library:
            continue
        draft = folder / f".{uuid.uuid4().hex}"
        draft.symlink_to(library)
        draft.replace(link)
