"""All findings and issues with their state, for `pointdrop alerts list` and `show`. Reads, changes nothing."""

from __future__ import annotations

from datetime import datetime

from alerts.answering import MUTE
from alerts.errors import UnknownIssue
from alerts.issue_state import IssueState, issue_state_of, moment_after
from alerts.lifecycle import State, next_state
from alerts.observation import Observation
from alerts.subject import issue_key_of
from history.model import FindingEvent, Row
from history.store import Store


class IssueRow(Row):
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


def key_of(store: Store, key: str, tracker: str) -> str:
    """The key of the issue that tells a finding, where `key` is that of a finding, as `pointdrop detect` and the pages
    print it: of the findings of one change, the one that has an issue, else the one that leads it."""
    findings = store.findings()
    lead = next((finding.folded_under or finding.key for finding in findings if finding.key == key), "")
    of_change = [finding for finding in findings if lead and lead in (finding.key, finding.folded_under)]
    keys = [issue_key_of(finding) for finding in sorted(of_change, key=lambda finding: finding.key != lead)]
    filed = (name for name in keys if issue_state_of(name, store.events(name), tracker).state not in MUTE)
    return next(filed, keys[0] if keys else key)


def issue_list(observed: Observation) -> list[IssueRow]:
    """Findings first, the worst first; then issues whose boundary is no longer found."""
    world = observed.world
    lines = []
    for subject in world.subjects:
        issue_state = world.issue_states[subject.key]
        draft, issue = world.drafts.get(subject.key), world.issues.get(subject.key)
        back = world.recoveries.get(subject.key)
        carrier = world.issues.get(issue_state.where) if issue_state.state in (State.HELD, State.DIGESTED) else None
        note = f"in {issue_state.where}" if carrier else f"given back by {back.release}" if back else ""
        shown = issue or carrier
        lines.append(
            IssueRow(
                key=subject.key,
                state=issue_state.state.value,
                number=shown.number if shown else None,
                url=shown.url if shown else "",
                title=issue.title if issue else draft.title if draft else "",
                kind=subject.finding.kind,
                tier=subject.finding.tier,
                since=issue_state.since,
                note=note if draft else "cannot be written, see `pointdrop alerts sync`",
            )
        )
    listed = {line.key for line in lines}
    for key, issue in sorted(world.issues.items()):
        if key not in listed:
            issue_state = world.issue_states.get(key) or IssueState(key=key)
            lines.append(
                IssueRow(
                    key=key,
                    state=issue_state.state.value,
                    number=issue.number,
                    url=issue.url,
                    title=issue.title,
                    since=issue_state.since,
                    note="open" if issue.open else "closed",
                )
            )
    return lines


def acknowledge(store: Store, key: str, tracker: str, *, actor: str, reason: str, at: datetime) -> State:
    """Record that a person knows of `key`; its state now. UnknownIssue when there is nothing to acknowledge."""
    events = store.events(key)
    issue_state = issue_state_of(key, events, tracker)
    target = next_state(issue_state.state, "acknowledged")
    if not issue_state.events:
        raise UnknownIssue(f"nothing is known of {key}; `pointdrop alerts list` prints the keys.")
    if target is None:
        raise UnknownIssue(f"{key} is {issue_state.state.value}; there is nothing to acknowledge.")
    detail = {"tracker": tracker, "reason": reason}
    after = moment_after(events, at)
    store.append_event(FindingEvent(key=key, event="acknowledged", at=after, actor=actor, detail=detail))
    return target
