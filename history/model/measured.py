"""What runners measured: releases, hosts, sessions, runs, blocks and their values, and the machine canary."""

from __future__ import annotations

import hashlib
import json
import operator
from datetime import date
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from history.model.values import Better, BlockStatus, Count, Lane, Moment, Name, Row, Seed, Value

#: Fields that came later are left out where they are empty, so that a block of before keeps its digest.
_is_none = partial(operator.is_, None)
Milliseconds = Annotated[Value, Field(ge=0)]
Seconds = Annotated[Value, Field(ge=0)]
Phase = Literal["before", "after"]
#: `learning`: too few readings of this host to judge.
CanaryVerdict = Literal["learning", "usual", "differs"]


class Release(Row):
    """One version of one DBMS in one build."""

    dbms: Name
    version: Name
    line: Name
    """The branch it belongs to, in the DBMS's own words: `8.0`, `10.11`, `17`."""
    build: str = ""
    """How the binaries came to be: the name of the source (`maven`, `debian`) or of the build recipe."""
    digest: str = ""
    """sha256 of the archive or package set, lower-case hex; empty where the figures are somebody else's."""
    released: date | None = None
    source: str = ""
    """Coordinates or address of the archive, or the citation of a published figure."""

    @property
    def name(self) -> str:
        return f"{self.dbms} {self.version}"


class Fingerprint(Row):
    """What a host is and how it was set when it measured; a change begins a new epoch.

    `facts` are short strings by name (`cpu_model`, `cores`, `smt`, `governor`, `turbo`, `thp`, `kernel`, `os`,
    `memory_gib`, `storage`, `libc`, `client_library`, `sysbench`, `virtualization`, ...), plus `workload`: the
    digest of scale, durations and scripts, so that a changed workload is never taken for a changed product, and
    `method`: see `METHOD`.
    """

    facts: dict[str, str]

    @property
    def digest(self) -> str:
        """First 16 hex digits of the sha256 over the sorted facts."""
        text = json.dumps(self.facts, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Session(Row):
    """Runs made together on one host, blocks interleaved, always including the control release."""

    id: Name
    host: Name
    server: Name
    plan: str = ""
    fingerprint: Fingerprint
    seed: Seed = 0
    started: Moment
    control: str = ""
    """Version of the control release of this session, empty for imported figures."""


class Run(Row):
    """All blocks of one (release, config, benchmark, lane) in one session."""

    id: Name
    session_id: Name
    release: Release
    config: Name
    benchmark: Name
    profile: str = "standard"
    lane: Lane = "time"
    options: str = ""
    """The rendered option file, whole."""
    bundle: dict[str, Any] = Field(default_factory=dict)
    """Everything else needed to repeat the run: command lines, seeds, scale, durations."""
    toolchain: dict[str, str] = Field(default_factory=dict, exclude_if=operator.not_)
    """What the release was built with and links to, by the names of `history.toolchains`; a name is left out where the
    release does not say. Empty in runs of before, and of figures that were published."""


class Measurement(Row):
    """One metric of one test in one block."""

    test: Name
    group: str = ""
    metric: Name
    value: Value
    unit: str = ""
    better: Better = "lower"
    operations: Count | None = None
    warnings: tuple[str, ...] = ()


class FunctionCost(Row):
    """What one function of the server costs, in instructions per operation, as callgrind named it."""

    function: str
    """`???` stands for all functions of the object that have no name; blocks of before that have their addresses."""
    insn_per_op: Value
    """In the function itself."""
    object: str = ""
    """File name of the program or library."""
    inclusive_per_op: Value | None = Field(default=None, exclude_if=_is_none)
    """With all that it calls, each instruction once however deep it recurs; None where that is not known."""


class CallCost(Row):
    """Calls of one function by another, per operation."""

    caller: str
    callee: str
    calls_per_op: Value
    insn_per_op: Value
    """With all that the callee calls; calls inside an outer one of the same two functions are in that."""
    caller_object: str = ""
    callee_object: str = ""


class StatementPlan(Row):
    """The plan the optimizer chose for one statement; `digest` is of its shape, without costs and row counts."""

    statement: str
    digest: str
    text: str = ""


class EffectiveSetting(Row):
    """One option as the running server says it is."""

    value: str
    default: str | None = None
    """What it would be without an option file; None where the server does not say."""
    source: str = "default"
    """Where the value comes from: `default`, `auto` (the server computed it), `built in` (no option file can set it),
    `file`, `command line`, or a word of the server's own."""

    @property
    def set_by_nobody(self) -> bool:
        """Whether the release chose the value itself."""
        return self.source in ("default", "auto", "built in")


class Block(Row):
    """One server start on freshly restored data, a warm-up, then every test once."""

    id: Name
    run_id: Name
    number: Count
    started: Moment
    ended: Moment
    status: BlockStatus = "ok"
    reason: str = ""
    measurements: tuple[Measurement, ...] = ()
    functions: dict[str, tuple[FunctionCost, ...]] = Field(default_factory=dict)
    """By test; the most expensive functions first."""
    calls: dict[str, tuple[CallCost, ...]] = Field(default_factory=dict, exclude_if=operator.not_)
    """By test; the most expensive calls first. Their ends are among `functions`."""
    plans: dict[str, tuple[StatementPlan, ...]] = Field(default_factory=dict)
    """By test."""
    samples: dict[str, dict[str, tuple[Value, ...]]] = Field(default_factory=dict)
    """By test, then metric: one value a second."""
    phases: dict[Literal["block", "tests"], dict[str, Seconds]] = Field(default_factory=dict, exclude_if=operator.not_)
    """Where its wall time went: `block` has what is no test (`load`, `wait`, `restore`, `start`, `heat`, `settle`,
    `stop`, `other`), `tests` each test with its warm-up. A counted test has a server of its own, so that restoring,
    starting and heating are in `tests`. Empty in blocks of before."""
    settings: dict[str, EffectiveSetting] = Field(default_factory=dict, exclude_if=operator.not_)
    """What the server said its options are, by name, without paths and what differs in every server. Kept once a run:
    in the first block that a process measured of it, and in any whose server had others. Empty in blocks of before."""
    warnings: tuple[str, ...] = ()


class CanaryReading(Row):
    """What a host took once for the fixed work of the machine canary, before or after a session of its."""

    host: Name
    at: Moment
    session_id: str = Field("", max_length=200)
    """It need not be stored: a host that is found sick before a session does not begin it."""
    phase: Phase
    cpu_ms: Milliseconds
    memory_ms: Milliseconds
    sync_ms: Milliseconds
    """A page written safely."""
    verdict: CanaryVerdict
    reasons: tuple[Annotated[str, Field(max_length=300)], ...] = Field((), max_length=10)
    """A sentence for each part that differs."""
    quarantine: bool = False
    """From here on the host measures no more, until a person clears it."""

    @property
    def id(self) -> str:
        return f"{self.host}/{self.at.isoformat()}"
