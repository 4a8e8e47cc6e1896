"""The real blocks of a history that A/A nights draw from: by release, config and benchmark, session by session."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import make_url

from history.database import sqlite_path
from history.model import HELD_MARK, Block, EffectiveSetting, Lane, Run, Session
from history.store import Store

#: Blocks that a release needs to be drawn from, and those of one session to be drawn from alone.
FEWEST_BLOCKS, FEWEST_OF_A_SESSION = 3, 2


@dataclass(frozen=True)
class Source:
    """The real blocks of one release with one config in one lane."""

    run: Run
    session: Session
    blocks: tuple[tuple[Block, ...], ...]
    """By real session; those of sessions with too few together."""

    @property
    def settings(self) -> dict[str, EffectiveSetting]:
        """What its server said, in whichever block that is kept."""
        return next((block.settings for blocks in self.blocks for block in blocks if block.settings), {})

    @property
    def count(self) -> int:
        return sum(map(len, self.blocks))

    @property
    def name(self) -> str:
        return f"{self.run.release.name} {self.run.benchmark} {self.run.config}"


def sources_of(store: Store, lane: Lane, dbms: Collection[str]) -> list[Source]:
    """Releases of these DBMS with blocks enough in a history, those with most first."""
    sessions = {session.id: session for session in store.sessions()}
    by_place: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in store.runs(lane=lane):
        if HELD_MARK not in run.config and run.profile != "published" and run.release.dbms in dbms:
            by_place[run.release.name, run.config, run.benchmark, sessions[run.session_id].server].append(run)
    found = []
    for runs in by_place.values():
        by_session: dict[str, list[Block]] = defaultdict(list)
        for run in runs:
            for block in store.blocks(run.id):
                if block.status == "ok":
                    small = {"samples": {}, "calls": {}}  # large, and nobody reads them here
                    by_session[run.session_id].append(block.model_copy(update=small))
        if sum(map(len, by_session.values())) >= FEWEST_BLOCKS:
            found.append(Source(runs[-1], sessions[runs[-1].session_id], together(list(by_session.values()))))
    return sorted(found, key=lambda source: (-source.count, source.name))


def together(of_sessions: Sequence[Sequence[Block]]) -> tuple[tuple[Block, ...], ...]:
    """Blocks by session; those of sessions with too few in one group, and that with the first where it has too few."""
    groups = [tuple(blocks) for blocks in of_sessions if len(blocks) >= FEWEST_OF_A_SESSION]
    rest = tuple(block for blocks in of_sessions if len(blocks) < FEWEST_OF_A_SESSION for block in blocks)
    if groups and len(rest) < FEWEST_OF_A_SESSION:
        return (groups[0] + rest, *groups[1:])
    return (*groups, *([rest] if rest else []))


def copied(url: str, folder: str) -> str:
    """A copy of a SQLite history, so that not even its journal is touched."""
    path = sqlite_path(make_url(url))
    if path is None:
        raise SystemExit(f"{url}: only a history in a SQLite file can be copied")
    target = f"{folder}/history.db"
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
    return f"sqlite:///{target}"
