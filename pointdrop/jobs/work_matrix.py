"""The work of a plan as rows of a workflow matrix: one row a session, with the time its job may take, so that a machine
that fails costs one session, and none is measured that the history holds. A server gets no more rows than its night
holds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from pointdrop.jobs.measurement import MeasurementSetup
from pointdrop.jobs.night_schedule import SECONDS_A_MINUTE
from pointdrop.jobs.planned_work import named_work, planned_work, runnable_releases
from pointdrop.jobs.release_selection import Work
from pointdrop.jobs.session_estimates import estimates
from pointdrop.jobs.suspects import Suspect, confirmation_work
from runners.sessions import Estimate
from runners.settings import Plan, narrowed

#: A job may take so many times the upper end of its estimate, and so many minutes besides, for downloads and builds.
SLACK = 2
SETUP_MINUTES = 60


def matrix_rows(
    setup: MeasurementSetup, plan: Plan, servers: Iterable[str], dbms: Collection[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """What there is to measure tonight, in the order in which it is done; rows with keys `server`, `dbms`, `line`,
    `benchmark`, `lane`, `config`, `releases` and `timeout_minutes`. `line` and `releases` are several with commas.

    Besides, in words, what is left for the nights after since the plan's budget does not hold it; a server's first row
    is always there.
    """
    rows: list[dict[str, Any]] = []
    later: list[str] = []
    for server in servers:
        left = math.inf if plan.budget_minutes is None else plan.budget_minutes
        for number, row in enumerate(_rows(planned_work(setup, plan, server, dbms), server)):
            narrow = narrowed(plan, row["benchmark"], row["lane"], row["config"])
            work = named_work(setup, narrow, (row["dbms"],), row["releases"].split(","))
            wanted = estimates(setup, plan, server, work, workers=1, any_host=True)
            minutes = sum(estimate.middle_s for estimate in wanted) / SECONDS_A_MINUTE
            if not number or minutes <= left:
                left = max(0.0, left - minutes)
                rows.append({**row, "timeout_minutes": timeout_minutes(wanted)})
            else:
                del row["releases"]
                later.append(" ".join(row.values()))
    return rows, later


def _rows(work: Iterable[Work], server: str) -> list[dict[str, str]]:
    """What one job measures, in the order of `work`."""
    jobs: dict[tuple[str, ...], dict[str, str]] = {}
    for item in work:
        key = (item.measure.dbms, item.line, item.measure.benchmark, item.measure.lane, item.config)
        jobs.setdefault(key, {}).update({release.version: release.line for release in item.candidates})
    return [
        {
            "server": server, "dbms": dbms, "line": ",".join(dict.fromkeys(versions.values())),
            "benchmark": benchmark, "lane": lane, "config": config, "releases": ",".join(versions),
        }
        for (dbms, _, benchmark, lane, config), versions in jobs.items()
    ]  # fmt: skip


def suspect_rows(setup: MeasurementSetup, plan: Plan, suspects: Iterable[Suspect]) -> list[dict[str, Any]]:
    """What to measure again; rows with keys `server`, `dbms`, `suspects` and `timeout_minutes`."""
    by_job: dict[tuple[str, str], list[Suspect]] = {}
    for suspect in suspects:
        by_job.setdefault((suspect.server, suspect.dbms), []).append(suspect)
    rows = []
    for (server, dbms), together in by_job.items():
        work = confirmation_work(together, plan, {dbms: runnable_releases(setup.catalogue, dbms)})
        timeout = timeout_minutes(estimates(setup, plan, server, work, workers=1, any_host=True))
        names = ",".join(map(str, together))
        rows.append({"server": server, "dbms": dbms, "suspects": names, "timeout_minutes": timeout})
    return rows


def timeout_minutes(wanted: Iterable[Estimate]) -> int:
    """How long a job with so much work may run, in whole minutes."""
    return SETUP_MINUTES + round(SLACK * sum(estimate.high_s for estimate in wanted) / SECONDS_A_MINUTE)
