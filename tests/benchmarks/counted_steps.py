"""How small a step counted instructions show, and how often they show one where nothing is.

`python -m tests.benchmarks.counted_steps` judges lines of releases of one suite, one block each, in sessions of their
own. In one test of each line one release needs
0.3 % more: in the middle of the line, or the newest one. The newest and the one before it are then measured again, a
block each, as a night does it. What else moves is false, in whichever tier. The noise is of one of these kinds:

* normal: the same everywhere, 0.03 %;
* as counted: what blocks of one release of MySQL differ by in real nights: in tests that read 0.002 %, one block in
  thirty 0.05 %; in those that write, one test in four, 0.02 %, three blocks in ten 0.1 %;
* prepared data: normal, and in one test out of twenty each release has one of two levels 0.14 % apart, in all of its
  blocks, as range scans of Postgres have, whose data is prepared once a release;
* tests differ: normal, and the tests' noise lies between 0.003 % and 0.3 %.

Prints a Markdown table.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detector import detect
from detector.arrays import Floats
from history.model import Finding, Series
from tests.builders import measured_again, series

NOISES = ("normal", "as counted", "prepared data", "tests differ")
STEP = 0.003
NORMAL = 0.0003
#: Tests that read, and those that write, one in so many: standard deviation of a block, of one that is far off, and the
#: share of these.
READS, WRITES, WRITE_TESTS = (0.00002, 0.0005, 0.03), (0.0002, 0.001, 0.3), 4
#: One test out of so many has two levels, so far apart.
PREPARED_TESTS, PREPARED = 20, 0.0014
LEAST, MOST = 0.00003, 0.003


@dataclass
class Tally:
    """What became of the lines with one kind of noise."""

    lines: int = 0
    boundaries: int = 0
    """Of all series, those with the step left out."""
    found: int = 0
    of_confirmed: int = 0
    """Steps that were found and confirmed."""
    false: int = 0
    false_confirmed: int = 0


def noise(kind: str, shape: tuple[int, int, int], random: np.random.Generator) -> Floats:
    """[tests, releases, blocks] logs."""
    tests, releases, _ = shape
    normal = random.standard_normal(shape)
    values = NORMAL * normal
    if kind == "as counted":
        for which, (near, far, share) in ((slice(None), READS), (slice(None, None, WRITE_TESTS), WRITES)):
            draw = random.random(normal[which].shape)
            values[which] = normal[which] * np.where(draw < share, far, near)
        return values
    if kind == "tests differ":
        return normal * np.exp(random.uniform(np.log(LEAST), np.log(MOST), (tests, 1, 1)))
    if kind == "prepared data":
        of_release = PREPARED * random.integers(0, 2, (tests, releases, 1))
        values[::PREPARED_TESTS] += of_release[::PREPARED_TESTS]
    return values


def line(
    kind: str, random: np.random.Generator, *, tests: int, releases: int, at: int | None, step: float = STEP
) -> tuple[list[Series], str]:
    """One line, and the test that has the step at release `at`; in a quiet one no test has."""
    logs = noise(kind, (tests, releases, 2), random)
    logs += random.uniform(10.0, 15.0, (tests, 1, 1))
    stepped = int(random.integers(tests))
    if at is not None:
        logs[stepped, at:] += np.log1p(step)
    values = np.exp(logs)
    made = []
    for test in range(tests):
        once = series([[value] for value in values[test, :, 0].tolist()], test=f"test-{test:02}", metric="insn/o")
        blocks = {f"17.{r}": [float(values[test, r, 1])] for r in (releases - 2, releases - 1)}
        made.append(measured_again(once, "later", blocks))
    return made, f"test-{stepped:02}"


def judge(findings: Sequence[Finding], at: int | None, test: str, tally: Tally) -> None:
    for finding in findings:
        for move in finding.moves:
            if move.key.test == test and finding.release == f"17.{at}":
                tally.found += 1
                tally.of_confirmed += move.tier == "confirmed"
            else:
                tally.false += 1
                tally.false_confirmed += move.tier == "confirmed"


def measure(kind: str, place: str, *, lines: int, tests: int, releases: int, seed: int, step: float = STEP) -> Tally:
    """`place`: `middle`, `newest`, or `none` for quiet lines."""
    tally = Tally()
    for number in range(lines):
        random = np.random.default_rng([seed, number])
        at = {"middle": releases // 2, "newest": releases - 1}.get(place)
        suite, test = line(kind, random, tests=tests, releases=releases, at=at, step=step)
        judge(detect(suite), at, test, tally)
        tally.lines += 1
        tally.boundaries += tests * (releases - 1) - (at is not None)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=50, help="of each row")
    parser.add_argument("--tests", type=int, default=42)
    parser.add_argument("--releases", type=int, nargs="*", default=[6, 12, 24])
    parser.add_argument("--step", type=float, default=100.0 * STEP, help="percent")
    parser.add_argument("--seed", type=int, default=20_260)
    options = parser.parse_args()
    print("| noise | releases | middle: found | newest: found | confirmed | false per 1000 boundaries | confirmed |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind in NOISES:
        for releases in options.releases:
            middle, newest, quiet = (
                measure(
                    kind, place, lines=options.lines, tests=options.tests, releases=releases,
                    seed=options.seed + at, step=options.step / 100.0,
                )
                for at, place in enumerate(("middle", "newest", "none"))
            )  # fmt: skip
            boundaries = sum(tally.boundaries for tally in (middle, newest, quiet))
            false = 1000.0 * sum(tally.false for tally in (middle, newest, quiet)) / boundaries
            confirmed = 1000.0 * sum(tally.false_confirmed for tally in (middle, newest, quiet)) / boundaries
            shares = [middle.found / middle.lines, newest.found / newest.lines, newest.of_confirmed / newest.lines]
            cells = [kind, str(releases), *(f"{share:.0%}" for share in shares), f"{false:.2f}", f"{confirmed:.2f}"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
