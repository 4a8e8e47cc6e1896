"""Many processes append to one history: nothing lost, nothing doubled."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from history.database import current_revision, newest_revision, reading
from history.maintenance import verify
from history.model import Block, Measurement, Session
from history.store import Store
from tests.builders import SESSION, block, run

PROCESSES = 8
THREADS = 12
#: Seconds of appending; POINTDROP_CONCURRENCY_S=60 for the long form.
SECONDS = float(os.environ.get("POINTDROP_CONCURRENCY_S", "6"))


def own(process: int, number: int) -> Block:
    """A block that only this process appends, with a series nobody made before."""
    measurements = tuple(
        Measurement(test=f"test-{(number + at) % 40}", metric="qps", value=float(process * 1000 + number), unit="1/s")
        for at in range(3)
    )
    return block(run("17.1"), 0, number, id=f"own/{process}/{number}", measurements=measurements)


def shared(number: int) -> Block:
    """A block that every process appends."""
    return block(run("17.2"), float(number), number)


def append(url: str, process: int, until: float, answers: Any) -> None:
    """Append until the time is over; tell how many of its own, and how many shared ones were new by this process."""
    with Store.open(url) as store:
        store.append_session(SESSION)
        store.append_session(Session.model_validate(SESSION.model_dump() | {"id": f"s{process}"}))
        for version in ("17.1", "17.2"):
            store.append_run(run(version))
        number = fresh = 0
        while time.time() < until or number == 0:
            number += 1
            assert store.append_block(own(process, number))
            assert not store.append_block(own(process, number))
            fresh += store.append_block(shared(number))
    answers.put((number, fresh))


@pytest.mark.slow
def test_eight_processes_lose_nothing_and_double_nothing(url: str) -> None:
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    until = time.time() + SECONDS
    processes = [context.Process(target=append, args=(url, at, until, answers)) for at in range(PROCESSES)]
    for one in processes:
        one.start()
    told = [answers.get(timeout=240) for _ in processes]
    for one in processes:
        one.join()
        assert one.exitcode == 0
    with Store.open(url) as store:
        assert len(store.blocks("s/17.1")) == sum(count for count, _ in told)
        together = store.blocks("s/17.2")
        assert len(together) == max(count for count, _ in told) == sum(fresh for _, fresh in told)
        assert len(store.sessions()) == 1 + PROCESSES
        assert verify(store).problems == ()
        values = sum(len(point.values) for one in store.series() for point in one.points if point.version == "17.1")
        assert values == 3 * len(store.blocks("s/17.1"))


def test_threads_of_one_process_open_histories_at_once(tmp_path: Path) -> None:
    """Alembic keeps the migration under way in module globals: without a lock two threads mix theirs up."""
    together = threading.Barrier(THREADS)

    def opened(number: int) -> str | None:
        together.wait()
        with Store.open(f"sqlite:///{tmp_path}/{number % 4}.db") as store, reading(store.engine) as connection:
            return current_revision(connection)

    with ThreadPoolExecutor(THREADS) as pool:
        assert set(pool.map(opened, range(THREADS))) == {newest_revision()}
