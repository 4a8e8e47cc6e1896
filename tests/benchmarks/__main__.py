"""Detectors of commit series side by side: `python -m tests.benchmarks`, or `make bench`, prints a Markdown table.

Quality on series with known changes and on quiet ones, all simulated here or made of noise that our own machine showed;
speed as the ratio of medians in this very run. The seed is not the one
that anything was tuned with: `--seed` takes another.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator

from tests.benchmarks import series
from tests.benchmarks.detectors import OURS, OURS_PROVISIONAL, PEERS, Detector, Ours, Peer, confirmed, provisional
from tests.benchmarks.scores import Score, watch

COLUMNS = (
    "detector",
    "F1 steps",
    "F1 measured noise",
    "quiet: independent",
    "autocorrelated",
    "wave",
    "measured",
    "watching: false per 1000 @ delay",
    "ms, n=200",
    "ratio",
    "ms, n=1000",
    "ratio",
)
#: Length of the series timed.
SHORT, LONG = 200, 1000
#: A series is timed so often, or until its calls have taken so long.
CALLS, ENOUGH_S = 5, 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=20_260)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the series, as in 0.1 for a quick look")
    parser.add_argument("--without", nargs="*", default=[], choices=list(PEERS), help="peers to leave out")
    options = parser.parse_args()
    rows = []
    for detector in detectors(options.without):
        with detector:
            rows.append(measure(detector, options.seed, options.scale))
    ours = rows[0]
    print(f"| {' | '.join(COLUMNS)} |\n| {' | '.join('---' for _ in COLUMNS)} |")
    for row in rows:
        short, long = f"{row[-2] / ours[-2]:.1f}", f"{row[-1] / ours[-1]:.1f}"
        print(f"| {' | '.join([*row[:-2], f'{row[-2]:.2f}', short, f'{row[-1]:.2f}', long])} |")


def detectors(without: list[str]) -> Iterator[Detector]:
    """One after the other, so that none waits in memory while another is timed."""
    yield Ours(OURS, confirmed)
    yield Ours(OURS_PROVISIONAL, provisional)
    for name in PEERS:
        if name not in without:
            yield Peer(name)


def measure(detector: Detector, seed: int, scale: float) -> list:
    def some(count: int) -> int:
        return max(6, int(count * scale))

    shapes = (*series.INDEPENDENT, "autocorrelated")
    row: list = [detector.title]
    for cases in (series.steps(seed, shapes, some(240), 200), series.steps(seed, ("measured",), some(240), 120)):
        score = Score()
        for case in cases:
            score.add(case.changes, detector.find(case.values))
        row.append(f"{score.f1:.3f}")
    quiet = [alarms(detector, series.quiet(seed, shape, some(100), 100)) for shape in series.INDEPENDENT]
    row.append(f"{statistics.mean(quiet):.0f}")
    row += [
        f"{alarms(detector, series.quiet(seed, s, some(200), 100)):.0f}" for s in ("autocorrelated", "wave", "measured")
    ]
    seen = watch(((c.values, c.changes) for c in series.growing(seed, some(48), 80, 55)), detector.find, 30)
    row.append(f"{seen.false_per_1000:.1f} @ {seen.delay:.1f}")
    for n, count in ((SHORT, some(30)), (LONG, some(6))):
        times = [quickest(detector, case.values) for case in series.steps(seed + n, ("normal",), count, n)]
        row.append(1000 * statistics.median(times))
    return row


def quickest(detector: Detector, values: list[float]) -> float:
    """Seconds of the quickest of a few calls, so that what else the machine does is not counted."""
    times: list[float] = []
    while len(times) < CALLS and sum(times) < ENOUGH_S:
        detector.find(values)
        times.append(detector.seconds)
    return min(times)


def alarms(detector: Detector, cases: Iterator[series.Case]) -> float:
    """Changes reported per 1000 quiet series."""
    found = [len(detector.find(case.values)) for case in cases]
    return 1000.0 * sum(found) / len(found)


if __name__ == "__main__":
    main()
