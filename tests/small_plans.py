"""Plans small enough to run for real."""

from __future__ import annotations

from pathlib import Path

from history.model import Release
from runners.sessions import SessionPlan, plan_session
from runners.settings import Profile, Scale, load_benchmark, load_profile, load_server

CONFIGS = Path(__file__).parents[1] / "configs"


def release(version: str, dbms: str = "postgres") -> Release:
    return Release(dbms=dbms, version=version, line=version.split(".")[0], digest=f"{version:0>64}")


def small_plan(
    lane: str = "time",
    releases: tuple[str, ...] = ("17.5",),
    control: str = "17.0",
    tests: tuple[str, ...] = ("update-index.range100", "point-query.range100"),
    blocks: int = 1,
    noisy_repeats: int = 0,
    session_id: str = "s",
    dbms: str = "postgres",
    configs: tuple[str, ...] = ("default",),
    counted_rows: int | None = None,
) -> SessionPlan:
    """Seconds of work, not minutes."""
    profile = load_profile("instructions", CONFIGS)
    if lane == "time":
        scale = Scale(tables=2, rows=2_000, threads=2)
        profile = Profile(name="tiny", warmup_s=1, read_s=2, write_s=2, warm_s=1, scale=scale)
    elif counted_rows:
        profile = profile.model_copy(update={"scale": Scale(tables=1, rows=counted_rows, threads=1)})
    benchmark = load_benchmark("sysbench", CONFIGS)
    return plan_session(
        session_id=session_id,
        plan="test",
        server=load_server("local", CONFIGS),
        benchmark=benchmark,
        tests=benchmark.select(tests),
        profile=profile,
        releases=[release(version, dbms) for version in releases],
        control=release(control, dbms),
        configs=configs,
        blocks=blocks,
        seed=11,
        noisy_repeats=noisy_repeats,
    )
