"""The progress of real processes: stopped, asleep, short of CPU, or the harness itself stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runners.meters.proc import Meter, cpu_clock_s, process_tree
from runners.meters.progress import ProgressWatch
from runners.meters.stalls import Stalls

SPIN = ["sh", "-c", "while :; do :; done"]
#: A parent that does nothing and a child that works: Postgres.
SPIN_IN_A_CHILD = ["sh", "-c", "(while :; do :; done) & wait"]
SPIN_A_SECOND = [sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"]
SPIN_THEN_SLEEP = [*SPIN_A_SECOND[:2], SPIN_A_SECOND[2] + "\ntime.sleep(60)"]
BUSY_WITH_THE_DISK = ["dd", "if=/dev/zero", "bs=4k", "count=100000", "oflag=dsync", "status=none"]


class Processes:
    """Processes that stand for a server and a client."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, argv: list[str]) -> int:
        process = subprocess.Popen(argv, start_new_session=True, stdout=subprocess.DEVNULL)
        self.started.append(process)
        return process.pid

    def end(self) -> None:
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def processes() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.end()


def watched(server: int, client: int, during: Callable[[], object]) -> Stalls:
    """What a watch sees while something goes on."""
    meter = Meter(server, Path.cwd())
    meter.watch_client(client)
    watch = ProgressWatch(meter)
    watch.start()
    during()
    stalls = watch.stop()
    assert stalls is not None
    return stalls


def nothing(seconds: float) -> Callable[[], object]:
    return lambda: time.sleep(seconds)


def stopped_for(pid: int, seconds: float) -> float:
    """How long it was really stopped, by this process's own clock."""
    began = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)
    return time.monotonic() - began


@pytest.mark.parametrize("server", [SPIN, SPIN_IN_A_CHILD])
@pytest.mark.parametrize("who", ["server", "client"])
def test_a_stop_is_seen_as_long_as_it_is(processes: Processes, server: list[str], who: str) -> None:
    pids = {"server": processes.start(server), "client": processes.start(SPIN)}
    while server is SPIN_IN_A_CHILD and len(process_tree(pids["server"])) < 2:
        time.sleep(0.01)  # children are listed once a second: one that comes later is not watched in time
    seconds = 0.0

    def stop() -> None:
        nonlocal seconds
        time.sleep(0.4)
        # Of Postgres only the process that works is stopped: the one that serves the session.
        seconds = stopped_for(process_tree(pids[who])[-1], 0.6)
        time.sleep(0.4)

    stalls = watched(pids["server"], pids["client"], stop)
    assert who in stalls.causes
    assert 0.3 < stalls.lost_s < seconds + 0.5


def test_who_works_with_the_others_is_not_stalled_however_busy_the_machine(processes: Processes) -> None:
    """Three times as many processes as CPUs: each waits for a CPU most of the time."""
    for _ in range(3 * (os.cpu_count() or 1)):
        processes.start(SPIN)
    os.setpriority(os.PRIO_PROCESS, server := processes.start(SPIN), 10)
    assert watched(server, processes.start(SPIN), nothing(2.0)).seconds == {}


def test_a_server_and_a_client_that_sleep_are_a_stall(processes: Processes) -> None:
    server, client = processes.start(SPIN_THEN_SLEEP), processes.start(SPIN_THEN_SLEEP)

    def both_have_slept() -> None:
        while not all((cpu_clock_s(pid) or 0.0) > 1.0 for pid in (server, client)):
            time.sleep(0.1)
        time.sleep(2)

    stalls = watched(server, client, both_have_slept)
    assert sum(stalls.seconds.get(cause, 0.0) for cause in ("asleep", "storage")) > 0.2, "others may use the disk"


def test_a_server_that_waits_for_its_disk_is_not_called_stopped(processes: Processes, tmp_path: Path) -> None:
    server = processes.start([*BUSY_WITH_THE_DISK, f"of={tmp_path / 'file'}"])
    stalls = watched(server, processes.start(["sleep", "60"]), nothing(1.0))
    assert stalls.causes == ()


def test_what_comes_after_the_client_is_not_the_test(processes: Processes) -> None:
    client = processes.start(SPIN_A_SECOND)

    def ended_long_ago() -> None:
        processes.started[0].wait()
        time.sleep(1.5)

    assert watched(processes.start(["sleep", "60"]), client, ended_long_ago).seconds == {}


WATCH_ITSELF = """
import json, sys, time
from pathlib import Path
from runners.meters.proc import Meter
from runners.meters.progress import ProgressWatch

meter = Meter(int(sys.argv[1]), Path.cwd())
meter.watch_client(int(sys.argv[2]))
watch = ProgressWatch(meter)
watch.start()
print("watching", flush=True)
time.sleep(2)
print(json.dumps(watch.stop().seconds))
"""


def test_a_harness_that_is_stopped_finds_that_it_was(processes: Processes) -> None:
    argv = [sys.executable, "-c", WATCH_ITSELF, str(processes.start(SPIN)), str(processes.start(SPIN))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == "watching\n"
        time.sleep(0.4)
        seconds = stopped_for(harness.pid, 0.8)
        found = json.loads(harness.stdout.read())
    assert 0.3 < found["harness"] < seconds + 0.5


def test_a_watch_that_was_never_started_says_nothing(processes: Processes) -> None:
    watch = ProgressWatch(Meter(os.getpid(), Path.cwd()))
    assert watch.stop() is None
    assert watch.stop() is None
