"""Sessions that were begun: a record of each is in `STATE/sessions` from before its first block until after its last.

STATE/sessions/20261121T030412Z-bee-postgres-18-default-time.json
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from history.files import write_atomically
from pointdrop.jobs.release_selection import Work
from runners.errors import RunnersError
from runners.settings import Plan


@dataclass(frozen=True, kw_only=True)
class SessionRecord(Work):
    """Work that was begun, with what is needed to go on with it."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    id: str
    plan: str
    server: str
    seed: int


_RECORD = TypeAdapter(SessionRecord)


def new_record(plan: Plan, server: str, work: Work, now: datetime, host: str = "") -> SessionRecord:
    """A record for new work. The id says when, where and what; its seed differs from night to night."""
    host = host or socket.gethostname().split(".")[0]
    measure = work.measure
    benchmark = measure.benchmark if measure.benchmark != "sysbench" else ""  # as ids of stored sessions are
    what = "-".join(filter(None, (measure.dbms, work.line, work.config, benchmark, measure.lane)))
    return SessionRecord(
        **vars(work),
        id=f"{now:%Y%m%dT%H%M%SZ}-{host}-{what}",
        plan=plan.name,
        server=server,
        seed=plan.seed + int(now.timestamp()) // 86_400,
    )


def unfinished_sessions(state: Path) -> list[SessionRecord]:
    """Sessions that were begun here and not ended, oldest first; a record that cannot be read is an error."""
    records = []
    for path in sorted((state / "sessions").glob("*.json")):
        try:
            records.append(_RECORD.validate_json(path.read_bytes()))
        except ValidationError as error:
            raise RunnersError(
                f"{path} is not a session of this version of Pointdrop; move it away to give up that session: "
                f"{error.errors()[0]['msg']}"
            ) from error
    return records


def write_record(state: Path, begun: SessionRecord) -> Path:
    """Write it down, whole or not at all; whoever ends the session removes the file."""
    path = state / "sessions" / f"{begun.id}.json"
    write_atomically(path, _RECORD.dump_json(begun, indent=1))
    return path
