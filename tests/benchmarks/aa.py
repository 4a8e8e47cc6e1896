"""A/A: a release against a copy of itself, again and again: `python -m tests.benchmarks.aa`.

Each run is what `pointdrop compare` does, with nothing left out: fresh servers of both sides under callgrind, rounds
until every test is clear. Each of its tests is one comparison. Whatever is told DIFFERENT is false. Prints a Markdown
table, and exits with 1 when there is one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from history.metrics import load_metrics
from pointdrop.jobs.compare import CompareReport, ComparisonSetup, TestRow, compare_sides
from pointdrop.jobs.comparison_sides import Side
from pointdrop.paths import configs_dir, state_dir
from runners.releases import Catalogue
from runners.settings import load_benchmark, load_profile, load_server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="17.7", help="of --dbms")
    parser.add_argument("--dbms", default="postgres")
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--tests", default="local", help="a set of sysbench tests")
    parser.add_argument("--rows", type=int, help="of the table; as in the profile by default")
    parser.add_argument("--budget-minutes", type=float, default=30.0, help="of one run")
    parser.add_argument("--keep", type=Path, help="append each report here, as JSON Lines; a run that is there counts")
    options = parser.parse_args()
    benchmark = load_benchmark("sysbench", configs_dir())
    tests = benchmark.select(options.tests)
    profile = load_profile("instructions", configs_dir())
    if options.rows and profile.scale:
        scale = profile.scale.model_copy(update={"rows": options.rows})
        profile = profile.model_copy(update={"scale": scale, "age_updates": options.rows // 2})
    reports = kept(options.keep)
    with closing(Catalogue(configs_dir(), state_dir())) as catalogue:
        released = catalogue.fetch(options.dbms, options.release)
        copy = catalogue.adopt(options.dbms, released.prefix)
        while done(reports) < options.comparisons:
            report = compare_sides(
                ComparisonSetup(
                    base=(Side(options.dbms, "release", options.release, None, "default"), released),
                    candidate=(Side(options.dbms, "prefix", str(released.prefix), None, "default"), copy),
                    server=load_server("local", configs_dir()),
                    benchmark=benchmark,
                    tests=tests,
                    profile=profile,
                    metrics=load_metrics(configs_dir()),
                    configs=configs_dir(),
                    state=state_dir(),
                    budget_minutes=options.budget_minutes,
                    most_rounds=6,
                    seed=1000 * len(reports),
                )
            )
            reports.append(report)
            if options.keep:
                with options.keep.open("a", encoding="utf-8") as file:
                    file.write(report.model_dump_json() + os.linesep)
            print(f"{done(reports)} comparisons, {report.minutes:.1f} minutes", file=sys.stderr)
    for line in table(reports):
        print(line)
    return int(any(row.verdict == "DIFFERENT" for report in reports for row in report.tests))


def done(reports: list[CompareReport]) -> int:
    """Comparisons so far."""
    return sum(len(report.tests) for report in reports)


def kept(path: Path | None) -> list[CompareReport]:
    """Reports of an earlier run that was stopped."""
    if path is None or not path.exists():
        return []
    return [CompareReport.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(reports: list[CompareReport]) -> list[str]:
    """By test and in all: verdicts, blocks, and how far apart the two sides came out."""
    by_test: dict[str, list[TestRow]] = defaultdict(list)
    for report in reports:
        for row in report.tests:
            by_test[row.test].append(row)
    rows = [*by_test.items(), ("all", [row for found in by_test.values() for row in found])]
    lines = ["| test | comparisons | DIFFERENT | SAME | UNKNOWN | blocks a side | median apart | most apart |"]
    lines.append("| --- |" + " ---: |" * 7)
    for name, found in rows:
        counts = [sum(row.verdict == verdict for row in found) for verdict in ("DIFFERENT", "SAME", "UNKNOWN")]
        apart = sorted(abs(row.change_pct) for row in found)
        blocks = statistics.mean(row.blocks for row in found)
        numbers = f"{len(found)} | {counts[0]} | {counts[1]} | {counts[2]} | {blocks:.1f}"
        lines.append(f"| {name} | {numbers} | {statistics.median(apart):.3f} % | {apart[-1]:.3f} % |")
    minutes = sum(report.minutes for report in reports)
    blocks = sum(report.blocks for report in reports)
    lines += ["", f"{len(reports)} runs, {blocks} blocks, {minutes:.0f} minutes on {os.cpu_count()} cores."]
    return lines


if __name__ == "__main__":
    sys.exit(main())
