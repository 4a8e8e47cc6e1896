"""Data prepared once per release, config and scale, then copied for every block."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from filelock import FileLock
from pydantic import TypeAdapter

from history.files import write_atomically
from history.model import StatementPlan
from runners.engines import Engine, EngineError
from runners.errors import OutOfSpace
from runners.meters.proc import directory_bytes
from runners.sessions.model import DataRecipe
from runners.settings import Scale, Test
from runners.sysbench import commands
from runners.sysbench.commands import age_command, explain_command, heat_command, prepare_command
from runners.sysbench.driver import run_sysbench
from runners.sysbench.output import parse_plans
from runners.sysbench.scripts import scripts_digest

#: Rows a second that even a slow disk loads; past that the load is stuck.
SLOWEST_LOAD_ROWS_PER_S = 2_000.0
SLOWEST_UPDATES_PER_S = 50.0
LOAD_DEADLINE_S = 120.0
EXPLAIN_DEADLINE_S = 120.0
#: Seconds that reading table and indexes may take before a test; one statement of it on a slow disk may take more.
HEAT_LIMIT_S = 120
HEAT_GRACE_S = 120.0
#: Room that must be left after the data is there.
DISK_RESERVE_BYTES = 1024**3
#: Prepared data of all sessions together, as a share of the disk.
PREPARED_SHARE = 0.25
#: Written last: a folder without it holds no prepared data.
RECORD = "prepared.json"

Plans = dict[str, tuple[StatementPlan, ...]]
_PLANS = TypeAdapter(Plans)


@dataclass(frozen=True)
class Prepared:
    """A data directory to copy, and what was asked of it while it was made."""

    path: Path
    plans: Plans
    """By test, with the data as loaded."""
    seconds: float
    reused: bool


@cache
def code_digest(engine: type[Engine]) -> str:
    """First 16 hex digits of the sha256 over the code that prepares: the scripts, this module, the command lines, and
    the engine's classes. Data made by older code is not what this code would make, so it is not used."""
    paths = {Path(__file__), Path(inspect.getfile(commands))}
    paths |= {Path(inspect.getfile(base)) for base in engine.__mro__ if issubclass(base, Engine)}
    digest = hashlib.sha256(scripts_digest().encode())
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def prepared_key(engine: Engine, recipe: DataRecipe) -> str:
    """Name of the data: everything it depends on, as a digest."""
    release, scale = engine.installed.release, recipe.scale
    parts = (
        release.dbms, release.version, release.digest or str(engine.installed.prefix), engine.options.text,
        engine.options.initialise, scale and scale.model_dump(), recipe.age_updates, recipe.seed,
        code_digest(type(engine)),
    )  # fmt: skip
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return f"{release.dbms}-{release.version}-{digest}"


def prepared_versions(folder: Path, dbms: str) -> set[str]:
    """Versions that have data below `folder`, of one scale and config or another."""
    names = (path.parent.name for path in folder.glob(f"{dbms}-*/{RECORD}"))
    return {name.removeprefix(f"{dbms}-").rpartition("-")[0] for name in names}


def check_space(folder: Path, needed: int) -> None:
    """OutOfSpace when `folder`'s disk cannot take `needed` bytes and keep a reserve."""
    free = shutil.disk_usage(folder).free
    if free < needed + DISK_RESERVE_BYTES:
        raise OutOfSpace(
            f"{folder} has {free / 1e9:.1f} GB free and {(needed + DISK_RESERVE_BYTES) / 1e9:.1f} GB are needed; "
            "make room, set POINTDROP_STATE to a larger disk, or use a smaller server"
        )


def prepare(engine: Engine, recipe: DataRecipe, tests: Sequence[Test], folder: Path, *, needed: int) -> Prepared:
    """The prepared data for the stopped `engine` below `folder`, made now unless it is there.

    Loading is safe with several processes at once, and what a killed one left half done is not used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    target = folder / prepared_key(engine, recipe)
    with FileLock(f"{target}.lock"):
        record = target / RECORD
        if record.is_file():
            plans = _PLANS.validate_json(record.read_bytes())
            unplanned = tuple(test for test in tests if test.name not in plans)
            if recipe.scale and unplanned:  # never made anew: another session may be copying it
                engine.restore(target / "data")
                engine.start()
                engine.wait_ready()
                plans |= {test.name: explain(engine, test, recipe.scale) for test in unplanned}
                engine.stop()
                write_atomically(record, _PLANS.dump_json(plans))
            os.utime(target)
            return Prepared(target / "data", plans, time.monotonic() - started, reused=True)
        check_space(folder, needed)
        _remove(target)
        engine.initialise()
        engine.start()
        engine.wait_ready()
        plans = _load(engine, recipe, recipe.scale, tests) if recipe.scale else {}
        if warnings := engine.stop():
            raise EngineError("; ".join(warnings))  # what it left needs recovery, at the begin of every block
        engine.save(target / "data")
        write_atomically(record, _PLANS.dump_json(plans))
    return Prepared(target / "data", plans, time.monotonic() - started, reused=False)


def _load(engine: Engine, recipe: DataRecipe, scale: Scale, tests: Sequence[Test]) -> Plans:
    """Fill the running server's tables, age them, and settle; the plans of the tests on what is there now."""
    as_account = engine.account.command
    deadline = LOAD_DEADLINE_S + scale.rows * scale.tables / SLOWEST_LOAD_ROWS_PER_S
    run_sysbench(as_account(prepare_command(engine.connection, scale, seed=recipe.seed)), deadline_s=deadline)
    if recipe.age_updates:
        deadline = LOAD_DEADLINE_S + recipe.age_updates / SLOWEST_UPDATES_PER_S
        command = age_command(engine.connection, scale, updates=recipe.age_updates, seed=recipe.seed)
        # Purge beside the updates would merge pages that they split again, as wall time has it: other data every time.
        with engine.purge_paused():
            run_sysbench(as_account(command), deadline_s=deadline)
        engine.drain_background_work()
    engine.settle()
    return {test.name: explain(engine, test, scale) for test in tests}


def heat(engine: Engine, scale: Scale) -> None:
    """Bring table and indexes into the running server's memory, as far as they fit and time allows."""
    command = heat_command(engine.connection, scale, seconds=HEAT_LIMIT_S)
    run_sysbench(engine.account.command(command), deadline_s=HEAT_LIMIT_S + HEAT_GRACE_S)


def explain(engine: Engine, test: Test, scale: Scale) -> tuple[StatementPlan, ...]:
    """The plans of a test's statements on the running server as it is now."""
    command = explain_command(engine.connection, test, scale)
    return parse_plans(run_sysbench(engine.account.command(command), deadline_s=EXPLAIN_DEADLINE_S))


def prune(folder: Path) -> None:
    """Remove the prepared data that was used longest ago until the rest is within its share of the disk."""
    if not folder.is_dir():
        return
    bound = PREPARED_SHARE * shutil.disk_usage(folder).total
    total = 0
    for path in sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda p: -p.stat().st_mtime):
        total += directory_bytes(path)
        if total > bound:
            _remove(path)


def _remove(target: Path) -> None:
    """Its record first: what a kill leaves of the rest must not be taken for prepared data."""
    (target / RECORD).unlink(missing_ok=True)
    shutil.rmtree(target, ignore_errors=True)
