"""All findings and issues with their state, for `pointdrop alerts list` and `show`. Reads, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from alerts.errors import UnknownIssue
from alerts.lifecycle import State, next_state
from alerts.observe import HasFindings, Observed
from alerts.standing import Standing, moment_after, standing_of
from history.keys import issue_key
from history.model import Finding, FindingEvent, Row


class Line(Row):
    """One key: a row of the list."""

    key: str
    state: str
    number: int | None = None
    url: str = ""
    title: str = ""
    kind: str = ""
    tier: str = ""
    since: datetime | None = None
    note: str = ""


def key_of(findings: Iterable[Finding], key: str) -> str:
    """The key of the issue, where `key` is that of a finding, as `pointdrop detect` and the pages print it."""
    for one in findings:
        if one.key == key:
            return issue_key(one.dbms, one.line, one.release, one.kind)
    return key


def overview(observed: Observed) -> list[Line]:
    """Findings first, the worst first; then issues whose boundary is no longer found."""
    world = observed.world
    lines = []
    for subject in world.subjects:
        standing = world.standings[subject.key]
        draft, issue = world.drafts.get(subject.key), world.issues.get(subject.key)
        back = world.recoveries.get(subject.key)
        carrier = world.issues.get(standing.where) if standing.state in (State.HELD, State.DIGESTED) else None
        note = f"in {standing.where}" if carrier else f"given back by {back.release}" if back else ""
        shown = issue or carrier
        lines.append(
            Line(
                key=subject.key,
                state=standing.state.value,
                number=shown.number if shown else None,
                url=shown.url if shown else "",
                title=issue.title if issue else draft.title if draft else "",
                kind=subject.finding.kind,
                tier=subject.finding.tier,
                since=standing.since,
                note=note if draft else "cannot be written, see `pointdrop alerts sync`",
            )
        )
    known = {line.key for line in lines}
    for key, issue in sorted(world.issues.items()):
        if key not in known:
            standing = world.standings.get(key) or Standing(key=key)
            lines.append(
                Line(
                    key=key,
                    state=standing.state.value,
                    number=issue.number,
                    url=issue.url,
                    title=issue.title,
                    since=standing.since,
                    note="open" if issue.open else "closed",
                )
            )
    return lines


def acknowledge(store: HasFindings, key: str, tracker: str, *, actor: str, reason: str, at: datetime) -> State:
    """Record that a person knows of `key`; its state now. UnknownIssue when there is nothing to acknowledge."""
    events = store.events(key)
    standing = standing_of(key, events, tracker)
    target = next_state(standing.state, "acknowledged")
    if not standing.events:
        raise UnknownIssue(f"nothing is known of {key}; `pointdrop alerts list` prints the keys.")
    if target is None:
        raise UnknownIssue(f"{key} is {standing.state.value}; there is nothing to acknowledge.")
    detail = {"tracker": tracker, "reason": reason}
    after = moment_after(events, at)
    store.append_event(FindingEvent(key=key, event="acknowledged", at=after, actor=actor, detail=detail))
    return target
