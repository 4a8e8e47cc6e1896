"""Two processes that measure on one host: two that count share it, a timed one has it alone, a dead one has nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from runners.cores import Cores, usable_cores
from runners.errors import HostBusy
from runners.releases import Catalogue
from runners.sessions import Outcome, SessionPlan, run_session
from tests.folders import open_folder
from tests.small_plans import CONFIGS

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: `PROGRAM SESSION STATE DOWNLOADS LOCKS CORE`: counts on that core; a line when a block begins, then the counts.
PROGRAM = """
import json, os, sys
from pathlib import Path
from runners.cores import Cores
from runners.releases import Catalogue
from runners.sessions import run_session
from runners.sessions.events import BlockStarted
from tests.small_plans import CONFIGS, small_plan

session_id, state, downloads, locks, core = sys.argv[1:]
os.sched_setaffinity(0, {int(core)})
counts = {}

def sink(session, run, block):
    counts.update({f"{run.release.version} {m.test}": m.value for m in block.measurements})

def on_event(event):
    if isinstance(event, BlockStarted):
        print("begun", flush=True)

plan = small_plan(lane="instructions", session_id=session_id)
catalogue = Catalogue(CONFIGS, Path(downloads))
outcome = run_session(
    plan, catalogue, sink, configs=CONFIGS, state=Path(state), cores=Cores(Path(locks)), on_event=on_event
)
catalogue.close()
print(json.dumps({"complete": outcome.complete, "warnings": outcome.warnings, "counts": counts}))
"""

Process = subprocess.Popen[str]
Begin = Callable[[str, int], Process]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def place() -> Iterator[Path]:
    """A state directory of its own, empty, that others may enter."""
    with open_folder() as folder:
        yield folder


@pytest.fixture
def begin(place: Path, download_state: Path, tmp_path: Path) -> Iterator[Begin]:
    """`begin("a", core)`: a process that counts in a session of that name."""
    processes: list[Process] = []

    def start(session_id: str, core: int) -> Process:
        words = [session_id, str(place), str(download_state), str(tmp_path), str(core)]
        command = [sys.executable, "-c", PROGRAM, *words]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def counts(process: Process) -> dict[str, float]:
    """What a session that came to its end has counted."""
    told, _ = process.communicate(timeout=600)
    result = json.loads(told.splitlines()[-1])
    assert result["complete"] and not result["warnings"], result
    values: dict[str, float] = result["counts"]
    return values


def test_two_sessions_count_at_once_what_one_counts_alone(begin: Begin) -> None:
    assert len(usable_cores()) >= 2, "two sessions count on two cores; run the tests with two or more (see: taskset)"
    first, second = (begin(name, core) for name, core in zip("ab", usable_cores(), strict=False))
    at_once = [counts(first), counts(second)]
    alone = counts(begin("c", usable_cores()[0]))
    assert len(alone) == 4, "two tests of two releases"
    for values in at_once:
        assert values == pytest.approx(alone, rel=0.003)


def test_a_timed_session_waits_for_no_core_and_inherits_those_of_the_dead(
    begin: Begin, place: Path, catalogue: Catalogue, tmp_path: Path, make_plan: Callable[..., SessionPlan]
) -> None:
    def timed() -> Outcome:
        plan = make_plan(lane="time", tests=("point-query.range100",))
        return run_session(plan, catalogue, lambda *rows: None, configs=CONFIGS, state=place, cores=Cores(tmp_path))

    counting = begin("a", usable_cores()[0])
    assert counting.stdout is not None and counting.stdout.readline() == "begun\n"
    with pytest.raises(HostBusy, match=f"process {counting.pid} .* nothing may run beside a timed one"):
        timed()
    assert counting.poll() is None, "the other one goes on"
    counting.kill()
    counting.wait()
    outcome = timed()
    assert outcome.done + outcome.noisy == 2
    running = psutil.process_iter(["cmdline"])
    assert not [p for p in running if any(str(place) in part for part in p.info["cmdline"] or ())]
