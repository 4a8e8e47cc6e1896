"""A/A of the harness: the same sysbench test with it and without, in turns: `python -m tests.benchmarks.harness`.

With it is what the time lane does: lines read as they come, meters every second. Without it nobody reads what
sysbench prints before it ends. Prints the ratio of each pair's two runs (with / without), of throughput and of the
server's CPU a query, which other load disturbs less: median and the interval that holds the true median in 95 % of
cases (order statistics). And the harness's CPU while it measured.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from history.metrics import load_metrics
from pointdrop.paths import configs_dir, state_dir
from runners.engines import Engine, engine_for
from runners.meters.proc import Meter
from runners.releases import Catalogue
from runners.sessions.lanes import TimeLane
from runners.sessions.prepared_data import DataRecipe, prepare
from runners.settings import Profile, Scale, Test, load_benchmark, load_server
from runners.settings.dbms import Sizing, load_dbms, render
from runners.sysbench.commands import environment, run_command
from runners.sysbench.output import parse_report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="17.11", help="of --dbms")
    parser.add_argument("--dbms", default="postgres")
    parser.add_argument("--tests", nargs="*", default=["point-query.range100", "update-index.range100"])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=int, default=4)
    options = parser.parse_args()
    local = load_server("local", configs_dir())
    scale = Scale(tables=1, rows=local.rows, threads=1)
    seconds = options.seconds
    profile = Profile(name="harness", read_s=seconds, write_s=seconds, scale=scale)
    lane = TimeLane(profile, scale, load_metrics(configs_dir()))
    print("| test | pairs | qps, with / without | server CPU a query, with / without | harness, share of a core |")
    print("| --- | ---: | ---: | ---: | ---: |")
    with closing(Catalogue(configs_dir(), state_dir())) as catalogue:
        installed = catalogue.fetch(options.dbms, options.release)
        sizing = Sizing(pool_mib=local.pool_mib, log_mib=local.log_mib)
        rendered = render(load_dbms(options.dbms, configs_dir()), "default", options.release, sizing)
        tests = load_benchmark("sysbench", configs_dir()).select(tuple(options.tests))
        with engine_for(installed, rendered, state_dir() / "servers" / "harness", state=state_dir()) as engine:
            data = prepare(engine, DataRecipe(scale, 0, 1), tests, state_dir() / "prepared", needed=0)
            engine.restore(data.path)
            engine.start()
            engine.wait_ready()
            for test in tests:
                print(row(engine, lane, test, options.pairs))
    return 0


def row(engine: Engine, lane: TimeLane, test: Test, pairs: int) -> str:
    rates, costs, shares = [], [], []
    meter = Meter(engine.server.pid, engine.data)
    plain(engine, lane, test, seed=1)  # warms the caches
    for pair in range(pairs):
        qps: dict[bool, float] = {}
        cost: dict[bool, float] = {}
        for measured in (True, False) if pair % 2 else (False, True):
            before = meter.read().server_cpu_s or 0.0
            if measured:
                result = lane.measure(engine, test, pair + 1)
                queries, qps[True] = result.measurements[0].operations or 0, result.measurements[0].value
                if result.noise:
                    shares.append(result.noise.harness)
            else:
                queries, qps[False] = plain(engine, lane, test, seed=pair + 1)
            cost[measured] = ((meter.read().server_cpu_s or 0.0) - before) / queries
        rates.append(qps[True] / qps[False])
        costs.append(cost[True] / cost[False])
        print(f"{test.name} {pair + 1}: {rates[-1]:.4f} {costs[-1]:.4f}", file=sys.stderr)
    return f"| {test.name} | {pairs} | {told(rates)} | {told(costs)} | {statistics.median(shares):.2%} |"


def told(ratios: list[float]) -> str:
    """Median, and an interval that encloses the true one in at least 95 % of cases (binomial, normal approximation)."""
    ordered = sorted(ratios)
    lower = max(0, math.floor((len(ordered) - 1.96 * math.sqrt(len(ordered))) / 2))
    return f"{statistics.median(ordered):.3f} ({ordered[lower]:.3f} .. {ordered[-1 - lower]:.3f})"


def plain(engine: Engine, lane: TimeLane, test: Test, *, seed: int) -> tuple[int, float]:
    """Queries, and queries a second, of sysbench with nobody watching."""
    command = run_command(
        engine.connection, test, lane.scale, seconds=lane.profile.read_s, warmup_s=lane.profile.warmup_s, seed=seed
    )
    argv = engine.account.command(command)
    done = subprocess.run(
        argv,
        env=environment({"PATH": os.defpath, "TZ": "UTC"}, argv),
        stdout=subprocess.PIPE,
        check=True,
        cwd=Path("/"),
    )
    report = parse_report(done.stdout.decode())
    return report.queries, report.queries / report.seconds_measured


if __name__ == "__main__":
    sys.exit(main())
