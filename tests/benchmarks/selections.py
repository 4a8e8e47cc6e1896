"""One test, one number: `python -m tests.benchmarks.selections mysql@5.6.24 postgres@18.1`.

Counts each test of the set `local` alone, within `local`, and within the 42, each time in a session of its own. Prints
a Markdown table of the three counts, and exits with 1 when two of them are further apart than `AGREEMENT`.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from pathlib import Path

from history.model import Block
from pointdrop.paths import configs_dir, state_dir
from runners.releases import Catalogue
from runners.sessions import plan_session, run_session
from runners.settings import Test, load_benchmark, load_profile, load_server

AGREEMENT = 0.003

Counts = dict[str, float]
"""Instructions an operation by test."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="+", help="DBMS@VERSION")
    parser.add_argument(
        "--keep", type=Path, default=Path("selections.json"), help="what a run that was stopped goes on with"
    )
    options = parser.parse_args()
    catalogue_of_tests = load_benchmark("sysbench", configs_dir())
    local = catalogue_of_tests.select("local")
    selections = {"local": local, "42": catalogue_of_tests.select("42")} | {test.name: (test,) for test in local}
    kept: dict[str, Counts] = json.loads(options.keep.read_text()) if options.keep.exists() else {}
    with closing(Catalogue(configs_dir(), state_dir())) as catalogue:
        for release in options.releases:
            for name, tests in selections.items():
                if f"{release} {name}" not in kept:
                    kept[f"{release} {name}"] = counts(catalogue, release, tests)
                    options.keep.write_text(json.dumps(kept, indent=1))
    worst = 0.0
    print("| release | test | alone | `local` | the 42 | apart |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for release in options.releases:
        for test in local:
            values = [kept[f"{release} {name}"][test.name] for name in (test.name, "local", "42")]
            apart = max(values) / min(values) - 1
            worst = max(worst, apart)
            figures = " | ".join(f"{value:,.0f}" for value in values)
            print(f"| {release} | {test.name} | {figures} | {100 * apart:.3f} % |")
    return int(worst > AGREEMENT)


def counts(catalogue: Catalogue, release: str, tests: tuple[Test, ...]) -> Counts:
    """One block of `tests`."""
    dbms, _, version = release.partition("@")
    pinned = catalogue.fetch(dbms, version).release
    blocks: list[Block] = []
    plan = plan_session(
        session_id="selections", plan="selections", server=load_server("local", configs_dir()),
        benchmark=load_benchmark("sysbench", configs_dir()), tests=tests,
        profile=load_profile("instructions", configs_dir()), releases=(pinned,), control=pinned, blocks=1, seed=1,
    )  # fmt: skip
    run_session(plan, catalogue, lambda *row: blocks.append(row[2]), configs=configs_dir(), state=state_dir())
    (block,) = blocks
    if block.status != "ok":
        sys.exit(f"{release}: {block.reason}")
    print(f"{release}: {len(block.measurements)} tests", file=sys.stderr)
    return {row.test: row.value for row in block.measurements}


if __name__ == "__main__":
    sys.exit(main())
