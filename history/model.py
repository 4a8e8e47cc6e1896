"""The words of the project as types: what runners measured, what the detector found, what became of it.

Everything here is an immutable value. Rows of the store, lines of the interchange format `pointdrop.run/1`
and the arguments of the pure cores are these types and no others.

>>> m = Measurement(test="point-query", group="point, part 1", metric="insn/o", value=43_029.8, operations=1000)
>>> (m.metric, m.value, m.unit)
('insn/o', 43029.8, '')
>>> Release(dbms="postgres", version="17.2", line="17").name
'postgres 17.2'
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, overload

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, TypeAdapter

RUN_SCHEMA = "pointdrop.run/1"

#: The pseudo-line whose releases are the newest measured point release of every real line: its boundaries
#: are the steps between majors.
MAJORS = "majors"

#: Functions kept of each test, the most expensive; the rest is below a few tenths of a percent.
TOP_FUNCTIONS = 40

Better = Literal["higher", "lower"]
Lane = Literal["time", "instructions"]
#: `ok` counts; `noisy` was measured but is out of bounds and never reaches the detector; `failed` has no values.
BlockStatus = Literal["ok", "noisy", "failed"]


def utc(moment: datetime) -> datetime:
    """`moment` in UTC; a naive time is an error, since hosts in two time zones append to one history."""
    if moment.tzinfo is None:
        raise ValueError("a time needs its time zone; use datetime.now(UTC)")
    return moment.astimezone(UTC)


def finite(value: float) -> float:
    """A measured value is a finite number; an absent one is an absent row, never NaN and never zero.

    Minus zero becomes zero: databases do not all keep the sign.
    """
    if not math.isfinite(value):
        raise ValueError(f"a value must be finite, got {value}")
    return value + 0.0


Moment = Annotated[datetime, AfterValidator(utc)]
Value = Annotated[float, AfterValidator(finite)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
#: What a 64-bit column holds.
Count = Annotated[int, Field(ge=0, lt=2**63)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Row(BaseModel):
    """Base of every value: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


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
    digest of scale, durations and scripts, so that a changed workload is never taken for a changed product.
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
    """Self cost of one function of the server, in instructions per operation."""

    function: str
    insn_per_op: Value
    object: str = ""


class StatementPlan(Row):
    """The plan the optimizer chose for one statement; `digest` is of its shape, without costs and row counts."""

    statement: str
    digest: str
    text: str = ""


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
    plans: dict[str, tuple[StatementPlan, ...]] = Field(default_factory=dict)
    """By test."""
    samples: dict[str, dict[str, tuple[Value, ...]]] = Field(default_factory=dict)
    """By test, then metric: one value a second."""
    warnings: tuple[str, ...] = ()


class Metric(Row):
    """One entry of `configs/metrics.toml`."""

    name: Name
    unit: str
    better: Better
    smallest_change_pct: float
    """A change smaller than this is not worth a finding, however sure."""
    title: str = ""


class SeriesKey(Row):
    """What a series is of; two keys are the same series exactly when they are equal."""

    dbms: Name
    line: Name
    server: Name
    config: Name
    benchmark: Name
    test: Name
    metric: Name

    @property
    def id(self) -> str:
        """The key on one line, as commands take it: `postgres|17|local|default|sysbench|point-query|insn/o`."""
        return "|".join((self.dbms, self.line, self.server, self.config, self.benchmark, self.test, self.metric))

    @classmethod
    def parse(cls, text: str) -> SeriesKey:
        """The inverse of `id`; ValueError when `text` has not seven parts."""
        parts = text.split("|")
        if len(parts) != 7:
            raise ValueError(f"a series is DBMS|LINE|SERVER|CONFIG|BENCHMARK|TEST|METRIC, got {text!r}")
        return cls(**dict(zip(cls.model_fields, parts, strict=True)))


class BlockValue(NamedTuple):
    """One block's value in a series. A tuple, since a history holds millions of them."""

    value: Value
    block_id: str
    session_id: str
    host: str
    epoch: str
    """Digest of the host's fingerprint when the block ran."""


class BlockValues(Sequence[BlockValue]):
    """BlockValue by BlockValue, made when asked for, over columns that the series of a line share.

    >>> BlockValues((1.5, 2.5), (("b1", "b2"), ("s", "s"), ("bee", "bee"), ("e", "e")))[1]
    BlockValue(value=2.5, block_id='b2', session_id='s', host='bee', epoch='e')
    """

    __slots__ = ("names", "numbers")

    def __init__(self, numbers: tuple[float, ...], names: tuple[tuple[str, ...], ...]) -> None:
        """`names`: blocks, sessions, hosts and epochs, each in the order of `numbers`."""
        self.numbers = numbers
        self.names = names

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[BlockValue]:
        return map(_block_value, zip(self.numbers, *self.names, strict=True))

    @overload
    def __getitem__(self, at: int) -> BlockValue: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[BlockValue, ...]: ...
    def __getitem__(self, at: int | slice) -> BlockValue | tuple[BlockValue, ...]:
        if isinstance(at, slice):
            return tuple(self)[at]
        return _block_value((self.numbers[at], *(column[at] for column in self.names)))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, BlockValues | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


#: A BlockValue from its fields, at half the price of naming them.
_block_value: Callable[[tuple[Any, ...]], BlockValue] = partial(tuple.__new__, BlockValue)


def _checked_values(values: Any) -> tuple[BlockValue, ...]:
    return _BLOCK_VALUES.validate_python(tuple(values) if isinstance(values, BlockValues) else values)


_BLOCK_VALUES: TypeAdapter[tuple[BlockValue, ...]] = TypeAdapter(tuple[BlockValue, ...])


class Point(Row):
    """All blocks of one release in one series; `position` counts the line's releases from 0."""

    version: Name
    position: int
    values: Annotated[Sequence[BlockValue], PlainValidator(_checked_values), PlainSerializer(tuple)]
    """A tuple, or from the store BlockValues."""
    released: date | None = None

    @property
    def numbers(self) -> tuple[float, ...]:
        """The values alone."""
        held = self.values
        return held.numbers if isinstance(held, BlockValues) else tuple([one.value for one in held])


class Series(Row):
    """The values of one key over the releases of its line, in the DBMS's own version order.

    `control` holds, per session, the values of the control release in the same series, so that a machine that moved
    can be told from a product that moved; a release that is the control is in `points` too.
    """

    key: SeriesKey
    group: str = ""
    unit: str = ""
    better: Better = "lower"
    points: tuple[Point, ...]
    control: dict[str, tuple[float, ...]] = Field(default_factory=dict)


# --- whether the machine was the same ------------------------------------------------------------------------

Milliseconds = Annotated[Value, Field(ge=0)]
Phase = Literal["before", "after"]
#: `learning`: too few readings of this host to judge.
CanaryVerdict = Literal["learning", "usual", "differs"]


class Reading(Row):
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


# --- what the detector found -------------------------------------------------------------------------------

FindingKind = Literal["regression", "improvement", "environment", "drift"]
Tier = Literal["confirmed", "provisional", "unconfirmed"]
Direction = Literal["regression", "improvement", "change"]
Cause = Literal["product", "machine", "plan", "config", "epoch", "sla"]


class Move(Row):
    """One series that moves at a finding's boundary."""

    key: SeriesKey
    group: str = ""
    unit: str = ""
    better: Better = "lower"
    before: float
    """Level before the boundary (geometric mean of the segment), in `unit`."""
    after: float
    change_pct: float
    low_pct: float
    high_pct: float
    """95 % interval of `change_pct`."""
    direction: Direction
    probability: float
    q_value: float | None = None
    noise_pct: float
    """Between-release noise of this series, one standard deviation, in percent."""
    mde_pct: float
    """The smallest change this series could have shown (probability 0.8 of being found)."""
    blocks_before: int = 0
    blocks_after: int = 0
    warnings: tuple[str, ...] = ()


class GroupSummary(Row):
    """A finding folded to one (server, metric, group); groups of which nothing moved are there where others did."""

    server: str
    metric: str
    group: str
    moved: int
    tests: int
    """Measured on both sides of the boundary."""
    median_pct: float
    """Median change over the tests that moved; 0 where none did."""
    worst_pct: float
    worst_test: str
    """Empty where none moved."""


class FunctionChange(Row):
    """One function's instructions per operation before and after, in the test named."""

    test: str
    function: str
    before: float
    after: float


class PlanChange(Row):
    """A statement whose plan differs on the two sides of the boundary."""

    test: str
    statement: str
    before: str
    after: str


class Finding(Row):
    """One boundary, with all the series that move there.

    `key` is stable over re-detection: it names dbms, line, boundary release and kind, nothing measured.
    """

    key: Name
    kind: FindingKind
    cause: Cause = "product"
    tier: Tier
    dbms: Name
    line: Name
    previous: Name
    """The last measured release before the boundary."""
    release: Name
    """The first release at the new level."""
    unmeasured: tuple[str, ...] = ()
    """Known releases between `previous` and `release` that have no results: with `release`, the suspect range."""
    moves: tuple[Move, ...]
    groups: tuple[GroupSummary, ...] = ()
    functions: tuple[FunctionChange, ...] = ()
    plans: tuple[PlanChange, ...] = ()
    evidence: tuple[str, ...] = ()
    """Sentences: blocks that agree, noise floor, smallest detectable change, what the control did."""
    warnings: tuple[str, ...] = ()


def finding_key(dbms: str, line: str, release: str, kind: str) -> str:
    """The stable name of a finding.

    >>> finding_key("mysql", "8.0", "8.0.30", "regression")
    'mysql/8.0/8.0.30/regression'
    """
    return f"{dbms}/{line}/{release}/{kind}"


class FindingEvent(Row):
    """Something that happened to a finding; the events of a key, in order, are its state."""

    key: Name
    event: Name
    """`detected`, `confirmed`, `refuted`, `filed`, `updated`, `recovered`, `returned`, `acknowledged`, `snoozed`,
    `not-a-bug`, `closed`, `reopened`, ..."""
    at: Moment
    actor: str = "pointdrop"
    detail: dict[str, Any] = Field(default_factory=dict)


class IssueLink(Row):
    """Where a finding stands in a tracker."""

    key: Name
    tracker: Name
    """`github:owner/name` or `files`."""
    number: Count
    url: str = ""
