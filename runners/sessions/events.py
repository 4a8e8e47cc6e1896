"""What a running session tells: typed, so that a terminal can draw bars and a log can print lines."""

from __future__ import annotations

from dataclasses import dataclass

from runners.sessions.model import Estimate, Outcome, PlannedBlock, SessionPlan


@dataclass(frozen=True)
class SessionStarted:
    plan: SessionPlan
    estimate: Estimate
    already_done: int


@dataclass(frozen=True)
class DataPrepared:
    """A release's data is loaded, or was there from before."""

    release: str
    seconds: float
    reused: bool


@dataclass(frozen=True)
class BlockStarted:
    block: PlannedBlock


@dataclass(frozen=True)
class TestDone:
    block: PlannedBlock
    test: str

    __test__ = False  # pytest would take the class for one of its own


@dataclass(frozen=True)
class BlockDone:
    block: PlannedBlock
    status: str
    reason: str
    seconds: float


@dataclass(frozen=True)
class RunSkipped:
    run_id: str
    reason: str


@dataclass(frozen=True)
class SessionDone:
    outcome: Outcome


Event = SessionStarted | DataPrepared | BlockStarted | TestDone | BlockDone | RunSkipped | SessionDone
