"""The work of a plan as rows of a workflow matrix: one row a server, DBMS and line, with the time its job may
take, so that a machine that fails costs one line. A server gets no more rows than its night holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pointdrop.jobs.confirm import Suspect, confirmations
from pointdrop.jobs.measuring import Bench, estimates, named, planned, runnable
from pointdrop.jobs.picks import Work
from runners.settings import Plan

SECONDS_A_MINUTE = 60
#: A job may take this many times its estimate, and this many minutes besides, for downloads, builds and noisy blocks.
SLACK = 2
SETUP_MINUTES = 60


def listing(
    bench: Bench, plan: Plan, servers: Iterable[str], dbms: Collection[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """What there is to measure tonight; rows with keys `server`, `dbms`, `line`, `releases` and `timeout_minutes`.

    Besides, by server, DBMS and line, what is left for the nights after since the plan's budget does not hold it; a
    server's first row is always there.
    """
    rows: list[dict[str, Any]] = []
    later: list[str] = []
    for server in servers:
        used = 0.0
        by_line: dict[tuple[str, str], dict[str, None]] = {}
        for item in planned(bench, plan, server, dbms):
            for release in item.candidates:
                by_line.setdefault((release.dbms, release.line), {})[release.version] = None
        for (name, line), versions in by_line.items():
            work = named(bench, plan, (name,), versions)
            minutes = estimated_minutes(bench, plan, server, work)
            if used and plan.budget_minutes is not None and used + minutes > plan.budget_minutes:
                later.append(f"{server} {name} {line}")
                continue
            used += minutes
            timeout = timeout_minutes(minutes)
            releases = ",".join(versions)
            rows.append(
                {"server": server, "dbms": name, "line": line, "releases": releases, "timeout_minutes": timeout}
            )
    return rows, later


def suspect_rows(bench: Bench, plan: Plan, found: Iterable[Suspect]) -> list[dict[str, Any]]:
    """What to measure again; rows with keys `server`, `dbms`, `suspects` and `timeout_minutes`."""
    by_job: dict[tuple[str, str], list[Suspect]] = {}
    for suspect in found:
        by_job.setdefault((suspect.server, suspect.dbms), []).append(suspect)
    rows = []
    for (server, dbms), together in by_job.items():
        work = confirmations(together, plan, {dbms: runnable(bench, dbms)})
        timeout = timeout_minutes(estimated_minutes(bench, plan, server, work))
        suspects = ",".join(map(str, together))
        rows.append({"server": server, "dbms": dbms, "suspects": suspects, "timeout_minutes": timeout})
    return rows


def estimated_minutes(bench: Bench, plan: Plan, server: str, work: Iterable[Work]) -> float:
    """Machine time, without downloads."""
    return sum(one.seconds for one in estimates(bench, plan, server, work, workers=1)) / SECONDS_A_MINUTE


def timeout_minutes(minutes: float) -> int:
    """How long a job with so much work may run, in whole minutes."""
    return SETUP_MINUTES + round(SLACK * minutes)
