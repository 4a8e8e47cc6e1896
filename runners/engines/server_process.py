"""One server process: on record before it starts, its log kept, gone when it should be.

The driver below the engines; it knows processes and nothing of any DBMS.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil
from tenacity import RetryError, Retrying, retry_if_exception_type, retry_if_result, stop_after_delay, wait_fixed

from runners.bounds import LEAST_FREE_BYTES, DiskWatch
from runners.engines.account import Account
from runners.engines.leftovers import kill_server
from runners.engines.server_records import MARKER, ProcessId, ServerRecord, mapped_shared_files
from runners.errors import ServerDied, ServerTimeout
from runners.host import shared_tmp
from runners.sandbox import BUBBLEWRAP

POLL_S = 0.02
#: Lines of the server's log that an error shows.
LOG_TAIL_LINES = 15
#: What is read of it for that: a server that complains all the time writes a log larger than memory.
LOG_TAIL_BYTES = 1 << 16


class NotReady(Exception):
    """The server runs but does not answer yet."""


class ServerProcess:
    """A server in `directory`, run as `account`, recorded below `state`."""

    def __init__(self, name: str, directory: Path, account: Account, state: Path, death_signal: str) -> None:
        self.name = name
        self.directory = directory
        self.account = account
        self.state = state
        self.death_signal = death_signal
        self.log = directory / "server.log"
        # The path of a Unix socket must stay below 108 bytes, which a directory of any depth cannot promise.
        self.socket_directory = Path(tempfile.mkdtemp(prefix="pointdrop-", dir=shared_tmp()))
        account.own(self.socket_directory)
        self.record = ServerRecord.new(directory, account.uid, self.socket_directory)
        self.confine: Callable[[Sequence[str]], list[str]] = list
        """Puts a sandbox around a command line, where one is wanted."""
        self.scope: Sequence[str] = ()
        """Stands before a command line whose memory is bounded."""
        self.watches_disk = False
        """Whether it is killed when it leaves too little of its disk."""
        self._watch: DiskWatch | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, argv: Sequence[str], environment: Mapping[str, str], deadline_s: float, text_in: str = "") -> str:
        """Run a program of the DBMS (initdb and its like) with `text_in` to its end and return what it printed.

        ServerDied when it fails, ServerTimeout when it is not done by the deadline.
        """
        self.record.write(self.state)
        watch = self._disk_watch()
        try:
            watch.start()
            done = subprocess.run(
                self._command(argv),
                cwd=self.directory,
                env=self._environment(environment),
                input=text_in.encode(errors="surrogateescape"),  # what is no UTF-8 comes out as it was read
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=deadline_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            kill_server(self.record)
            raise ServerTimeout(f"{self.name}: {Path(argv[0]).name} is not done after {deadline_s:.0f} s") from None
        finally:
            watch.stop()
        output = done.stdout.decode(errors="replace")
        if done.returncode:
            why = ", ".join(filter(None, (str(done.returncode), watch.message)))
            raise ServerDied(f"{self.name}: {Path(argv[0]).name} failed ({why}):\n{_tail(output)}")
        return output

    def start(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the server; it is on record first, with nothing but its marker to find it by."""
        if self._process is not None and self._process.poll() is None:
            raise ServerDied(f"{self.name} runs already in {self.directory}; stop it first")
        self.socket_directory.mkdir(mode=0o700, exist_ok=True)
        self.account.own(self.socket_directory)
        self.record = self.record.model_copy(update={"server": None, "executable": "", "shared_files": ()})
        self.record.write(self.state)
        with self.account.create(self.log) as log:
            self._process = subprocess.Popen(
                self._command(argv),
                cwd=self.directory,
                env=self._environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.record = self.record.model_copy(update={"server": ProcessId.of(self._process.pid)})
        self.record.write(self.state)
        if self._watch is not None:
            self._watch.stop()
        self._watch = self._disk_watch()
        self._watch.start()

    def wait_ready(self, probe: Callable[[], None], deadline_s: float) -> None:
        """Call `probe` until it no longer raises NotReady.

        ServerDied when the process ends, ServerTimeout at the deadline; both show the end of the log.
        """

        def attempt() -> None:
            if self._running() is None:
                raise ServerDied(f"{self.name} ended while starting:\n{self.log_tail()}")
            probe()

        try:
            Retrying(
                retry=retry_if_exception_type(NotReady), stop=stop_after_delay(deadline_s), wait=wait_fixed(POLL_S)
            )(attempt)
        except RetryError:
            raise ServerTimeout(
                f"{self.name} does not answer after {deadline_s:.0f} s; the end of its log:\n{self.log_tail()}"
            ) from None
        pid = self.pid
        self.record = self.record.model_copy(
            update={
                "executable": psutil.Process(pid).exe(),
                "shared_files": tuple(sorted(mapped_shared_files([psutil.Process(pid)]))),
            }
        )
        self.record.write(self.state)

    @property
    def pid(self) -> int:
        """Process id of the server: of valgrind, where that is in front, and never of the sandbox around it."""
        outermost = self._running()
        if outermost is None:
            raise ServerDied(f"{self.name} does not run; the end of its log:\n{self.log_tail()}")
        process = psutil.Process(outermost.pid)
        while process.name() == BUBBLEWRAP and (inner := process.children()):
            process = inner[0]
        return process.pid

    @property
    def running(self) -> bool:
        return self._running() is not None

    def pids(self) -> list[int]:
        """The server and all its children now."""
        main = psutil.Process(self.pid)
        return [main.pid, *(child.pid for child in main.children(recursive=True))]

    def stop(self, how: signal.Signals, deadline_s: float) -> tuple[str, ...]:
        """Ask the server to stop and wait; past the deadline kill it. Stopping twice is fine.

        Returns warnings: that it was killed, or crashed as it stopped. Its data is then not as a clean stop leaves it.
        """
        warnings: tuple[str, ...] = ()
        process = self._running()
        if process is not None:
            try:
                os.kill(self.pid, how)
                process.wait(deadline_s)
            except (ProcessLookupError, psutil.NoSuchProcess):
                process.wait(deadline_s)
            except subprocess.TimeoutExpired:
                warnings = (f"{self.name} was killed: it did not stop within {deadline_s:.0f} s",)
            if crashed(process.poll(), how):
                warnings = (f"{self.name} crashed as it stopped ({process.returncode}):\n{self.log_tail()}",)
        self.kill()
        return warnings

    def kill(self) -> None:
        """End every process of the server at once, clean up after it and take it off the record."""
        if self._watch is not None:
            self._watch.stop()
        kill_server(self.record)
        if self._process is not None:
            self._process.wait()
            self._process = None
        self.record.path(self.state).unlink(missing_ok=True)
        shutil.rmtree(self.socket_directory, ignore_errors=True)

    def wait_until(self, done: Callable[[], bool], deadline_s: float, poll_s: float, what: str) -> None:
        """Wait for a state of the running server; ServerTimeout names `what`."""
        try:
            Retrying(
                retry=retry_if_result(lambda result: not result),
                stop=stop_after_delay(deadline_s),
                wait=wait_fixed(poll_s),
            )(done)
        except RetryError:
            raise ServerTimeout(f"{self.name}: {what} is not done after {deadline_s:.0f} s") from None

    def log_tail(self) -> str:
        """The last lines the server logged, and what the watch of its disk has to say."""
        try:
            with open(self.log, "rb", opener=open_no_follow) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL_BYTES))
                logged = file.read(LOG_TAIL_BYTES).decode(errors="replace")
        except OSError:
            logged = ""
        said = f"\nits disk: {self._watch.message}" if self._watch and self._watch.message else ""
        return f"{_tail(logged)}{said}"

    def _command(self, argv: Sequence[str]) -> list[str]:
        return [*self.scope, *self.account.command(self.confine(argv), self.death_signal)]

    def _disk_watch(self) -> DiskWatch:
        least = LEAST_FREE_BYTES if self.watches_disk else 0
        return DiskWatch(self.directory, least, lambda: kill_server(self.record))

    def _running(self) -> subprocess.Popen[bytes] | None:
        return self._process if self._process is not None and self._process.poll() is None else None

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Nothing of the harness's environment reaches a server: it could change what is measured."""
        return {
            "PATH": os.defpath + ":/usr/local/bin",
            "LC_ALL": "C",
            "TZ": "UTC",
            "HOME": str(self.directory),
            # Valgrind writes there; the harness's own may be closed to the server's account.
            "TMPDIR": str(self.directory),
            **extra,
            MARKER: self.record.id,
        }


def crashed(status: int | None, asked: signal.Signals) -> bool:
    """Whether this is how a process ends by a signal that it was not asked to end by; a sandbox adds 128 to it.

    >>> [crashed(status, signal.SIGTERM) for status in (None, 0, 1, -15, 143, -11, 134)]
    [False, False, False, False, False, True, True]
    """
    number = 0 if status is None else -status if status < 0 else status - 128
    return number > 0 and number != asked


def _tail(text: str) -> str:
    return "\n".join(text.splitlines()[-LOG_TAIL_LINES:]) or "(nothing was logged)"


def open_no_follow(path: str, flags: int) -> int:
    """Opens a file, but not what a server put there to be shown a file that it may not read."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
