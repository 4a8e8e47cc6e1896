"""Sessions that were begun: a record of each is in `STATE/sessions` from before its first block until after its last.

STATE/sessions/20261121T030412Z-bee-postgres-18-default-time.json

Whoever measures a session holds the lock beside its record, so that nobody goes on with what another process is doing.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from filelock import FileLock, Timeout
from pydantic import ConfigDict, TypeAdapter, ValidationError

from history.files import write_atomically
from pointdrop.jobs.release_selection import Work
from runners.errors import RunnersError
from runners.settings import Plan

#: Somebody who only looks whether a session is claimed holds its lock for a moment.
CLAIM_S = 0.2


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
    """Sessions that were begun here, not ended, and given up by the process that began them, oldest first."""
    return [record for record in _records(state) if not _claimed(state, record.id)]


def sessions_under_way(state: Path) -> list[SessionRecord]:
    """Sessions that other processes measure now, oldest first."""
    return [record for record in _records(state) if _claimed(state, record.id)]


def _records(state: Path) -> list[SessionRecord]:
    """A record that cannot be read is an error."""
    records = []
    for path in sorted((state / "sessions").glob("*.json")):
        try:
            records.append(_RECORD.validate_json(path.read_bytes()))
        except FileNotFoundError:  # another process has just ended it
            continue
        except ValidationError as error:
            raise RunnersError(
                f"{path} is not a session of this version of Pointdrop; move it away to give up that session: "
                f"{error.errors()[0]['msg']}"
            ) from error
    return records


def _claimed(state: Path, session_id: str) -> bool:
    with claim(state, session_id) as ours:
        return not ours


@contextmanager
def one_begins(state: Path) -> Iterator[None]:
    """While this lasts nobody else finds out what is under way, claims it, and writes its record: two processes that
    did so at once would measure the same work."""
    folder = state / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "begin.lock"):
        yield


@contextmanager
def claim(state: Path, session_id: str) -> Iterator[bool]:
    """Keep others from this session; False when another process measures it."""
    path = state / "sessions" / f"{session_id}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=CLAIM_S)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        if not record_path(state, session_id).exists():
            path.unlink(missing_ok=True)
        lock.release()


def record_path(state: Path, session_id: str) -> Path:
    """Where the record of a session is, while it is not ended."""
    return state / "sessions" / f"{session_id}.json"


def write_record(state: Path, begun: SessionRecord) -> Path:
    """Write it down, whole or not at all; whoever ends the session removes the file."""
    path = record_path(state, begun.id)
    write_atomically(path, _RECORD.dump_json(begun, indent=1))
    return path
