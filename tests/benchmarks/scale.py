"""How long very many commit series take: `python -m tests.benchmarks.scale --series 1000000 --values 60`.

Series are made and judged in batches, by as many processes as `--workers` says; nothing is kept of a batch but its
counts, so memory does not grow with the number of series. Half of the series have a step of 5-15 %.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from detector.commits import analyse

BATCH = 2_000
MEGABYTE_KIB = 1024


@dataclass
class Counts:
    """What one batch came to."""

    series: int = 0
    found: int = 0
    missed: int = 0
    false: int = 0
    judging_s: float = 0.0

    def add(self, other: Counts) -> None:
        self.series += other.series
        self.found += other.found
        self.missed += other.missed
        self.false += other.false
        self.judging_s += other.judging_s


def batch(job: tuple[int, int, int]) -> Counts:
    """Make and judge `size` series of `n` values with this seed."""
    seed, size, n = job
    random = np.random.default_rng([20_260, seed])
    noise = np.exp(random.uniform(0.005, 0.03, (size, 1)) * random.standard_normal((size, n)))
    places = random.integers(n // 4, 3 * n // 4, size)
    ratios = np.where(np.arange(size) % 2 == 0, 1.0, 1.0 - random.uniform(0.05, 0.15, size))
    values = 100.0 * noise * np.where(np.arange(n) < places[:, None], 1.0, ratios[:, None])
    counts = Counts(series=size)
    start = time.perf_counter()
    for row, place, ratio in zip(values.tolist(), places.tolist(), ratios.tolist(), strict=True):
        near = [abs(index - place) <= 5 for index in analyse(row).indices()]
        hit = ratio < 1.0 and any(near)
        counts.found += hit
        counts.missed += ratio < 1.0 and not hit
        counts.false += len(near) - hit
    counts.judging_s = time.perf_counter() - start
    return counts


def jobs(series: int, n: int) -> Iterator[tuple[int, int, int]]:
    for seed, first in enumerate(range(0, series, BATCH)):
        yield seed, min(BATCH, series - first), n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=1_000_000)
    parser.add_argument("--values", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    total = Counts()
    start = time.perf_counter()
    with ProcessPoolExecutor(options.workers) as pool:
        for counts in pool.map(batch, jobs(options.series, options.values)):
            total.add(counts)
    wall = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / MEGABYTE_KIB
    each, false = 1000 * total.judging_s / total.series, 1000 * total.false / total.series
    print(f"{total.series} series of {options.values} values, {options.workers} workers: {wall:.0f} s,")
    print(f"{total.series / wall:.0f} series/s, {each:.2f} ms a series, {peak:.0f} MB a worker;")
    print(f"{total.found} of {total.found + total.missed} steps found, {false:.1f} false per 1000 series")


if __name__ == "__main__":
    main()
