"""Who gets which cores, with real processes: some to a session that counts, all to one that is timed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.cores import Cores, machine_cores, usable_cores
from runners.errors import HostBusy

#: `PROGRAM FOLDER HOW` holds cores until its input ends; says which.
PROGRAM = """
import sys
from pathlib import Path
from runners.cores import Cores
from runners.errors import HostBusy

cores, how = Cores(Path(sys.argv[1])), sys.argv[2]
try:
    with cores.whole_host() if how == "all" else cores.free(int(how)) as held:
        print(*held.numbers, flush=True)
        sys.stdin.read()
except HostBusy as error:
    print(f"busy: {error}", flush=True)
"""

Process = subprocess.Popen[str]
Hold = Callable[[str], tuple[Process, str]]

several_cores = pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Hold]:
    """`hold("1")`, `hold("all")`: a process, and what it says it got."""
    processes: list[Process] = []

    def start(how: str) -> tuple[Process, str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), how]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert processes[-1].stdout is not None
        return processes[-1], processes[-1].stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@several_cores
def test_sessions_that_count_share_the_cores(hold: Hold, tmp_path: Path) -> None:
    _, first = hold("1")
    with Cores(tmp_path).free(1) as held:
        assert {int(first), *held.numbers} == set(usable_cores()[:2]), "each its own, the lowest first"
        with Cores(tmp_path).only(held.numbers) as alone:
            assert not alone
    with Cores(tmp_path).free(99) as held:
        assert set(held.numbers) == set(usable_cores()) - {int(first)}


def test_a_session_takes_no_more_cores_than_it_can_use(tmp_path: Path) -> None:
    for most in (0, 1):
        with Cores(tmp_path).free(most) as held:
            assert held.numbers == usable_cores()[:1]
            with held.alone() as alone:
                assert alone, "nobody else is there"


@several_cores
def test_a_timed_session_has_the_host_to_itself(hold: Hold, tmp_path: Path) -> None:
    counting, got = hold("1")
    with pytest.raises(HostBusy, match=f"process {counting.pid} .* holds core {got}"), Cores(tmp_path).whole_host():
        pass
    counting.communicate("")
    timed, everything = hold("all")
    assert everything.split() == [str(core) for core in machine_cores()]
    for how in ("1", "all"):
        _, said = hold(how)
        assert said.startswith(f"busy: another session measures on this host (process {timed.pid} (")
    timed.communicate("")
    with Cores(tmp_path).whole_host() as held:
        assert held.numbers == machine_cores()


def test_nobody_is_left_with_half_the_cores(hold: Hold, tmp_path: Path) -> None:
    """A timed session that is refused gives back what it had taken until then."""
    counting, _ = hold("1")
    with pytest.raises(HostBusy), Cores(tmp_path).whole_host():
        pass
    counting.communicate("")
    with Cores(tmp_path).free(99) as held:
        assert held.numbers == usable_cores()


def test_a_lock_ends_with_the_process(hold: Hold, tmp_path: Path) -> None:
    timed, _ = hold("all")
    timed.kill()
    timed.wait()
    with Cores(tmp_path).whole_host() as held:
        assert held.numbers == machine_cores()


def test_a_session_counts_on_the_cores_its_process_may_run_on(tmp_path: Path) -> None:
    core = max(usable_cores())
    program = f"import os; os.sched_setaffinity(0, {{{core}}})\n{PROGRAM}"
    command = [sys.executable, "-c", program, str(tmp_path), "99"]
    said = subprocess.run(command, input="", capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(core)]


def test_the_message_tells_no_options(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), "all", "--history=postgresql://me:secret@db/h"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(HostBusy) as refused, Cores(tmp_path).free(1):
            pass
        process.communicate("")
    assert Path(sys.executable).name in str(refused.value) and "secret" not in str(refused.value)
