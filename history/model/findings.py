"""What the detector found, and what became of it."""

from __future__ import annotations

import operator
from typing import Any, Literal

from pydantic import Field

from history.model.series import SeriesKey
from history.model.values import Better, Count, Moment, Name, Row, Value

FindingKind = Literal["regression", "improvement", "environment", "drift"]
Tier = Literal["confirmed", "provisional", "unconfirmed"]
Direction = Literal["regression", "improvement", "change"]
UnknownSide = Literal["", "before", "after"]
#: `both`: the code and the settings, which differ.
Cause = Literal["product", "machine", "plan", "config", "both", "toolchain", "epoch", "sla"]
#: Causes that are shown and not filed, and fail no gate: nobody is at fault where two builders used two compilers.
NOT_FILED: frozenset[Cause] = frozenset({"toolchain"})
#: Empty while no difference is sure.
SplitCause = Literal["", "config", "product", "both"]


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
    """The smallest change that this series by itself would show (probability 0.8 of being found); a finding pools all
    that moves with it, and shows smaller changes."""
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
    """One function's own instructions per operation before and after, in the test named."""

    test: str
    function: str
    """Its base name: overloads, instances of templates and clones are one function."""
    before: float
    after: float
    at_most: UnknownSide = Field(default="", exclude_if=operator.not_)
    """The side on which the function is not among those that are kept: it costs at most that much there."""


class PlanChange(Row):
    """A statement whose plan differs on the two sides of the boundary."""

    test: str
    statement: str
    before: str
    after: str


class SettingChange(Row):
    """An effective setting that differs on the two sides of a boundary."""

    name: str
    before: str
    after: str
    cause: Literal["config", "default", "one side"]
    """Somebody set both values; or nobody did, and the release has a new default; or somebody set one of them."""


class ToolchainChange(Row):
    """One part of the toolchain that differs between the two sides, by its name in `history.toolchains`."""

    part: Name
    before: str
    after: str


class Part(Row):
    """A change in percent, with an interval; without one as long as it is not bounded."""

    change_pct: Value
    low_pct: Value | None = None
    high_pct: Value | None = None


class SplitRow(Row):
    """What the difference of one test and metric is made of."""

    test: str
    metric: str
    cause: SplitCause
    settings: Part
    code: Part


class LeftSetting(Row):
    """A setting that differs and that the new release could not be given."""

    change: SettingChange
    reason: str


class SettingsSplit(Row):
    """A difference in two parts, whose product it is: measured with the new release given the old one's settings."""

    cause: SplitCause
    settings: Part
    code: Part
    """Of the tests that differ together, of all where none does."""
    metric: str = ""
    """What both are told in."""
    held: tuple[SettingChange, ...] = ()
    left: tuple[LeftSetting, ...] = ()
    """Their part is in the code's."""
    tests: tuple[SplitRow, ...] = ()


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
    settings: tuple[SettingChange, ...] = ()
    """Effective settings that differ on the two sides; empty where a side kept none."""
    toolchain: tuple[ToolchainChange, ...] = ()
    """Who built the two sides, and with what, where that differs."""
    split: SettingsSplit | None = None
    """How much of it is settings and how much code; None while nobody measured that."""
    evidence: tuple[str, ...] = ()
    """Sentences: blocks that agree, noise floor, what one test by itself would show, what the control did."""
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
