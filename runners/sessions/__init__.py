"""Sessions: which blocks, in which order; each measured and handed over at once; resumable.

>>> from runners.sessions import estimate, plan_session, run_session
"""

from runners.sessions.bundle import held_of, repeat_plan
from runners.sessions.estimates import estimate
from runners.sessions.events import Event
from runners.sessions.model import Estimate, HeldConfig, Outcome, SessionPlan
from runners.sessions.planning import plan_session
from runners.sessions.session import run_session
