"""How small a patch is found: `python -m tests.benchmarks.patch_sizes`.

Postgres from Debian's source package, as the committed recipe builds it, and patches that make the start of every
statement longer by a counted loop. How many instructions a turn takes is measured first; then come patches of about
1, 3 and 10 % of a point query. Each is compared with the unpatched commit as `pointdrop patch run` does it,
servers in the sandbox included. Prints a Markdown table; `--keep DIR` keeps the source, with a commit for each patch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from history.metrics import load_metrics
from pointdrop.jobs.compare import CompareReport, ComparisonSetup, compare_sides
from pointdrop.jobs.comparison_sides import Side
from pointdrop.paths import configs_dir, state_dir
from runners.releases import Catalogue
from runners.settings import load_benchmark, load_profile, load_server
from tests.runners.releases.debian_source import git, source_repository

FILE = "src/backend/executor/execMain.c"
PLACE = "\tAssert(queryDesc->estate == NULL);\n"
#: The compiler can neither drop the loop nor fold it.
LOOP = "\tfor (volatile int turn = 0; turn < %d; turn++)\n\t\t;\n"
TEST = "point-query.range100"
CALIBRATION_TURNS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--percent", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    parser.add_argument("--tests", default=f"{TEST},update-index.range100,scan.range100")
    parser.add_argument("--keep", type=Path, help="an empty folder for the source; a temporary one by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, closing(Catalogue(configs_dir(), state_dir())) as catalogue:
        folder = options.keep or Path(temporary)
        tree = folder / "tree" if (folder / "tree").is_dir() else source_repository(folder)
        git(tree, "config", "uploadpack.allowAnySHA1InWant", "true")
        base = git(tree, "rev-list", "--max-parents=0", "HEAD")
        (row,) = compare(catalogue, tree, base, commit(tree, base, CALIBRATION_TURNS), TEST).tests
        turn = (row.after - row.before) / CALIBRATION_TURNS
        print(f"{TEST}: {row.before:,.0f} instructions, {turn:.2f} a turn of the loop", file=sys.stderr)
        print("| wanted | turns | test | before | after | change | interval | verdict | blocks a side |")
        print("| ---: | ---: | --- | ---: | ---: | ---: | --- | --- | ---: |")
        for percent in options.percent:
            turns = round(row.before * percent / 100 / turn)
            report = compare(catalogue, tree, base, commit(tree, base, turns), options.tests)
            for found in report.tests:
                low, high = found.low_pct or 0.0, found.high_pct or 0.0
                print(
                    f"| {percent:g} % | {turns} | {found.test} | {found.before:,.0f} | {found.after:,.0f} "
                    f"| {found.change_pct:+.2f} % | [{low:+.2f}, {high:+.2f}] | {found.verdict} | {found.blocks} |",
                    flush=True,
                )


def commit(tree: Path, base: str, turns: int) -> str:
    """A commit on top of `base` whose loop has so many turns; its full SHA."""
    git(tree, "checkout", "--quiet", "--force", "--detach", base)
    file = tree / FILE
    before = file.read_text()
    assert before.count(PLACE) == 1, "Postgres has another text now; choose another place"
    file.write_text(before.replace(PLACE, PLACE + LOOP % turns))
    git(tree, "commit", "--quiet", "--all", "-m", f"a loop of {turns} turns")
    return git(tree, "rev-parse", "HEAD")


def compare(catalogue: Catalogue, tree: Path, base: str, head: str, tests: str) -> CompareReport:
    """What `pointdrop patch run` measures; the build is ours, so it may fill the cache of the compiler."""
    benchmark = load_benchmark("sysbench", configs_dir())
    sides = []
    for sha in (base, head):
        built = catalogue.build_commit("postgres", sha, repository=str(tree))
        sides.append((Side("postgres", "git", sha, None, "default"), built))
    return compare_sides(
        ComparisonSetup(
            base=sides[0],
            candidate=sides[1],
            server=load_server("local", configs_dir()),
            benchmark=benchmark,
            tests=benchmark.select(tuple(tests.split(","))),
            profile=load_profile("instructions", configs_dir()),
            metrics=load_metrics(configs_dir()),
            configs=configs_dir(),
            state=state_dir(),
            budget_minutes=60,
            most_rounds=6,
            seed=1,
            sandbox=True,
        )
    )


if __name__ == "__main__":
    main()
