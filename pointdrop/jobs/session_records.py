"""Sessions that were begun: a record of each is in `STATE/sessions` from before its first block until after its last.

STATE/sessions/20261121T030412Z-bee-postgres-18-default-time.json
"""

from __future__ import annotations

import socket
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from history.model import Release
from pointdrop.jobs.release_selection import Work
from runners.errors import RunnersError
from runners.settings import Measure, Plan


class SessionRecord(BaseModel):
    """A session as it was begun; what is needed to go on with it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    plan: str
    server: str
    measure: Measure
    config: str
    line: str
    candidates: tuple[Release, ...]
    control: Release
    again: bool = False
    seed: int

    @property
    def work(self) -> Work:
        return Work(self.measure, self.config, self.line, self.candidates, self.control, self.again)


def new_record(plan: Plan, server: str, work: Work, now: datetime, host: str = "") -> SessionRecord:
    """A record for new work. The id says when, where and what; its seed differs from night to night."""
    host = host or socket.gethostname().split(".")[0]
    measure = work.measure
    benchmark = measure.benchmark if measure.benchmark != "sysbench" else ""  # as ids of stored sessions are
    what = "-".join(filter(None, (measure.dbms, work.line, work.config, benchmark, measure.lane)))
    return SessionRecord(
        id=f"{now:%Y%m%dT%H%M%SZ}-{host}-{what}",
        plan=plan.name,
        server=server,
        measure=work.measure,
        config=work.config,
        line=work.line,
        candidates=work.candidates,
        control=work.control,
        again=work.again,
        seed=plan.seed + int(now.timestamp()) // 86_400,
    )


def unfinished_sessions(state: Path) -> list[SessionRecord]:
    """Sessions that were begun here and not ended, oldest first; a record that cannot be read is an error."""
    records = []
    for path in sorted((state / "sessions").glob("*.json")):
        try:
            records.append(SessionRecord.model_validate_json(path.read_bytes()))
        except ValidationError as error:
            raise RunnersError(
                f"{path} is not a session of this version of Pointdrop; move it away to give up that session: "
                f"{error.errors()[0]['msg']}"
            ) from error
    return records


def write_record(state: Path, begun: SessionRecord) -> Path:
    """Write it down, whole or not at all; whoever ends the session removes the file."""
    path = state / "sessions" / f"{begun.id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(begun.model_dump_json(indent=1))
    temporary.replace(path)
    return path
