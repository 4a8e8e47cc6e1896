"""Whether the machine was the same: what the canary read before and after a session."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from history.model.values import Moment, Name, Row, Value

Milliseconds = Annotated[Value, Field(ge=0)]
Phase = Literal["before", "after"]
#: `learning`: too few readings of this host to judge.
CanaryVerdict = Literal["learning", "usual", "differs"]


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
