"""Sessions: which blocks, in which order; each measured and handed over at once; resumable.

>>> from runners.sessions import estimate, plan_session, run_session
"""

from runners.sessions.bundle import repeat_plan
from runners.sessions.events import (
    BlockDone,
    BlockStarted,
    DataPrepared,
    Event,
    RunSkipped,
    SessionDone,
    SessionStarted,
    TestDone,
)
from runners.sessions.model import Estimate, Outcome, PlannedBlock, PlannedRun, SessionPlan
from runners.sessions.planning import estimate, plan_session
from runners.sessions.session import Fetches, Sink, run_session

__all__ = [
    "BlockDone",
    "BlockStarted",
    "DataPrepared",
    "Estimate",
    "Event",
    "Fetches",
    "Outcome",
    "PlannedBlock",
    "PlannedRun",
    "RunSkipped",
    "SessionDone",
    "SessionPlan",
    "SessionStarted",
    "Sink",
    "TestDone",
    "estimate",
    "plan_session",
    "repeat_plan",
    "run_session",
]
