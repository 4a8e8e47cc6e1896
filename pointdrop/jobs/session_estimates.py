"""How long sessions take on this machine, begun and planned, from the blocks that the history holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from history.model import Block
from history.store import Store
from pointdrop.jobs.release_selection import Work
from pointdrop.jobs.session_records import SessionRecord, new_record
from runners.host import host_name
from runners.sessions import Estimate, SessionPlan, estimate, plan_session
from runners.sessions.estimates import NEWEST_BLOCKS
from runners.sessions.prepared_data import prepared_versions
from runners.settings import Plan, load_benchmark, load_profile, load_server

if TYPE_CHECKING:
    from pointdrop.jobs.measurement import MeasurementSetup


def session_of(setup: MeasurementSetup, begun: SessionRecord) -> SessionPlan:
    """The blocks of a session; the same for the same record and configuration."""
    benchmark = load_benchmark(begun.measure.benchmark, setup.configs)
    return plan_session(
        session_id=begun.id,
        plan=begun.plan,
        server=load_server(begun.server, setup.configs),
        benchmark=benchmark,
        tests=benchmark.select(begun.measure.tests),
        profile=load_profile(begun.measure.profile, setup.configs),
        releases=begun.releases,
        control=begun.control,
        configs=(begun.config,),
        blocks=begun.measure.blocks,
        seed=begun.seed,
        noisy_repeats=begun.measure.noisy_repeats,
        held=begun.held,
    )


def estimates(
    setup: MeasurementSetup, plan: Plan, server: str, work: Iterable[Work], workers: int, *, any_host: bool = False
) -> list[Estimate]:
    """Machine time of each piece of work, without downloads; learned from blocks of this host, or of any."""
    now = datetime.now(UTC)
    return [_estimate(setup, new_record(plan, server, item, now), (), workers, any_host) for item in work]


def remaining_estimate(setup: MeasurementSetup, begun: SessionRecord, workers: int) -> Estimate:
    """What the session still takes."""
    return _estimate(setup, begun, setup.store.block_ids(begun.id), workers)


def _estimate(
    setup: MeasurementSetup, begun: SessionRecord, finished: Collection[str], workers: int, any_host: bool = False
) -> Estimate:
    plan = session_of(setup, begun)
    known = timed_blocks(setup.store, plan, None if any_host else host_name())
    kept = set() if any_host else prepared_versions(setup.state / "prepared", plan.control.dbms)
    return estimate(plan, finished, workers, known, kept)


def timed_blocks(store: Store, plan: SessionPlan, host: str | None) -> list[Block]:
    """The newest blocks of `host`, of any when it is None, that say how long one of the plan takes."""
    return store.timed_blocks(
        host, NEWEST_BLOCKS, dbms=plan.control.dbms, server=plan.server.name, benchmark=plan.benchmark.name,
        lane=plan.lane, profile=plan.profile.name,
    )  # fmt: skip
