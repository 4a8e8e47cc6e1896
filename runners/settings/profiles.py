"""Profiles: how long each test runs, `configs/profiles.toml`.

    [full]
    read_s = 300
    write_s = 600

The time lane runs a test for a number of seconds; the instructions lane runs a number of events that the catalogue
of tests gives, on a scale of its own, since a count needs no big data and no long run.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from history.errors import BadSettings
from history.model import Lane
from history.settings import Setting, read_toml, validate_named
from runners.settings.benchmarks import Benchmark


class Scale(Setting):
    """How much data: tables, rows in each, and client connections."""

    tables: int = Field(ge=1)
    rows: int = Field(ge=1_000)
    threads: int = Field(default=1, ge=1)


class InsertSize(Setting):
    """How much the Insert Benchmark does; rows are of each client, which has a table of its own."""

    rows: int = Field(ge=1_000)
    """Rows loaded."""
    replaced: dict[str, int]
    """Rows inserted, and deleted, by each step that replaces."""
    query_s: int = Field(ge=1)
    """Seconds of each step that queries."""


class Profile(Setting):
    """Durations of one profile."""

    name: str
    title: str = ""
    lane: Lane = "time"
    warmup_s: int = Field(default=0, ge=0)
    """Seconds of each test that are run and not measured."""
    read_s: int = Field(default=0, ge=0)
    write_s: int = Field(default=0, ge=0)
    warm_s: int = Field(default=0, ge=0)
    """Duration of the steps that only warm caches."""
    settle_max_s: int = Field(default=0, ge=0)
    """Upper bound of the wait after the postwrite steps (field: 60 s + 1 s per million rows, at most 1200 s)."""
    age_updates: int = Field(default=0, ge=0)
    """Indexed updates after the load, before the data is kept. The leaves of an index just built are full and all split
    soon after: a short test would count little else."""
    scale: Scale | None = None
    """Replaces the server's own scale."""
    insert: dict[str, InsertSize] = Field(default_factory=dict)
    """Sizes of the Insert Benchmark by name, `cached` and `io-bound`."""
    events_factor: float = Field(default=1.0, gt=0)
    """Instructions lane: multiplies the catalogue's number of counted events."""

    @model_validator(mode="after")
    def _durations(self) -> Profile:
        if self.lane == "time" and not (self.read_s and self.write_s):
            raise ValueError("a profile of the time lane needs read_s and write_s above 0")
        if self.lane == "instructions" and self.scale is None:
            raise ValueError(
                "a profile of the instructions lane needs a scale, since counting is about 50 times slower"
            )
        if self.lane == "instructions" and self.scale and (self.scale.tables, self.scale.threads) != (1, 1):
            raise ValueError("instructions are counted on one table and one connection; set tables = 1, threads = 1")
        return self


def load_profile(name: str, configs: Path) -> Profile:
    """The profile of that name; BadSettings lists the names there are."""
    path = configs / "profiles.toml"
    data = read_toml(path)
    if name not in data:
        raise BadSettings(f"{path}: no profile {name!r}; there are: {', '.join(sorted(data))}")
    return validate_named(path, Profile, name, data[name])


def size_of(benchmark: Benchmark, profile: Profile) -> InsertSize | None:
    """The size of the Insert Benchmark that a benchmark takes from a profile; None when it is not driven by steps.

    BadSettings when the profile has none for it.
    """
    if benchmark.driver != "insert":
        return None
    size = profile.insert.get(benchmark.size)
    if size is None:
        raise BadSettings(
            f"profile {profile.name} has no [{profile.name}.insert.{benchmark.size}], which benchmark {benchmark.name} "
            f"takes; use a profile of the time lane that has it"
        )
    missing = [
        test.name
        for test in benchmark.tests
        if test.step and test.step.does == "replace" and test.name not in size.replaced
    ]
    if missing:
        raise BadSettings(
            f"profile {profile.name}: insert.{benchmark.size}.replaced says nothing of {', '.join(missing)}"
        )
    return size
