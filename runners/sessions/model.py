"""What a session is before and after it ran. Plain values."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field

from history.model import HELD_MARK, Lane, LeftSetting, Release, SettingChange
from runners.settings import Benchmark, InsertSize, Profile, Scale, Server, Test
from runners.settings.profiles import size_of

#: Connections of a client of the Insert Benchmark: queries, inserts, deletes.
CONNECTIONS_A_CLIENT = 3


@dataclass(frozen=True)
class HeldConfig:
    """A config whose server is given settings of another one: the third arm between two releases."""

    base: str
    """The config that it is but for these."""
    options: tuple[tuple[str, str | None], ...]
    """Option and value, as the option file has them; None leaves out an option of the base."""
    of: str = ""
    """The version whose settings they are."""
    held: tuple[SettingChange, ...] = ()
    """From that version's values to those of the base config."""
    left: tuple[LeftSetting, ...] = ()

    @property
    def name(self) -> str:
        """What the history calls it: the same for the same options, and never the base's own name."""
        digest = hashlib.sha256(json.dumps(self.options).encode()).hexdigest()[:8]
        return f"{self.base}{HELD_MARK}{digest}"


@dataclass(frozen=True)
class PlannedRun:
    """All blocks of one release with one config in one session."""

    id: str
    release: Release
    config: str


@dataclass(frozen=True)
class PlannedBlock:
    """One block to do: its id follows from the plan alone, so a resumed session knows what is missing."""

    id: str
    run: PlannedRun
    number: int
    """From 1; repeats of noisy blocks count on."""


@dataclass(frozen=True)
class DataRecipe:
    """What the data is made of that a test begins with."""

    scale: Scale | None
    """None for an empty server: the Insert Benchmark loads its tables itself."""
    age_updates: int = 0
    seed: int = 0


@dataclass(frozen=True)
class SessionPlan:
    """Which blocks, in which order, doing what."""

    session_id: str
    plan: str
    server: Server
    benchmark: Benchmark
    tests: tuple[Test, ...]
    profile: Profile
    control: Release
    seed: int
    blocks: tuple[PlannedBlock, ...]
    noisy_repeats: int = 1
    held: tuple[HeldConfig, ...] = ()
    """Configs that no file names, of runs that have their names."""

    @property
    def lane(self) -> Lane:
        return self.profile.lane

    @property
    def size(self) -> InsertSize | None:
        """How much the Insert Benchmark does; None for sysbench."""
        return size_of(self.benchmark, self.profile)

    @property
    def scale(self) -> Scale:
        """The profile's own scale, else the server's; a client of the Insert Benchmark has a table and three
        connections."""
        if self.size:
            clients = self.server.threads
            return Scale(tables=clients, rows=self.size.rows, threads=CONNECTIONS_A_CLIENT * clients)
        if self.profile.scale:
            return self.profile.scale
        return Scale(tables=self.server.tables, rows=self.server.rows, threads=self.server.threads)

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """Every run once, in the order of its first block."""
        return tuple({block.run.id: block.run for block in self.blocks}.values())


@dataclass(frozen=True)
class Estimate:
    """What a session will take."""

    blocks: int
    low_s: float
    """Wall time, from and to."""
    high_s: float
    disk_bytes: int
    block_s: float
    """For one block, and its data unless that is here: what a session wants to have left before it begins one."""
    known: int = 0
    """Finished blocks of this host that it stands on; with none it stands on priors."""

    @property
    def middle_s(self) -> float:
        """What to reckon with where many sessions add up: as many times the lower end as the upper is of it."""
        return math.sqrt(self.low_s * self.high_s)


@dataclass
class Outcome:
    """What became of a session."""

    planned: int = 0
    done: int = 0
    """Blocks of this call that are `ok`."""
    already_done: int = 0
    noisy: int = 0
    failed: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    """Why, by run id: the release or its build cannot run the config."""
    warnings: list[str] = field(default_factory=list)
    stopped: str = ""
    """Why the session ended before all was done; empty when all was tried."""
    workers: int = 1
    wall_s: float = 0.0
    measured_s: float = 0.0
    """Time that was measurement, over all workers: seconds of tests without their warm-up (instructions lane: all of
    sysbench's run)."""
    harness_cpu: float | None = None
    """CPU of the harness while it measured, as a share of one core."""

    @property
    def overhead(self) -> float | None:
        """Share of the workers' time that was not measurement; None when nothing was measured."""
        return 1 - self.measured_s / (self.wall_s * self.workers) if self.measured_s and self.wall_s else None

    @property
    def complete(self) -> bool:
        """Every block that can be had is there."""
        return not (self.stopped or self.failed or self.skipped)
