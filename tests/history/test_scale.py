"""The benchmark runs on both databases, and memory does not grow with the history. Times are for the benchmark."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from history.model import Measurement
from history.store import Store
from tests.benchmarks import history
from tests.builders import SESSION, block, run


def test_the_benchmark_measures_what_it_says(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LINES", 2)
    monkeypatch.setattr(history, "ROUNDS", 1)
    found = history.measure(url, 2 * history.NIGHT, tmp_path)
    nights = 3  # two that fill the history and one that is measured
    assert found["load_values"] == nights * history.BLOCKS_A_LINE * history.BLOCK
    assert all(found[f"{name}_ratio"] > 0 for name in ("append", "load", "findings"))


def test_series_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """Walking through them takes a fraction of the memory of holding them all."""
    with Store.open(f"sqlite:///{tmp_path}/h.db") as store:
        store.append_session(SESSION)
        for version in ("17.1", "17.2", "17.3"):
            store.append_run(run(version))
            for number in range(5):
                values = tuple(Measurement(test=f"test-{at:04}", metric="qps", value=1.0 + at) for at in range(1000))
                store.append_block(block(run(version), 0, number, measurements=values))
        assert sum(1 for _ in store.series()) == 1000
        tracemalloc.start()
        held = list(store.series())
        _, all_at_once = tracemalloc.get_traced_memory()
        del held
        tracemalloc.reset_peak()
        for _ in store.series():
            pass
        _, one_by_one = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert one_by_one < all_at_once / 2
