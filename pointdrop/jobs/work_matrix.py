"""The work of a plan as rows of a workflow matrix: one row a session, with the time its job may take, so that a machine
that fails costs one session, and none is measured that the history holds. A server gets no more rows than its night
holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pointdrop.jobs.measurement import MeasurementSetup, estimates, named_work, planned_work, runnable_releases
from pointdrop.jobs.night_schedule import SECONDS_A_MINUTE, within_budget
from pointdrop.jobs.release_selection import Work
from pointdrop.jobs.suspects import Suspect, confirmation_work
from runners.sessions import Estimate
from runners.settings import Plan, narrowed

#: A job may take this many times its estimate, and this many minutes besides, for downloads, builds and noisy blocks.
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
        jobs = _jobs(planned_work(setup, plan, server, dbms))
        minutes = [
            estimated_minutes(setup, plan, server, named_work(setup, narrow, (job["dbms"],), versions))
            for job, versions in jobs
            for narrow in (narrowed(plan, job["benchmark"], job["lane"], job["config"]),)
        ]
        begun = within_budget(
            [_whole(number, job_minutes) for number, job_minutes in enumerate(minutes)], plan.budget_minutes
        )
        for (job, versions), job_minutes, begins in zip(jobs, minutes, begun, strict=True):
            if begins:
                timeout = timeout_minutes(job_minutes)
                rows.append({"server": server, **job, "releases": ",".join(versions), "timeout_minutes": timeout})
            else:
                later.append(" ".join((server, *job.values())))
    return rows, later


def _jobs(work: Iterable[Work]) -> list[tuple[dict[str, str], list[str]]]:
    """What one job measures, as the first keys of its row, with the versions; in the order of `work`."""
    jobs: dict[tuple[str, ...], dict[str, str]] = {}
    for item in work:
        key = (item.measure.dbms, item.line, item.measure.benchmark, item.measure.lane, item.config)
        jobs.setdefault(key, {}).update({release.version: release.line for release in item.candidates})
    return [
        (
            {
                "dbms": dbms, "line": ",".join(dict.fromkeys(versions.values())), "benchmark": benchmark, "lane": lane,
                "config": config,
            },
            list(versions),
        )
        for (dbms, _, benchmark, lane, config), versions in jobs.items()
    ]  # fmt: skip


def _whole(number: int, minutes: float) -> Estimate:
    """A job as if it were one block: it is not split, so all of it fits or nothing; but the first is always done."""
    seconds = minutes * SECONDS_A_MINUTE
    return Estimate(blocks=1, seconds=seconds, disk_bytes=0, block_seconds=seconds if number else 0.0)


def suspect_rows(setup: MeasurementSetup, plan: Plan, suspects: Iterable[Suspect]) -> list[dict[str, Any]]:
    """What to measure again; rows with keys `server`, `dbms`, `suspects` and `timeout_minutes`."""
    by_job: dict[tuple[str, str], list[Suspect]] = {}
    for suspect in suspects:
        by_job.setdefault((suspect.server, suspect.dbms), []).append(suspect)
    rows = []
    for (server, dbms), together in by_job.items():
        work = confirmation_work(together, plan, {dbms: runnable_releases(setup.catalogue, dbms)})
        timeout = timeout_minutes(estimated_minutes(setup, plan, server, work))
        names = ",".join(map(str, together))
        rows.append({"server": server, "dbms": dbms, "suspects": names, "timeout_minutes": timeout})
    return rows


def estimated_minutes(setup: MeasurementSetup, plan: Plan, server: str, work: Iterable[Work]) -> float:
    """Machine time, without downloads."""
    return sum(estimate.seconds for estimate in estimates(setup, plan, server, work, workers=1)) / SECONDS_A_MINUTE


def timeout_minutes(minutes: float) -> int:
    """How long a job with so much work may run, in whole minutes."""
    return SETUP_MINUTES + round(SLACK * minutes)
