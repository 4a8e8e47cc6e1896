"""What the detector found, and what became of it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from history.model.series import SeriesKey
from history.model.values import MAJORS, Better, Count, Moment, Name, Row, Value

FindingKind = Literal["regression", "improvement", "environment", "drift"]
Tier = Literal["confirmed", "provisional", "unconfirmed"]
#: The surest last.
TIERS: tuple[Tier, ...] = ("unconfirmed", "provisional", "confirmed")
Direction = Literal["regression", "improvement", "change"]
UnknownSide = Literal["", "before", "after"]
#: `both`: the code and the settings, which differ.
Cause = Literal["product", "machine", "plan", "config", "both", "toolchain", "epoch", "sla"]
#: Causes that are shown and not filed, and fail no gate: nobody is at fault where two builders used two compilers.
NOT_FILED: frozenset[Cause] = frozenset({"toolchain"})
#: From this probability on a move is more likely than not.
LIKELY = 0.5
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
    tier: Tier = "provisional"
    """Of this series by itself: nothing inherits it from the finding or from another metric of the test."""
    judged_in: int = 0
    """Sessions that took no part in discovering it and whose blocks of both sides have judged it."""
    counted_pct: float | None = None
    """What the counted instructions of the test moved by, where that cannot explain this move of the time lane."""
    near_zero: bool = Field(default=False, exclude_if=operator.not_)
    """One of the levels is as good as none (`near_zero` of its metric): the change is told in `unit`, since a
    percentage says nothing, and makes no finding by itself."""
    warnings: tuple[str, ...] = ()


class BlockEvidence(Row):
    """The blocks that moves were discovered in, and those that measured them again: of moves of one server, config,
    benchmark and lane that the same sessions measured again. Sessions are in the order in which they began, blocks by
    session and name."""

    series: tuple[str, ...]
    """Ids of the series that moved."""
    discovered_in: tuple[str, ...]
    """Sessions."""
    discovered: tuple[str, ...]
    """Blocks of the two releases."""
    again_in: tuple[str, ...] = ()
    """Later sessions, each of which measured both releases side by side."""
    again: tuple[str, ...] = ()
    """Their blocks of the two releases."""


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
    worst_levels: tuple[float, float] | None = Field(default=None, exclude_if=operator.not_)
    """Before and after of the worst test where all that moved are near zero; then both percentages are 0."""


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


class ChangeLine(Row):
    """Another line that the change of a finding came to."""

    line: Name
    previous: Name
    release: Name
    test: str
    metric: str
    """In which the leading finding moved most, so that the sizes of all lines compare."""
    change_pct: Value
    tier: Tier
    finding: Name
    """Its key."""
    between_majors: bool = False
    """Of this line the newest release alone shows it, beside that of the line before, which is `previous`."""
    whole: bool = Field(default=True, exclude_if=operator.truth)
    """Whether all that the leading finding shows came to this line too: else it cannot lead in its place."""

    @classmethod
    def of(cls, finding: Finding, line: str, test: str, metric: str) -> ChangeLine:
        """The row of `finding`: its change of `test` in `metric`, or where it has none its largest."""
        of_test = [move for move in finding.moves if (move.key.test, move.key.metric) == (test, metric)]
        move = max(of_test or finding.moves, key=lambda move: (abs(move.change_pct), move.key.id))
        return cls(
            line=line,
            previous=finding.previous,
            release=finding.release,
            test=move.key.test,
            metric=move.key.metric,
            change_pct=move.change_pct,
            tier=finding.tier,
            finding=finding.key,
            between_majors=finding.line == MAJORS,
        )


class ProbableLine(Row):
    """A line with a release of the same day as the change, and nothing measured that could show it."""

    line: Name
    release: Name


class ExplainedStep(Row):
    """What findings at point releases explain of the step of one series between two majors."""

    key: SeriesKey
    change_pct: Value
    explained_pct: Value
    rest_pct: Value
    """What is left, as a factor: 1 + change is (1 + explained) times (1 + rest)."""
    by: tuple[Name, ...]
    """Keys of these findings."""
    less: tuple[Name, ...] = Field(default=(), exclude_if=operator.not_)
    """Keys of findings that `explained_pct` is net of: what went the other way, and what came to the older line."""
    whole: bool
    """Whether what is left is no change of its own."""


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
    trade: tuple[Move, ...] = ()
    """Of a regression, what the same tests gained in throughput or CPU at the boundary; of an improvement, what they
    paid. They are moves of the finding of the other kind, and there only while that is as sure as this one."""
    groups: tuple[GroupSummary, ...] = ()
    functions: tuple[FunctionChange, ...] = ()
    plans: tuple[PlanChange, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    """Effective settings that differ on the two sides; empty where a side kept none."""
    toolchain: tuple[ToolchainChange, ...] = ()
    """Who built the two sides, and with what, where that differs."""
    split: SettingsSplit | None = None
    """How much of it is settings and how much code; None while nobody measured that."""
    blocks: tuple[BlockEvidence, ...] = ()
    """What its tier rests on; empty for a drift, and in findings of older detections."""
    evidence: tuple[str, ...] = ()
    """Sentences: blocks that agree, noise floor, what one test by itself would show, what the control did."""
    warnings: tuple[str, ...] = ()
    lines: tuple[ChangeLine, ...] = ()
    """The other lines of the same change; only the leading finding of a change has them."""
    probably_affected: tuple[ProbableLine, ...] = ()
    same_as: str = ""
    """Key of the finding that leads the change this one belongs to; empty where it leads or stands alone."""
    explained: tuple[ExplainedStep, ...] = ()
    """On `majors`: the steps that findings at point releases explain."""
    explained_by: tuple[str, ...] = ()
    """Keys of the findings that lead these changes, the one that explains most first."""

    @property
    def wholly_explained(self) -> bool:
        """Whether nothing of the step between majors is left that goes the finding's way."""
        whole = {step.key for step in self.explained if step.whole}
        return bool(whole) and all(move.key in whole for move in self.moves if move.direction == self.kind)

    @property
    def folded_under(self) -> str:
        """Key of the finding that is told in place of this one; empty for what is told by itself."""
        return self.same_as or (self.explained_by[0] if self.wholly_explained else "")


def goes_its_way(kind: FindingKind, move: Move) -> bool:
    """Whether a move goes the way a finding of this kind is named for."""
    return kind not in ("regression", "drift", "improvement") or move.direction in (
        "change",
        "improvement" if kind == "improvement" else "regression",
    )


def carried_by(tier: Tier, moves: Sequence[Move]) -> tuple[Move, ...]:
    """The moves that carry a finding of this tier: those as sure as it is, without what counted instructions do not
    explain and nothing has confirmed. What is told of a finding, in titles and tables of groups, is told of them alone.

    All of them where none is so sure: findings of older detections have no tiers of moves.
    """
    sure = [move for move in moves if TIERS.index(move.tier) >= TIERS.index(tier)]
    told = [move for move in sure if move.tier == "confirmed" or move.counted_pct is None]
    return tuple(told or sure or moves)


def carrying_moves(finding: Finding) -> tuple[Move, ...]:
    """The moves that carry the tier of `finding` (`carried_by`)."""
    return carried_by(finding.tier, finding.moves)


def fails_gates(finding: Finding) -> bool:
    """Whether a finding is sure enough to fail somebody's build: it was not refuted, and one of the moves that carry it
    was seen again or is more likely than not. Less is suspected of the newest release, to be measured again."""
    return finding.tier != "unconfirmed" and any(is_likely(move) for move in carrying_moves(finding))


def is_likely(move: Move) -> bool:
    """Seen again, or more likely than not."""
    return move.tier == "confirmed" or move.probability >= LIKELY


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
