"""The detector of releases on panels with known changes: `python -m tests.benchmarks.releases` prints two tables.

The first is how much is found and how much is false, suite by suite; the second how far a probability can be trusted:
of all steps reported with about so much, the share that is true. A step counts as true at the exact release alone.
`--seed` takes other panels than those that anything was tuned with.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from detector.arrays import Floats
from detector.releases.scan import scan_panel
from detector.releases.series_panel import panel_of_blocks
from detector.releases.series_steps import read_steps
from history.metrics import shipped_metrics
from tests.benchmarks.series import noise

RELEASES = 25
#: Edges of the probabilities that are told apart.
EDGES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.000001)
#: Share of the tests that an eventful release moves, and by how much (log units).
SHARE, SIZE = (0.08, 0.4), (0.03, 0.10)
#: Noise shared by all tests of a release, and of one test: its smallest and largest.
SHARED, BETWEEN, WITHIN = 0.005, (0.003, 0.012), (0.01, 0.03)

Place = tuple[int, int, int]
"""Server, test, release."""


@dataclass(frozen=True)
class Suite:
    """Panels of one kind; `noise` is a shape of `series.noise`."""

    name: str
    servers: int
    tests: int
    blocks: int
    noise: str
    cpu: bool
    events: int
    """Releases that move something."""
    newest: bool = False
    """Whether the last of them is the newest release."""


SUITES = (
    Suite("two servers, 3 blocks", 2, 42, 3, "normal", False, 4),
    Suite("the same with CPU", 2, 42, 3, "normal", True, 4),
    Suite("one block", 1, 27, 1, "laplace", False, 4),
    Suite("one block with CPU", 1, 27, 1, "laplace", True, 4),
    Suite("one block, measured noise", 1, 27, 1, "measured", False, 4),
    Suite("one block, measured noise, newest", 1, 27, 1, "measured", False, 2, newest=True),
    Suite("newest with CPU", 2, 42, 3, "normal", True, 4, newest=True),
    Suite("quiet, 3 blocks", 2, 42, 3, "normal", False, 0),
    Suite("quiet, one block, measured noise", 1, 27, 1, "measured", False, 0),
)


class Reported(NamedTuple):
    """A step that was reported."""

    probability: float
    true: bool


@dataclass(frozen=True)
class Result:
    """What came of the panels of one suite."""

    reported: list[Reported]
    changes: int
    found: int
    newest: tuple[int, int, int]
    """True, found and reported on the newest release."""
    series: int


def panel(suite: Suite, seed: int) -> tuple[Floats, Floats | None, set[Place]]:
    """Throughput and CPU per operation, [servers, tests, releases, blocks], and where they change."""
    random = np.random.default_rng([seed, suite.servers, suite.tests, suite.events])
    shape = (suite.servers, suite.tests, RELEASES)
    level, changes = np.zeros(shape), set()
    places = np.sort(random.choice(np.arange(3, RELEASES - 2), suite.events, replace=False))
    if suite.newest:
        places[-1] = RELEASES - 1
    for release in places.tolist():
        moved = random.choice(suite.tests, max(1, round(random.uniform(*SHARE) * suite.tests)), replace=False)
        sign = random.choice([-1, -1, 1])
        for test in moved.tolist():
            size = sign * random.uniform(*SIZE)
            for server in range(suite.servers):
                level[server, test, release:] += size * random.uniform(0.8, 1.2)
                changes.add((server, test, release))

    def noisy(of_level: float) -> Floats:
        between = np.exp(random.uniform(*np.log(BETWEEN), shape[:2]))[..., None]
        within = np.exp(random.uniform(*np.log(WITHIN), shape[:2]))[..., None, None] * (suite.blocks > 1)
        rows = np.array([noise(random, suite.noise, RELEASES) for _ in range(shape[0] * shape[1])]).reshape(shape)
        shared = of_level * SHARED * random.standard_normal((suite.servers, 1, RELEASES))
        runs = within * random.standard_normal((*shape, suite.blocks))
        return np.exp(7.0 + (of_level * level + between * rows + shared)[..., None] + runs)

    return noisy(1.0), noisy(-0.9) if suite.cpu else None, changes


def measure(suite: Suite, seeds: Sequence[int]) -> Result:
    """The steps reported in the panels of these seeds; one of throughput or CPU is one of its test."""
    metrics = shipped_metrics()
    reported: list[Reported] = []
    found = changes = series = 0
    newest = [0, 0, 0]
    for seed in seeds:
        qps, cpu, true = panel(suite, seed)
        arrays = {metrics.first("throughput"): qps} | ({} if cpu is None else {metrics.first("cpu"): cpu})
        steps = read_steps(scan_panel(panel_of_blocks(arrays))).steps
        seen = {(*step.place[1:], step.release) for step in steps}
        reported += [Reported(step.probability, (*step.place[1:], step.release) in true) for step in steps]
        found += len(seen & true)
        changes += len(true)
        series += suite.servers * suite.tests
        last = [{place for place in places if place[2] == RELEASES - 1} for places in (true, seen)]
        for at, count in enumerate((len(last[0]), len(last[0] & last[1]), len(last[1]))):
            newest[at] += count
    return Result(reported, changes, found, (newest[0], newest[1], newest[2]), series)


def reliability(reported: Sequence[Reported]) -> Iterator[tuple[float, float, float, float, int]]:
    """Bin by bin: its edges, the mean probability, the share that is true, and how many there are."""
    for low, high in pairwise(EDGES):
        inside = [step for step in reported if low <= step.probability < high]
        if inside:
            predicted = sum(step.probability for step in inside) / len(inside)
            yield low, min(high, 1.0), predicted, sum(step.true for step in inside) / len(inside), len(inside)


def calibration_error(reported: Sequence[Reported]) -> float:
    """The mean distance of probability and truth, bin by bin (expected calibration error of Naeini et al. 2015).

    >>> calibration_error([Reported(0.9, True)] * 8 + [Reported(0.9, False)] * 2)
    0.1
    """
    total = sum(count * abs(predicted - true) for *_, predicted, true, count in reliability(reported))
    return round(total / max(len(reported), 1), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20_260)
    parser.add_argument("--panels", type=int, default=20, help="of each suite")
    options = parser.parse_args()
    print("| suite | found | precision | false per 1000 series | newest: found | precision | calibration error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    everything: list[Reported] = []
    for suite in SUITES:
        result = measure(suite, range(options.seed, options.seed + options.panels))
        false = sum(not step.true for step in result.reported)
        true, found, told = result.newest
        cells = [
            share(result.found, result.changes), share(len(result.reported) - false, len(result.reported)),
            f"{1000 * false / result.series:.0f}", share(found, true), share(found, told),
            f"{calibration_error(result.reported):.3f}" if result.changes else "",
        ]  # fmt: skip
        print(f"| {suite.name} | {' | '.join(cells)} |")
        everything += result.reported
    print(f"\nCalibration error of all: {calibration_error(everything):.3f}\n")
    print("| probability | predicted | true | steps |\n| --- | --- | --- | --- |")
    for low, high, predicted, observed, count in reliability(everything):
        print(f"| {low:.2f} to {high:.2f} | {predicted:.3f} | {observed:.3f} | {count} |")


def share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else ""


if __name__ == "__main__":
    main()
