"""Bounds inside the real sandboxes: a bomb of forks, a file that grows, memory that poses as a directory."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Semaphore

import psutil
import pytest

from runners import bounds
from runners.bounds import DiskFull, DiskWatch, run_within, scope
from runners.engines.account import server_account
from runners.errors import ServerLeftOver
from runners.releases.archives import remove_tree
from runners.sandbox import BUILD, SERVER, Bounds, sandboxed

MIB = 1 << 20
#: Forks a bomb tries: bounded here too, each a sleeping copy of a small Python, gone with the sandbox.
TRIES = 800
BOMB = f"""
import os, time
for number in range({TRIES}):
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
    except OSError as error:
        print("refused", error.errno)
        break
else:
    print("all")
"""
#: What may be written to from inside, and how much of it.
FILL = """
import errno, os, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for place in sys.argv[1:]:
    total = 0
    try:
        with open(place, "wb", buffering=0) as file:
            while total < 16 << 20:
                total += file.write(bytes(1 << 16))
        print("full size")
    except OSError as error:
        print(errno.errorcode[error.errno], total)
"""

Sandbox = Callable[..., str]


@pytest.fixture(params=["build", "server"])
def inside(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Runs Python inside one of the two sandboxes and gives what it printed; `place` may be written to."""
    place = Path(tempfile.mkdtemp(prefix="pointdrop-bounds-"))
    place.chmod(0o755)
    account = server_account()
    work = place / "work"
    work.mkdir()
    account.own(work)

    def run(code: str, *arguments: str, given: Bounds = BUILD, tmpfs_bytes: int = MIB) -> str:
        argv = ["/usr/bin/python3", "-c", code, *(argument.format(work=work) for argument in arguments)]
        command = sandboxed(
            argv,
            writable=[work],
            bounds=given,
            tmpfs_bytes=tmpfs_bytes,
            directory=work if request.param == "build" else None,
            environment={"LC_ALL": "C"} if request.param == "build" else None,
        )
        done = subprocess.run(account.command(command), cwd=work, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield run
    remove_tree(place)


def threads_of_account() -> int:
    """The kernel counts those of other sandboxes and servers as well."""
    uid = server_account().uid
    return sum(process.info["num_threads"] or 0 for process in psutil.process_iter(["uids", "num_threads"])
               if process.info["uids"] and process.info["uids"].real == uid)  # fmt: skip


def test_a_bomb_of_forks_is_stopped_and_nothing_of_it_is_left(inside: Sandbox) -> None:
    given = Bounds(processes=threads_of_account() + 200, file_bytes=MIB)
    assert inside(BOMB, given=given).split()[0] == "refused"
    assert not [process for process in psutil.process_iter(["cmdline"]) if BOMB in (process.info["cmdline"] or ())]


def test_a_file_and_the_directories_in_memory_stop_growing(inside: Sandbox) -> None:
    """What is not meant to be written to is not: the root and /dev would be memory without a bound."""
    said = inside(
        FILL, "{work}/file", "/tmp/file", "/dev/shm/file", "/file", "/dev/file",
        given=Bounds(processes=8192, file_bytes=2 * MIB),
    ).splitlines()  # fmt: skip
    assert said == [f"EFBIG {2 * MIB}", f"ENOSPC {MIB}", f"ENOSPC {MIB}", "EROFS 0", "EROFS 0"]


def test_there_are_no_core_dumps_and_the_kernel_ends_it_first(inside: Sandbox) -> None:
    code = (
        "import resource; print(resource.getrlimit(resource.RLIMIT_CORE), open('/proc/self/oom_score_adj').read(), "
        "resource.getrlimit(resource.RLIMIT_NPROC)[1], resource.getrlimit(resource.RLIMIT_FSIZE)[1])"
    )
    said = inside(code, given=SERVER).split()
    assert said == ["(0,", "0)", "1000", str(SERVER.processes), str(SERVER.file_bytes)]


def test_it_cannot_take_back_that_the_kernel_ends_it_first(inside: Sandbox) -> None:
    """Neither for itself nor for another process of its account; outside a sandbox any account may."""
    code = """
import errno, os
child = os.fork()
if child == 0:
    os.read(os.pipe()[0], 1)
for file in ("/proc/self/oom_score_adj", f"/proc/{child}/oom_score_adj", "/proc/self/oom_adj"):
    try:
        open(file, "w").write("0")
        print("lowered")
    except OSError as error:
        print(errno.errorcode[error.errno])
print(open("/proc/self/oom_score_adj").read())
os.kill(child, 9)
"""
    assert inside(code).split() == ["EROFS", "EROFS", "EROFS", "1000"]
    outside = server_account().command(BUILD.around(["sh", "-c", "echo 0 > /proc/self/oom_score_adj"]))
    assert subprocess.run(outside, check=False).returncode == 0, "so it is /proc that holds it"


def test_a_watch_of_the_disk_goes_on_when_something_goes_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that hangs in the kernel may be gone at the next look."""
    monkeypatch.setattr(bounds, "LOOK_S", 0.01)
    tried = Semaphore(0)

    def end() -> None:
        tried.release()
        raise ServerLeftOver("it hangs")

    watch = DiskWatch(tmp_path, 1 << 60, end)
    watch.start()
    try:
        assert tried.acquire(timeout=60) and tried.acquire(timeout=60)
    finally:
        watch.stop()
    assert watch.message == f"less than {1 << 30} GiB are free on the disk of {tmp_path}; it hangs"


def test_what_keeps_a_watch_from_looking_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LOOK_S", 0.01)
    ended = Event()
    (tmp_path / "file").touch()
    watch = DiskWatch(tmp_path / "file" / "below", 1 << 60, ended.set)
    watch.start()
    try:
        for _ in range(1000):
            if watch.message:
                break
            time.sleep(0.01)
        assert watch.message.startswith(f"the disk of {watch.place} cannot be watched; [Errno {errno.ENOTDIR}]")
        assert not ended.is_set()
        (tmp_path / "file").unlink()
        watch.place.mkdir(parents=True)
        assert ended.wait(60), "it looks again"
    finally:
        watch.stop()


def test_a_command_that_eats_the_disk_or_never_ends_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LOOK_S", 0.1)
    marker = f"sleep 86{os.getpid()}"
    command = ["sh", "-c", f"{marker} & {marker}"]
    with (tmp_path / "log").open("wb") as log:

        def run(deadline_s: float, least_free: int) -> int:
            return run_within(
                command, cwd=tmp_path, env=os.environ, out=log.fileno(), deadline_s=deadline_s, least_free=least_free
            )

        with pytest.raises(DiskFull, match="GiB are free on the disk"):
            run(600, 1 << 60)
        with pytest.raises(subprocess.TimeoutExpired):
            run(0, 0)
        command = ["sh", "-c", "echo done; exit 7"]
        assert run(600, 0) == 7
    assert (tmp_path / "log").read_text() == "done\n"
    for _ in range(100):
        left = [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == marker.split()]
        if not left:
            break
        time.sleep(0.05)
    assert not left


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine on which systemd runs; its `systemd-run` writes what it was asked and does it, or refuses."""
    script = tmp_path / "systemd-run"
    script.write_text(
        f'#!/bin/sh\n[ -e {tmp_path}/refuse ] && exit 1\necho "$@" >> {tmp_path}/asked\n'
        'while [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setattr(bounds, "BOOTED", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    scope.cache_clear()
    yield tmp_path
    scope.cache_clear()


def test_memory_is_bounded_where_systemd_makes_a_scope(systemd: Path) -> None:
    done = subprocess.run([*scope(), "echo", "inside"], capture_output=True, text=True, check=True)
    assert done.stdout == "inside\n"
    asked = (systemd / "asked").read_text().splitlines()
    assert len(asked) == 2 and all(" -p MemoryMax=" in command and " -p TasksMax=8192 " in command for command in asked)


def test_where_systemd_makes_none_there_is_none(systemd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (systemd / "refuse").touch()
    assert scope() == ()
    scope.cache_clear()
    (systemd / "refuse").unlink()
    monkeypatch.setattr(bounds, "BOOTED", systemd / "nothing")
    assert scope() == ()
