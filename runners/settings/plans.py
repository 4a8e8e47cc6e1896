"""Plans: what a job measures, `configs/plans/NAME.toml`.

    name = "local"
    servers = ["local"]

    [[measure]]
    dbms = "postgres"
    newest_lines = 2
    newest_releases = 1
    lane = "time"
    profile = "quick"
    tests = "local"
    blocks = 2

A plan names no release it need not name: `newest_lines` and `newest_releases` are resolved against the releases that
are known when the job starts. Studies name theirs with `versions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from history.errors import BadSettings
from history.model import Lane
from history.settings import Setting, find, read_model
from runners.settings.benchmarks import load_benchmark
from runners.settings.dbms import load_dbms
from runners.settings.profiles import load_profile, size_of
from runners.settings.servers import load_server

Dbms = Literal["postgres", "mysql", "mariadb", "myrocks"]


class Backfill(Setting):
    """Older releases to measure as well when the history does not hold them yet."""

    majors_from: str = ""
    """The newest point release of each line from this one on; empty for none."""
    releases_per_line: int = Field(default=0, ge=0)
    """This many point releases, spread over each of the `newest_lines`."""


class Measure(Setting):
    """One DBMS, which of its releases, and how they are measured."""

    dbms: Dbms
    lines: tuple[str, ...] = ()
    """Lines by name; empty with `newest_lines`."""
    newest_lines: int = Field(default=0, ge=0)
    """The newest so many lines that get point releases; 0 with `lines` or `versions`, or for every line."""
    supported_lines: bool = False
    """Besides, every line that its vendor still supports on the day, innovation and rolling ones among them."""
    newest_releases: int = Field(default=0, ge=0)
    """The newest so many releases of each line; 0 means all of them."""
    versions: tuple[str, ...] = ()
    """Releases by name; nothing else is then chosen."""
    control: str = ""
    """Version every session measures again; empty takes the pinned control of the line, or its oldest known release."""
    configs: tuple[str, ...] = ("default",)
    line_before: bool = False
    """Time lane: measure the newest release of the line before in the session of a line's newest, since timed values of
    two sessions without a release in common cannot be compared."""
    benchmark: str = "sysbench"
    tests: str | tuple[str, ...] = "all"
    """A set of the catalogue (`42`, `32`, `local`), `all`, or names of tests."""
    lane: Lane = "time"
    profile: str
    blocks: int = Field(default=2, ge=1)
    """Blocks of each release in a session; the instructions lane needs one."""
    noisy_repeats: int = Field(default=1, ge=0)
    """How many noisy blocks of each run may be measured again."""
    backfill: Backfill | None = None

    @field_validator("configs")
    @classmethod
    def _some_config(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one config of configs/dbms/<dbms>/configs.toml")
        return value

    @model_validator(mode="after")
    def _one_choice(self) -> Measure:
        chosen = [bool(self.lines), bool(self.newest_lines), bool(self.versions)]
        if sum(chosen) > 1:
            raise ValueError("give only one of lines, newest_lines and versions")
        if self.supported_lines and (self.lines or self.versions):
            raise ValueError("supported_lines chooses lines, which lines or versions name already")
        if self.versions and (self.newest_releases or self.backfill):
            raise ValueError("versions names releases; newest_releases and backfill would choose others")
        return self


class Plan(Setting):
    """What one job measures on which servers."""

    name: str = Field(min_length=1)
    title: str = ""
    servers: tuple[str, ...] = Field(min_length=1)
    seed: int = 20_231
    """Order of blocks, and of everything random in the workload, follows from it."""
    budget_minutes: float | None = Field(default=None, gt=0)
    """Machine time a session may use; finished blocks are kept and the next session goes on."""
    measure: tuple[Measure, ...] = Field(min_length=1)


def load_plan(name_or_path: str | Path, configs: Path) -> Plan:
    """The plan of that name below `configs/plans`, or the file itself, with every name in it looked up.

    Raises BadSettings when a server, config, benchmark, set, test or profile it names does not exist, or when a profile
    is of the other lane.
    """
    path = find(name_or_path, configs / "plans")
    return _checked(read_model(path, Plan), str(path), configs)


def adapted(
    plan: Plan,
    configs: Path,
    *,
    lines: Sequence[str] = (),
    tests: str = "",
    profile: str = "",
    blocks: int | None = None,
) -> Plan:
    """The plan with other lines, tests (a set, `all`, or names with commas), profile or number of blocks.

    A profile belongs to a lane, so what the plan measures in the other lane is left out. BadSettings as `load_plan`.
    """
    if not (lines or tests or profile or blocks):
        return plan
    change: dict[str, object] = {}
    if lines:
        change |= {"lines": tuple(lines), "newest_lines": 0, "supported_lines": False, "versions": ()}
    if tests:
        named = tuple(name.strip() for name in tests.split(",") if name.strip())
        sets = {name for measure in plan.measure for name in load_benchmark(measure.benchmark, configs).sets} | {"all"}
        change["tests"] = tests if tests in sets else named
    if profile:
        change["profile"] = profile
    if blocks:
        change["blocks"] = blocks
    lane = load_profile(profile, configs).lane if profile else None
    measures = [measure.model_copy(update=change) for measure in plan.measure if lane in (None, measure.lane)]
    if tests:  # a plan may hold a benchmark that does not have them; when none has, the error below names them
        measures = [measure for measure in measures if _offers(measure, configs)] or measures
    if not measures:
        raise BadSettings(f"plan {plan.name}: nothing in it is of the {lane} lane, which profile {profile} is of")
    return _checked(plan.model_copy(update={"measure": tuple(measures)}), f"plan {plan.name}", configs)


def narrowed(plan: Plan, benchmark: str = "", lane: str = "", config: str = "") -> Plan:
    """Only what the plan measures of that benchmark, in that lane, with that config; an empty name leaves all.

    BadSettings when that is nothing.
    """
    measures = [
        measure.model_copy(update={"configs": (config,)}) if config else measure
        for measure in plan.measure
        if benchmark in ("", measure.benchmark) and lane in ("", measure.lane) and config in ("", *measure.configs)
    ]
    if not measures:
        asked = ", ".join(filter(None, (benchmark, lane and f"{lane} lane", config and f"config {config}")))
        there = dict.fromkeys(
            f"{measure.benchmark}, {measure.lane} lane, config {name}"
            for measure in plan.measure
            for name in measure.configs
        )
        raise BadSettings(f"plan {plan.name} measures nothing of this: {asked}; it measures: {'; '.join(there)}")
    return plan.model_copy(update={"measure": tuple(measures)})


def _offers(measure: Measure, configs: Path) -> bool:
    try:
        return bool(load_benchmark(measure.benchmark, configs).select(measure.tests))
    except BadSettings:
        return False


def _checked(plan: Plan, path: str, configs: Path) -> Plan:
    """`plan` when everything it names exists."""
    for server in plan.servers:
        load_server(server, configs)
    for number, measure in enumerate(plan.measure):
        try:
            benchmark = load_benchmark(measure.benchmark, configs)
            benchmark.select(measure.tests)
            profile = load_profile(measure.profile, configs)
            size_of(benchmark, profile)
        except BadSettings as error:
            raise BadSettings(f"{path}: measure.{number}: {error}") from error
        unknown = sorted(set(measure.configs) - (configs_of_dbms := load_dbms(measure.dbms, configs).configs).keys())
        if unknown:
            raise BadSettings(
                f"{path}: measure.{number}.configs: {measure.dbms} has no config {', '.join(unknown)}; "
                f"there are: {', '.join(sorted(configs_of_dbms))}"
            )
        if profile.lane != measure.lane:
            raise BadSettings(
                f"{path}: measure.{number}.profile: {profile.name} is of the {profile.lane} lane, not {measure.lane}"
            )
    return plan
