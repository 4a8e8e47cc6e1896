"""What a dead run leaves behind is found and stopped; nothing else is touched. Real processes throughout."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from runners.engines import server_account, stop_leftovers
from runners.engines.leftovers import kill_server, remove_vgdb_pipes
from runners.engines.server_process import ServerProcess
from runners.engines.server_records import ProcessId, ServerRecord, read_records
from runners.sandbox import SERVER, sandboxed

#: Starts a "server" with a child, says their process ids, and waits to be killed.
HARNESS = """
import sys, time
from pathlib import Path
from runners.engines import server_account
from runners.engines.server_process import NotReady, ServerProcess
directory, state, argv = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
account = server_account()
account.own(directory)
server = ServerProcess("sleeper", directory, account, state, "KILL")
server.start(argv, {})
def has_a_child():
    # Until then what runs may still be the program that drops privileges, and would be taken for the server's own.
    if len(server.pids()) < 2:
        raise NotReady
server.wait_ready(has_a_child, 10)
print(*server.pids(), server.socket_directory, flush=True)
time.sleep(600)
"""


def eventually(condition: Callable[[], bool], what: str) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(what)


def gone(pid: int) -> bool:
    return ProcessId.of(pid) is None


@pytest.fixture(autouse=True)
def directory(place: Path) -> None:
    (place / "server").mkdir()


def killed_harness(place: Path, *argv: str) -> tuple[list[int], Path]:
    """Process ids of a server whose harness was killed, and its socket directory."""
    harness = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HARNESS), place / "server", place / "state", *argv],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert harness.stdout is not None
    *pids, socket_directory = harness.stdout.readline().split()
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    return [int(pid) for pid in pids], Path(socket_directory)


def test_the_server_dies_with_its_harness_and_its_children_are_found(place: Path) -> None:
    (server, child), socket_directory = killed_harness(place, "sh", "-c", "sleep 600 & wait")
    eventually(lambda: gone(server), "the kernel ends the server when the harness is killed")
    assert not gone(child), "a child does not get the signal, so it is a leftover"

    assert [record.directory for record in stop_leftovers(place / "state")] == [place / "server"]

    assert gone(child)
    assert not socket_directory.exists()
    assert list(read_records(place / "state")) == []
    assert stop_leftovers(place / "state") == []


def test_a_child_that_hides_its_environment_and_session_is_found(place: Path) -> None:
    # As Postgres does with its backends. It runs the server's own executable in the server's directory.
    shell = "exec /bin/bash -c 'env -i setsid /bin/bash -c \"sleep 600; :\" & wait; :'"
    pids, _ = killed_harness(place, "/bin/bash", "-c", shell)
    child = pids[1]
    eventually(lambda: "HOME" not in psutil.Process(child).environ(), "the child has dropped its environment")
    eventually(lambda: psutil.Process(child).name() == "bash" and os.getsid(child) == child, "and its session")
    (grandchild,) = psutil.Process(child).children()
    stop_leftovers(place / "state")
    assert gone(child)
    assert gone(grandchild.pid), "another program, in another session, without the marker: its parent gives it away"


#: Leaves a process behind that has another folder, no marker, a session of its own, and nobody who started it.
HIDE = "(cd /; env -i setsid sleep 600 & echo $! > {directory}/hidden); "


def hidden(directory: Path) -> int:
    """Process id of what HIDE left, which nothing but its sandbox gives away."""
    eventually(lambda: (directory / "hidden").exists() and (directory / "hidden").read_text().strip() != "", "it began")
    process = psutil.Process(int((directory / "hidden").read_text()))
    eventually(lambda: process.name() == "sleep", "it is what it will be")
    eventually(lambda: psutil.Process(process.ppid()).name() not in ("sh", "bwrap"), "who started it is gone")
    assert process.environ() == {} and process.cwd() == "/" and os.getsid(process.pid) == process.pid
    return process.pid


@pytest.fixture
def confined(place: Path) -> Iterator[ServerProcess]:
    """A server whose sandbox shares the process ids of the machine, as valgrind needs it."""
    account = server_account()
    account.own(place / "server")
    server = ServerProcess("sleeper", place / "server", account, place / "state", "KILL")
    server.confine = lambda argv: sandboxed(
        argv, bounds=SERVER, writable=[server.directory, server.socket_directory], share_processes=True
    )
    yield server
    server.kill()


def test_a_process_that_hides_in_the_sandbox_dies_with_the_server(confined: ServerProcess) -> None:
    """Before the server answers, when nothing of what runs inside is on record, as well."""
    confined.start(["sh", "-c", f"{HIDE.format(directory=confined.directory)} sleep 600; :"], {})
    pid = hidden(confined.directory)
    assert confined.record.executable == ""
    assert kill_server(confined.record) is True
    assert gone(pid)


def test_a_process_that_outlives_a_server_of_the_sandbox_dies(confined: ServerProcess) -> None:
    """The server is gone before anybody could look at it; the folder that gives the process away as well."""
    confined.start(["sh", "-c", HIDE.format(directory=confined.directory)], {})
    pid = hidden(confined.directory)
    eventually(lambda: not confined.running, "it has ended")
    shutil.rmtree(confined.socket_directory)
    confined.kill()
    assert gone(pid)


def test_a_process_whose_first_thread_has_ended_is_found(confined: ServerProcess) -> None:
    """It looks like a zombie."""
    code = (
        "import ctypes, os, threading, time; threading.Thread(target=time.sleep, args=[600]).start(); "
        f"open('{confined.directory}/hidden', 'w').write(str(os.getpid())); ctypes.CDLL(None).pthread_exit(None)"
    )
    confined.start(["sh", "-c", f'(cd /; env -i setsid /usr/bin/python3 -c "{code}" &) ; :'], {})
    eventually(lambda: (confined.directory / "hidden").exists(), "it began")
    eventually(lambda: (confined.directory / "hidden").read_text() != "", "it began")
    process = psutil.Process(int((confined.directory / "hidden").read_text()))
    eventually(lambda: process.status() == psutil.STATUS_ZOMBIE, "its first thread has ended")
    eventually(lambda: not confined.running, "the server has ended, too")
    threads = Path(f"/proc/{process.pid}/task")
    assert len(list(threads.glob("*"))) == 2
    confined.kill()
    assert len(list(threads.glob("*"))) < 2, "gone, or not yet waited for"


def test_a_process_that_hides_in_the_sandbox_of_a_dead_harness_dies(confined: ServerProcess, place: Path) -> None:
    """The harness is played: its record names a process that has ended."""
    confined.start(["sh", "-c", f"{HIDE.format(directory=confined.directory)} sleep 600; :"], {})
    pid = hidden(confined.directory)
    assert stop_leftovers(place / "state") == []
    assert not gone(pid), "its harness lives"
    ended = subprocess.Popen(["sleep", "600"])
    dead = ProcessId.of(ended.pid)
    ended.kill()
    ended.wait()
    confined.record.model_copy(update={"harness": dead}).write(place / "state")
    assert [record.id for record in stop_leftovers(place / "state")] == [confined.record.id]
    assert gone(pid)


def test_a_sandbox_of_another_server_is_not_touched(confined: ServerProcess, place: Path) -> None:
    confined.start(["sh", "-c", f"{HIDE.format(directory=confined.directory)} sleep 600; :"], {})
    pid = hidden(confined.directory)
    (place / "other").mkdir()
    other = ServerProcess("other", place / "other", confined.account, place / "state", "KILL")
    assert kill_server(other.record) is False
    assert not gone(pid)


def test_a_living_harness_keeps_its_server(place: Path) -> None:
    account = server_account()
    account.own(place / "server")
    server = ServerProcess("sleeper", place / "server", account, place / "state", "KILL")
    server.start(["sleep", "600"], {})
    try:
        assert stop_leftovers(place / "state") == []
        assert server.running
    finally:
        server.kill()
    assert list(read_records(place / "state")) == []


def test_the_server_itself_is_found_whatever_its_environment_says(place: Path) -> None:
    """In the moment it becomes another program there is none to be read."""
    account = server_account()
    process = subprocess.Popen(account.command(["sleep", "600"]), cwd=place / "server", env={"PATH": os.defpath})
    try:
        record = ServerRecord.new(place / "server", account.uid, place / "gone")
        assert kill_server(record) is False
        assert process.poll() is None, "nothing says yet that it is the server"
        assert kill_server(record.model_copy(update={"server": ProcessId.of(process.pid)})) is True
        assert gone(process.pid)
    finally:
        process.kill()
        process.wait()


def test_a_log_that_is_a_link_is_not_shown(place: Path) -> None:
    (place / "secret").write_text("mine")
    account = server_account()
    server = ServerProcess("sleeper", place / "server", account, place / "state", "KILL")
    server.log.symlink_to(place / "secret")
    assert "mine" not in server.log_tail()
    server.start(["echo", "theirs"], {})
    try:
        eventually(lambda: server.log_tail() == "theirs", "it logged to a file of its own")
        assert (place / "secret").read_text() == "mine"
    finally:
        server.kill()


#: Maps a file of its own and waits.
MAP = (
    "import mmap, os, time; path = {path!r}; os.makedirs(os.path.dirname(path), exist_ok=True); "
    "file = open(path, 'w+b'); file.truncate(4096); memory = mmap.mmap(file.fileno(), 4096); "
    "open({flag!r}, 'w').write('mapped'); time.sleep(600)"
)


def killed_while_mapping(server: ServerProcess, path: str) -> None:
    flag = server.directory / "mapped"
    server.start(["/usr/bin/python3", "-c", MAP.format(path=path, flag=str(flag))], {})
    eventually(lambda: flag.exists() and flag.read_text() != "", f"it maps {path}")
    server.kill()


def test_a_server_cannot_name_files_for_the_harness_to_remove(confined: ServerProcess, place: Path) -> None:
    """What it maps has any name that it likes: inside a sandbox, one that is somebody else's file outside."""
    victim, shared = place / "victim", Path(f"/dev/shm/PostgreSQL.{os.getpid()}")
    victim.write_text("mine")
    shared.write_text("another server's")
    try:
        killed_while_mapping(confined, f"{victim} /dev/shm/PostgreSQL.1")
        (confined.directory / "mapped").unlink()
        killed_while_mapping(confined, str(shared))
        assert victim.exists()
        assert shared.exists()
    finally:
        shared.unlink(missing_ok=True)


def test_shared_memory_of_a_killed_server_is_removed(place: Path) -> None:
    account = server_account()
    account.own(place / "server")
    shared = Path(f"/dev/shm/PostgreSQL.{os.getpid()}")
    try:
        killed_while_mapping(ServerProcess("sleeper", place / "server", account, place / "state", "KILL"), str(shared))
        assert not shared.exists()
    finally:
        shared.unlink(missing_ok=True)


def test_of_a_log_larger_than_memory_only_the_end_is_read(place: Path) -> None:
    server = ServerProcess("sleeper", place / "server", server_account(), place / "state", "KILL")
    with server.log.open("wb") as log:
        log.truncate(1 << 42)
        log.seek(0, os.SEEK_END)
        log.write(b"\nthe end\n")
    assert server.log_tail().endswith("\nthe end")
    server.kill()


@pytest.mark.parametrize(("act", "warning"), [("exit 0", ""), ("kill -SEGV $$", "crashed as it stopped")])
def test_a_crash_as_the_server_stops_is_told(place: Path, act: str, warning: str) -> None:
    account = server_account()
    account.own(place / "server")
    server = ServerProcess("sleeper", place / "server", account, place / "state", "KILL")
    server.start(["bash", "-c", f"trap '{act}' TERM; echo ready; while :; do sleep 0.05; done"], {})
    eventually(lambda: "ready" in server.log_tail(), "it takes the signal")
    warnings = server.stop(signal.SIGTERM, 30)
    assert [warning in warning for warning in warnings] == [True] * bool(warning)
    assert server.stop(signal.SIGTERM, 30) == (), "stopping twice is fine"


def test_strangers_are_not_touched(place: Path) -> None:
    """Another process in the same directory under the same account, and one whose pid a stale record names."""
    account = server_account()
    account.own(place / "server")
    stranger = subprocess.Popen(account.command(["sleep", "600"]), cwd=place / "server")
    try:
        eventually(lambda: psutil.Process(stranger.pid).name() == "sleep", "it runs")
        dead = subprocess.Popen(["sleep", "600"])
        dead_harness = ProcessId.of(dead.pid)
        dead.kill()
        dead.wait()
        assert dead_harness is not None
        now = ProcessId.of(stranger.pid)
        assert now is not None
        record = ServerRecord.new(place / "server", account.uid, place / "gone").model_copy(
            update={
                "harness": dead_harness,
                "server": now.model_copy(update={"ticks": now.ticks - 1}),
                "executable": "/usr/bin/postgres",
            }
        )
        record.write(place / "state")
        assert stop_leftovers(place / "state") == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_torn_and_foreign_files_are_left_alone(place: Path) -> None:
    folder = place / "state" / "servers"
    folder.mkdir(parents=True)
    (folder / "torn.json").write_text('{"id": "x", "dir')
    (folder / "other.json").write_text("[1]")
    assert stop_leftovers(place / "state") == []
    assert (folder / "torn.json").exists()


def test_a_process_id_is_for_good() -> None:
    me = ProcessId.of(os.getpid())
    assert me is not None
    assert me.alive
    assert not me.model_copy(update={"ticks": me.ticks + 1}).alive
    child = subprocess.Popen(["sleep", "600"])
    there = ProcessId.of(child.pid)
    child.kill()
    eventually(lambda: ProcessId.of(child.pid) is None, "a zombie is no process any more")
    child.wait()
    assert there is not None
    assert not there.alive


def test_pipes_of_dead_processes_are_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    dead = subprocess.Popen(["true"])
    dead.wait()
    names = {pid: place / f"vgdb-pipe-from-vgdb-to-{pid}-by-someone-on-here" for pid in (dead.pid, os.getpid())}
    for path in names.values():
        os.mkfifo(path)
    remove_vgdb_pipes(os.getuid(), set())
    assert not names[dead.pid].exists()
    assert names[os.getpid()].exists()
