"""Changes to issues that exist: updates, recovery, return, withdrawal, and what people did to them. Pure."""

from __future__ import annotations

from alerts.changes import (
    DIGEST,
    ENVIRONMENT,
    Action,
    Change,
    NewEvent,
    World,
    carried,
    issue_state_in,
)
from alerts.comment_texts import comment, recovered_comment
from alerts.issue_state import EDITED, MISSED, SEEN, IssueState
from alerts.issue_updates import issue_facts, updates
from alerts.lifecycle import OPEN, SILENT, State
from alerts.marker import ours, with_notes
from alerts.recovery import Recovered
from alerts.settings import AlertSettings
from alerts.subject import Subject
from alerts.trackers import Issue
from history.versions import version_key

#: Events with which we close an issue.
CLOSED_FOR = ("recovered", "withdrawn", "folded")


def existing_issue_changes(
    world: World, subject: Subject, issue_state: IssueState, settings: AlertSettings
) -> list[Change]:
    """A finding whose issue was filed some time ago."""
    key, state = subject.key, issue_state.state
    if key in world.gone and state is not State.GONE and state is not State.DIGESTED:
        return [
            Change(action="gone", key=key, why="its issue was deleted or moved away", events=(NewEvent(event="gone"),))
        ]
    issue = world.issues.get(key)
    if issue is None or state in (State.GONE, State.DIGESTED):
        return []
    back = world.recoveries.get(key)
    if state in OPEN:
        if not issue.open and not began(world, issue_state, *CLOSED_FOR):
            return [closed_by_person(issue_state, issue)]
        if back and f"recovered:{back.release}" not in issue_state.kept_open:
            return [_recover(subject, issue_state, issue, back)]
        if subject.finding.tier == "unconfirmed" and "withdrawn:refuted" not in issue_state.kept_open:
            return [withdraw(issue_state, issue, "refuted", "a re-measurement did not show it.")]
        if not issue.open:
            return [closed_by_person(issue_state, issue)]
        return _current(world, subject, issue_state, issue)
    if issue.open and not began(world, issue_state, "returned"):
        return [_reopened_by_person(issue_state, issue)]
    if state is State.RECOVERED and back is None and subject.finding.tier in settings.filing.tiers:
        return [_return(subject, issue_state, issue, f"{issue_state.recovered_at} no longer gives it back.")]
    if state is State.WITHDRAWN and subject.finding.tier in settings.filing.tiers and back is None:
        return [_return(subject, issue_state, issue, "with the results of today the detector finds it again.")]
    if state is State.FOLDED and subject.finding.tier in settings.filing.tiers and back is None:
        return [_return(subject, issue_state, issue, "it no longer belongs to the change that it was taken for.")]
    return [_reopened_by_person(issue_state, issue)] if issue.open else []


def began(world: World, issue_state: IssueState, *events: str) -> bool:
    """Whether we, and no person, closed or re-opened an issue: its comment is there and its event is not, since
    something stopped in between."""
    newest_event = world.half_done.get(issue_state.key)
    return newest_event in [_once(issue_state, event) for event in events]


def _once(issue_state: IssueState, event: str) -> str:
    """A name for this occurrence of an event of this key: repeated attempts have the same."""
    return f"{event}:{issue_state.key}:{issue_state.counts.get(event, 0) + 1}"


def _recover(subject: Subject, issue_state: IssueState, issue: Issue, back: Recovered) -> Change:
    return Change(
        action="recover",
        key=issue_state.key,
        number=issue.number,
        why=f"{back.release} gives it back",
        comment=recovered_comment(_once(issue_state, "recovered"), subject.finding, back),
        close="completed",
        events=(NewEvent(event="recovered", detail={"release": back.release}),),
    )


def withdraw(issue_state: IssueState, issue: Issue, release: str, reason: str) -> Change:
    return Change(
        action="withdraw",
        key=issue_state.key,
        number=issue.number,
        why=reason,
        comment=comment(_once(issue_state, "withdrawn"), "withdrawn", reason=reason),
        close="not_planned",
        events=(NewEvent(event="withdrawn", detail={"release": release}),),
    )


def _return(subject: Subject, issue_state: IssueState, issue: Issue, reason: str) -> Change:
    return Change(
        action="return",
        key=issue_state.key,
        number=issue.number,
        why=reason,
        reopen=True,
        comment=comment(_once(issue_state, "returned"), "returned", reason=reason),
        events=(NewEvent(event="returned"),),
        carries=carried(subject),
    )


def _reopened_by_person(issue_state: IssueState, issue: Issue) -> Change:
    return Change(
        action="record",
        key=issue_state.key,
        number=issue.number,
        why="a person re-opened it",
        events=(NewEvent(event="reopened"),),
    )


def closed_by_person(issue_state: IssueState, issue: Issue) -> Change:
    return Change(
        action="record",
        key=issue_state.key,
        number=issue.number,
        why="a person closed it, and it stays closed",
        events=(NewEvent(event="closed", detail={"reason": issue.close_reason}),),
    )


def _current(world: World, subject: Subject, issue_state: IssueState, issue: Issue) -> list[Change]:
    """An open issue: its text is kept current, in silence unless there is news."""
    draft = world.drafts[subject.key]
    fresh = issue_facts(subject, draft)
    steps: list[NewEvent] = [NewEvent(event=SEEN)] if issue_state.missed_on else []
    sentences = [] if issue_state.state in SILENT else updates(issue_state.told, fresh)
    comment_of_change: tuple[str, str] | None = None
    action: Action = "edit"
    if issue_state.state is State.SNOOZED and _slept_enough(world, subject, issue_state):
        wanted = int(issue_state.snoozed["releases"])
        newest = _releases(world, subject)[-1]
        comment_of_change = comment(_once(issue_state, "woke"), "woke", releases=wanted, newest=newest)
        steps.append(NewEvent(event="woke"))
        action = "wake"
    elif sentences:
        comment_of_change = comment(_once(issue_state, "updated"), "updated", sentences=sentences)
        steps.append(NewEvent(event="updated", detail={"told": fresh}))
        action = "update"
    # A title a person changed is theirs.
    own_title = issue.title == issue_state.told.get("title", issue.title)
    title = draft.title if own_title and draft.title != issue.title else None
    body = with_notes(draft.body, issue.body) if ours(issue.body) != draft.body.rstrip() else None
    if title and not sentences:
        steps.append(NewEvent(event=EDITED, detail={"told": {**issue_state.told, "title": title}}))
    labels = draft.labels - issue.labels
    if not (steps or title or body or labels):
        return []
    return [
        Change(
            action=action if comment_of_change or title or body or labels else "record",
            key=subject.key,
            number=issue.number,
            why="; ".join(sentences) or ("figures of the newest detection" if body or title else "seen again"),
            title=title,
            body=body,
            comment=comment_of_change,
            labels=labels,
            events=tuple(steps),
            carries=carried(subject),
        )
    ]


def _releases(world: World, subject: Subject) -> tuple[str, ...]:
    return world.releases.get((subject.finding.dbms, subject.finding.line), ())


def _slept_enough(world: World, subject: Subject, issue_state: IssueState) -> bool:
    """By version: the release it was snoozed at may be there no more, as `majors` has only the newest of each line."""
    dbms = subject.finding.dbms
    since = version_key(dbms, str(issue_state.snoozed.get("from", "")))
    more = [version for version in _releases(world, subject) if version_key(dbms, version) > since]
    return len(more) >= int(issue_state.snoozed.get("releases", 1))


def vanished_changes(world: World, settings: AlertSettings) -> list[Change]:
    """Open issues whose boundary the newest detection could name and does not, or no longer holds against the code."""
    detected = {subject.key for subject in world.subjects}
    measured = {(dbms, line) for _, dbms, line in world.lines}
    today = world.now.date()
    changes = []
    for key, issue in sorted(world.issues.items()):
        issue_state = issue_state_in(world, key)
        place = tuple(key.split("/")[:2])
        if key in detected or key in world.folded or issue_state.state not in OPEN:
            continue
        if key.startswith((DIGEST, ENVIRONMENT)):
            continue
        if not issue.open and not began(world, issue_state, *CLOSED_FOR):
            changes.append(closed_by_person(issue_state, issue))
        # A line this history does not measure is another history's business, and where a side of the boundary has no
        # blocks that count nothing was looked at.
        elif place in measured and key not in world.unmeasured and "withdrawn:missed" not in issue_state.kept_open:
            days = sorted({*issue_state.missed_on, today})
            if len(days) >= settings.filing.withdraw_after_days:
                reason = f"with the results of {days[0]} to {days[-1]} the detector no longer finds it."
                if key in world.builds:
                    reason = "two builders made its two sides, and how much of it is the code's is not known."
                changes.append(withdraw(issue_state, issue, "missed", reason))
            elif today not in issue_state.missed_on:
                why = "the newest detection does not name it"
                changes.append(
                    Change(action="record", key=key, number=issue.number, why=why, events=(NewEvent(event=MISSED),))
                )
    return changes


def folded_changes(world: World) -> list[Change]:
    """Issues of lines whose change turned out to be that of another issue: closed, and said why. Where a person opens
    one again it stays open."""
    changes = []
    for key, into in sorted(world.folded.items()):
        issue, issue_state, leading = world.issues.get(key), issue_state_in(world, key), world.issues.get(into)
        if issue is None:
            continue
        if issue_state.state is State.FOLDED and issue.open and not began(world, issue_state, "returned"):
            changes.append(_reopened_by_person(issue_state, issue))
        if issue_state.state not in OPEN:
            continue
        if not issue.open and not began(world, issue_state, *CLOSED_FOR):
            changes.append(closed_by_person(issue_state, issue))
        elif leading is not None and "folded:" not in issue_state.kept_open:
            changes.append(
                Change(
                    action="fold",
                    key=key,
                    number=issue.number,
                    why=f"the same change as issue {leading.number}",
                    comment=comment(_once(issue_state, "folded"), "folded", of=leading.number),
                    close="duplicate",
                    events=(NewEvent(event="folded", detail={"into": into}),),
                )
            )
    return changes
