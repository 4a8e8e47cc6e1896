"""When every line of a server gets slower at its newest release at once, the machine is asked first. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from alerts.changes import ENVIRONMENT, World, issue_state_in
from alerts.lifecycle import OPEN, State
from alerts.settings import Filing
from alerts.subject import Subject
from history.model import MAJORS, Finding


def held_subjects(candidates: Sequence[Subject], world: World, filing: Filing) -> dict[str, str]:
    """Candidates to hold back, each with the key of the environment issue that carries it.

    A server is suspect when at least `common_mode_lines` of its lines, and `common_mode_share` of them, have a
    regression at the newest release they have. Only findings seen on no other server are held. A person's
    `/not-a-bug` on the environment issue says that the machine is fine: then nothing of it is held any more.
    """
    held: dict[str, str] = {}
    for server in sorted({line[0] for line in world.lines}):
        lines = {(dbms, line) for where, dbms, line in world.lines if where == server and line != MAJORS}
        moved = [subject for subject in candidates if _at_the_edge(subject, server, world)]
        shaken = {line for subject in moved for line in _lines_of(subject.finding)} & lines
        if len(shaken) < filing.common_mode_lines or len(shaken) < filing.common_mode_share * len(lines):
            continue
        key = _issue_key(server, moved, world)
        if key:
            held |= {subject.key: key for subject in moved}
    return held


def _lines_of(finding: Finding) -> set[tuple[str, str]]:
    """The lines that moved. Where functions show what changed it is one change, however many lines it came to; that
    several lines moved alike in time alone is what a machine does as well."""
    others = [] if finding.functions else [row.line for row in finding.lines]
    return {(finding.dbms, line) for line in (finding.line, *others)}


def _at_the_edge(subject: Subject, server: str, world: World) -> bool:
    finding = subject.finding
    releases = world.releases.get((finding.dbms, finding.line), ())
    return (
        finding.kind == "regression"
        and bool(releases)
        and releases[-1] == finding.release
        and {move.key.server for move in finding.moves} == {server}
    )


def _issue_key(server: str, moved: Sequence[Subject], world: World) -> str:
    """The environment issue these already belong to, else a new one of today; empty when a person refused it."""
    for subject in moved:
        where = issue_state_in(world, subject.key).where
        if where.startswith(f"{ENVIRONMENT}{server}/"):
            state = issue_state_in(world, where).state
            if state is State.NOT_A_BUG:
                return ""
            # A person's close accepts it as the machine's doing: what was held stays held there.
            if state in OPEN or state in (State.CLOSED, State.NEW, State.GONE):
                return where
    return f"{ENVIRONMENT}{server}/{world.now.date()}"
