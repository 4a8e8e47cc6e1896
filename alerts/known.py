"""Changes to issues that exist: news, recovery, return, withdrawal, and what people did to them. Pure."""

from __future__ import annotations

from alerts.changes import (
    DIGEST,
    ENVIRONMENT,
    Action,
    Change,
    Step,
    World,
    carried,
    standing_in,
    what_is_told,
)
from alerts.lifecycle import OPEN, SILENT, State
from alerts.marker import ours, with_notes
from alerts.news import news
from alerts.notes import comment, recovered_comment
from alerts.recovery import Recovered
from alerts.settings import AlertSettings
from alerts.standing import EDITED, MISSED, SEEN, Standing
from alerts.subject import Subject
from alerts.trackers import Issue
from history.versions import version_key


def known_changes(world: World, subject: Subject, standing: Standing, settings: AlertSettings) -> list[Change]:
    """A finding whose issue was filed some time ago."""
    key, state = subject.key, standing.state
    if key in world.gone and state is not State.GONE and state is not State.DIGESTED:
        return [Change(action="gone", key=key, why="its issue was deleted or moved away", events=(Step(event="gone"),))]
    issue = world.issues.get(key)
    if issue is None or state in (State.GONE, State.DIGESTED):
        return []
    back = world.recoveries.get(key)
    if state in OPEN:
        if not issue.open and not began(world, standing, "recovered", "withdrawn"):
            return [closed_by_person(standing, issue)]
        if back and f"recovered:{back.release}" not in standing.kept_open:
            return [_recover(subject, standing, issue, back)]
        if subject.finding.tier == "unconfirmed" and "withdrawn:refuted" not in standing.kept_open:
            return [withdraw(standing, issue, "refuted", "a re-measurement did not show it.")]
        if not issue.open:
            return [closed_by_person(standing, issue)]
        return _current(world, subject, standing, issue)
    if issue.open and not began(world, standing, "returned"):
        return [_reopened_by_person(standing, issue)]
    if state is State.RECOVERED and back is None and subject.finding.tier in settings.filing.tiers:
        return [_return(subject, standing, issue, f"{standing.recovered_at} no longer gives it back.")]
    if state is State.WITHDRAWN and subject.finding.tier in settings.filing.tiers and back is None:
        return [_return(subject, standing, issue, "with the results of today the detector finds it again.")]
    return [_reopened_by_person(standing, issue)] if issue.open else []


def began(world: World, standing: Standing, *events: str) -> bool:
    """Whether we, and no person, closed or re-opened an issue: its comment is there and its event is not, since
    something stopped in between."""
    said = world.half_done.get(standing.key)
    return said in [_once(standing, event) for event in events]


def _once(standing: Standing, event: str) -> str:
    """A name for this occurrence of an event of this key: repeated attempts have the same."""
    return f"{event}:{standing.key}:{standing.counts.get(event, 0) + 1}"


def _recover(subject: Subject, standing: Standing, issue: Issue, back: Recovered) -> Change:
    return Change(
        action="recover",
        key=standing.key,
        number=issue.number,
        why=f"{back.release} gives it back",
        comment=recovered_comment(_once(standing, "recovered"), subject.finding, back),
        close="completed",
        events=(Step(event="recovered", detail={"release": back.release}),),
    )


def withdraw(standing: Standing, issue: Issue, release: str, reason: str) -> Change:
    return Change(
        action="withdraw",
        key=standing.key,
        number=issue.number,
        why=reason,
        comment=comment(_once(standing, "withdrawn"), "withdrawn", reason=reason),
        close="not_planned",
        events=(Step(event="withdrawn", detail={"release": release}),),
    )


def _return(subject: Subject, standing: Standing, issue: Issue, reason: str) -> Change:
    return Change(
        action="return",
        key=standing.key,
        number=issue.number,
        why=reason,
        reopen=True,
        comment=comment(_once(standing, "returned"), "returned", reason=reason),
        events=(Step(event="returned"),),
        carries=carried(subject),
    )


def _reopened_by_person(standing: Standing, issue: Issue) -> Change:
    return Change(
        action="record",
        key=standing.key,
        number=issue.number,
        why="a person re-opened it",
        events=(Step(event="reopened"),),
    )


def closed_by_person(standing: Standing, issue: Issue) -> Change:
    return Change(
        action="record",
        key=standing.key,
        number=issue.number,
        why="a person closed it, and it stays closed",
        events=(Step(event="closed", detail={"reason": issue.close_reason}),),
    )


def _current(world: World, subject: Subject, standing: Standing, issue: Issue) -> list[Change]:
    """An open issue: its text is kept current, in silence unless there is news."""
    draft = world.drafts[subject.key]
    fresh = what_is_told(subject, draft)
    steps: list[Step] = [Step(event=SEEN)] if standing.missed_on else []
    sentences = [] if standing.state in SILENT else news(standing.told, fresh)
    said: tuple[str, str] | None = None
    action: Action = "edit"
    if standing.state is State.SNOOZED and _slept_enough(world, subject, standing):
        wanted = int(standing.snoozed["releases"])
        newest = _releases(world, subject)[-1]
        said = comment(_once(standing, "woke"), "woke", releases=wanted, newest=newest)
        steps.append(Step(event="woke"))
        action = "wake"
    elif sentences:
        said = comment(_once(standing, "updated"), "updated", sentences=sentences)
        steps.append(Step(event="updated", detail={"told": fresh}))
        action = "update"
    # A title a person changed is theirs.
    own_title = issue.title == standing.told.get("title", issue.title)
    title = draft.title if own_title and draft.title != issue.title else None
    body = with_notes(draft.body, issue.body) if ours(issue.body) != draft.body.rstrip() else None
    if title and not sentences:
        steps.append(Step(event=EDITED, detail={"told": {**standing.told, "title": title}}))
    labels = draft.labels - issue.labels
    if not (steps or title or body or labels):
        return []
    return [
        Change(
            action=action if said or title or body or labels else "record",
            key=subject.key,
            number=issue.number,
            why="; ".join(sentences) or ("figures of the newest detection" if body or title else "seen again"),
            title=title,
            body=body,
            comment=said,
            labels=labels,
            events=tuple(steps),
            carries=carried(subject),
        )
    ]


def _releases(world: World, subject: Subject) -> tuple[str, ...]:
    return world.releases.get((subject.finding.dbms, subject.finding.line), ())


def _slept_enough(world: World, subject: Subject, standing: Standing) -> bool:
    """By version: the release it was snoozed at may be there no more, as `majors` has only the newest of each line."""
    dbms = subject.finding.dbms
    since = version_key(dbms, str(standing.snoozed.get("from", "")))
    more = [version for version in _releases(world, subject) if version_key(dbms, version) > since]
    return len(more) >= int(standing.snoozed.get("releases", 1))


def vanished_changes(world: World, settings: AlertSettings) -> list[Change]:
    """Open issues whose boundary the newest detection does not name."""
    found = {subject.key for subject in world.subjects}
    measured = {(dbms, line) for _, dbms, line in world.lines}
    today = world.now.date()
    changes = []
    for key, issue in sorted(world.issues.items()):
        standing = standing_in(world, key)
        place = tuple(key.split("/")[:2])
        if key in found or standing.state not in OPEN or key.startswith((DIGEST, ENVIRONMENT)):
            continue
        if not issue.open and not began(world, standing, "recovered", "withdrawn"):
            changes.append(closed_by_person(standing, issue))
        # A line this history does not measure is another history's business.
        elif place in measured and "withdrawn:missed" not in standing.kept_open:
            days = sorted({*standing.missed_on, today})
            if len(days) >= settings.filing.withdraw_after_days:
                reason = f"with the results of {days[0]} to {days[-1]} the detector no longer finds it."
                changes.append(withdraw(standing, issue, "missed", reason))
            elif today not in standing.missed_on:
                why = "the newest detection does not name it"
                changes.append(
                    Change(action="record", key=key, number=issue.number, why=why, events=(Step(event=MISSED),))
                )
    return changes
