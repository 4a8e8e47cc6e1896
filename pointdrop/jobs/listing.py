"""The work of a plan as rows of a workflow matrix: one row a server, DBMS and line, with the time its job may
take, so that a machine that fails costs one line."""

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


def listing(bench: Bench, plan: Plan, servers: Iterable[str], dbms: Collection[str]) -> list[dict[str, Any]]:
    """What there is to measure; rows with keys `server`, `dbms`, `line`, `releases` and `timeout_minutes`."""
    rows = []
    for server in servers:
        by_line: dict[tuple[str, str], dict[str, None]] = {}
        for item in planned(bench, plan, server, dbms):
            for release in item.candidates:
                by_line.setdefault((release.dbms, release.line), {})[release.version] = None
        for (name, line), versions in by_line.items():
            work = named(bench, plan, (name,), versions)
            timeout = timeout_minutes(bench, plan, server, work)
            releases = ",".join(versions)
            rows.append(
                {"server": server, "dbms": name, "line": line, "releases": releases, "timeout_minutes": timeout}
            )
    return rows


def suspect_rows(bench: Bench, plan: Plan, found: Iterable[Suspect]) -> list[dict[str, Any]]:
    """What to measure again; rows with keys `server`, `dbms`, `suspects` and `timeout_minutes`."""
    by_job: dict[tuple[str, str], list[Suspect]] = {}
    for suspect in found:
        by_job.setdefault((suspect.server, suspect.dbms), []).append(suspect)
    rows = []
    for (server, dbms), together in by_job.items():
        work = confirmations(together, plan, {dbms: runnable(bench, dbms)})
        timeout = timeout_minutes(bench, plan, server, work)
        suspects = ",".join(map(str, together))
        rows.append({"server": server, "dbms": dbms, "suspects": suspects, "timeout_minutes": timeout})
    return rows


def timeout_minutes(bench: Bench, plan: Plan, server: str, work: Iterable[Work]) -> int:
    """How long a job with this work may run, in whole minutes."""
    seconds = sum(estimate.seconds for estimate in estimates(bench, plan, server, work, workers=1))
    return SETUP_MINUTES + round(SLACK * seconds / SECONDS_A_MINUTE)
