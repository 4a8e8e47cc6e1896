"""Everything needed to repeat a run, kept with it, and the way back from it.

A bundle is plain JSON and the same for every session that would do the same work: no moment, no path of this host.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from history.errors import BadSettings
from history.model import Release, Run, Session
from runners.engines import Connection
from runners.insertbench.roles import LUA, role_commands
from runners.sessions.model import HeldConfig, PlannedRun, SessionPlan
from runners.sessions.planning import COUNTED_SEED, DATA_SEED, counted_events, plan_session, test_seconds, workload_seed
from runners.settings import Benchmark, Profile, Server, Test
from runners.settings.benchmarks import Driver
from runners.settings.dbms import RenderedOptions
from runners.sysbench.commands import count_command, run_command
from runners.sysbench.scripts import SCRIPTS, scripts_digest, scripts_dir

BUNDLE_SCHEMA = "pointdrop.bundle/2"
_HELD = TypeAdapter(HeldConfig)


def workload(plan: SessionPlan) -> dict[str, Any]:
    """What is done to a release, apart from the release and its config.

    A counted test does not depend on which others are measured, so that sessions of other tests have the same workload.
    """
    # What only the other driver reads is no part of the workload.
    steps = plan.size is not None
    other_tests, other_profile = ({"counted_events", "script"}, set[str]()) if steps else ({"step"}, {"insert"})
    return {
        "benchmark": plan.benchmark.name,
        "tests": [
            test.model_dump(mode="json", exclude={"sets", "sql"} | other_tests)
            for test in (plan.tests if plan.lane == "time" else plan.benchmark.tests)
        ],
        "profile": plan.profile.model_dump(mode="json", exclude={"title"} | other_profile),
        "scale": plan.scale.model_dump(mode="json"),
        "scripts": _scripts(plan.benchmark.driver),
        "data_seed": DATA_SEED,
        "counted_seed": COUNTED_SEED,
    }


def bundle_of(plan: SessionPlan, run: PlannedRun, options: RenderedOptions) -> dict[str, Any]:
    """The bundle of one run."""
    held = [_HELD.dump_python(config, mode="json") for config in plan.held if config.name == run.config]
    return {
        "schema": BUNDLE_SCHEMA,
        **({"held": held[0]} if held else {}),
        **workload(plan),
        "driver": plan.benchmark.driver,
        "size": plan.benchmark.size,
        "tests": [test.name for test in plan.tests],
        "catalogue": [test.model_dump(mode="json") for test in plan.benchmark.tests],
        "profile": plan.profile.model_dump(mode="json"),
        "server": plan.server.model_dump(mode="json"),
        "control": plan.control.model_dump(mode="json"),
        "options": options.model_dump(mode="json"),
        "seed": plan.seed,
        "blocks": max(block.number for block in plan.blocks),
        "noisy_repeats": plan.noisy_repeats,
        "order": [f"{block.run.release.version}/{block.run.config}/{block.number}" for block in plan.blocks],
        "commands": {test.name: _command(plan, run, test) for test in plan.tests},
    }


def held_of(run: Run) -> HeldConfig | None:
    """The settings of another release that the run was given; None for the run of a config that a file names."""
    return _HELD.validate_python(run.bundle["held"]) if "held" in run.bundle else None


def _scripts(driver: Driver) -> str:
    """Digest of the scripts the driver runs."""
    return scripts_digest(LUA if driver == "insert" else SCRIPTS)


def _command(plan: SessionPlan, run: PlannedRun, test: Test) -> str:
    """sysbench's command line in block 1, for people; SOCKET, PID and SCRIPTS stand for what differs between hosts."""
    postgres = run.release.dbms == "postgres"
    client = Connection("pgsql" if postgres else "mysql", Path("SOCKET"), 5432, "USER", "DATABASE")
    seed = workload_seed(plan, test, 1)
    if plan.size:
        roles = role_commands(client, test, plan.size, clients=plan.server.threads, seed=seed)
        return " & ".join(" ".join(argv) for argv in roles.values()).replace(str(scripts_dir(LUA)), "SCRIPTS")
    if plan.lane == "time":
        argv = run_command(
            client,
            test,
            plan.scale,
            seconds=test_seconds(test, plan.profile),
            warmup_s=plan.profile.warmup_s,
            seed=seed,
        )
    else:
        events = counted_events(test, plan.profile)
        argv = count_command(client, test, plan.scale, pid=-1, events=events, vgdb="vgdb", seed=seed)
    return " ".join(argv).replace("count-pid=-1", "count-pid=PID").replace(str(scripts_dir()), "SCRIPTS")


def repeat_plan(run: Run, session: Session, session_id: str, blocks: int | None = None) -> SessionPlan:
    """The session that measures `run` again, with the control and workload it had, from its bundle alone.

    BadSettings when the run has no bundle (imported figures have none), or when the scripts have changed since.
    """
    bundle: Mapping[str, Any] = run.bundle
    if bundle.get("schema") != BUNDLE_SCHEMA:
        raise BadSettings(
            f"run {run.id} has no bundle to repeat it from (found {bundle.get('schema', 'nothing')}); "
            "only runs that were measured here can be repeated"
        )
    driver: Driver = bundle.get("driver", "sysbench")
    if bundle["scripts"] != _scripts(driver):
        raise BadSettings(
            f"run {run.id} was made with other sysbench scripts ({bundle['scripts']}, here {_scripts(driver)}); "
            "check out the revision that made it"
        )
    held = held_of(run)
    catalogue = tuple(Test.model_validate(test) for test in bundle["catalogue"])
    benchmark = Benchmark(name=bundle["benchmark"], driver=driver, size=bundle.get("size", ""), test=catalogue)
    return plan_session(
        session_id=session_id,
        plan=session.plan,
        server=Server.model_validate(bundle["server"]),
        benchmark=benchmark,
        tests=benchmark.select(tuple(bundle["tests"])),
        profile=Profile.model_validate(bundle["profile"]),
        releases=(run.release,),
        control=Release.model_validate(bundle["control"]),
        configs=(held.base if held else run.config,),
        held=[(run.release, held)] if held else [],
        blocks=blocks or bundle["blocks"],
        seed=bundle["seed"],
        noisy_repeats=bundle["noisy_repeats"],
    )
