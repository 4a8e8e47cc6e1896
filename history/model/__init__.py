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

from history.model.findings import (
    NOT_FILED,
    TIERS,
    BlockEvidence,
    Cause,
    ChangeLine,
    Direction,
    ExplainedStep,
    Finding,
    FindingEvent,
    FindingKind,
    FunctionChange,
    GroupSummary,
    IssueLink,
    LeftSetting,
    Move,
    Part,
    PlanChange,
    ProbableLine,
    SettingChange,
    SettingsSplit,
    SplitCause,
    SplitRow,
    Tier,
    ToolchainChange,
    UnknownSide,
    carried_by,
    carrying_moves,
    fails_gates,
    finding_key,
    goes_its_way,
    is_likely,
)
from history.model.measured import (
    Block,
    CallCost,
    CanaryReading,
    CanaryVerdict,
    EffectiveSetting,
    Fingerprint,
    FunctionCost,
    Measurement,
    Milliseconds,
    Phase,
    Release,
    Run,
    Session,
    StatementPlan,
)
from history.model.series import BlockValue, BlockValues, LineKey, Point, Series, SeriesKey
from history.model.values import (
    HELD_MARK,
    MAJORS,
    METHOD,
    RUN_SCHEMA,
    TOP_CALLS,
    TOP_FUNCTIONS,
    Better,
    BlockStatus,
    Count,
    Lane,
    Moment,
    Name,
    Row,
    Seed,
    Value,
    finite,
    utc,
)
