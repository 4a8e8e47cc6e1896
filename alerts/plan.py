"""What has to happen in the tracker and in the history, as values. Pure: the same world gives the same plan.

`plan_changes(world, settings)` looks at what the detector found, what the history remembers of each key and what the
tracker shows, and answers with changes that `alerts.sync` carries out one after the other. Every change is safe to
repeat, since a machine can stop after any of its steps: issues carry their key, comments their event, and events are
written last.
"""

from __future__ import annotations

from collections.abc import Mapping

from alerts.changes import (
    DIGEST,
    ENVIRONMENT,
    Action,
    Change,
    NewEvent,
    World,
    candidate,
    carried,
    issue_state_in,
    to_confirmed,
)
from alerts.collective_issues import Listed, digest_draft, environment_draft
from alerts.comment_texts import comment
from alerts.common_mode import held_subjects
from alerts.existing_issues import (
    began,
    closed_by_person,
    existing_issue_changes,
    folded_changes,
    vanished_changes,
    withdraw,
)
from alerts.issue_state import ALIAS, RENAMED, TOLD, IssueState
from alerts.issue_updates import issue_facts
from alerts.lifecycle import OPEN, WAITING, State
from alerts.marker import ours, with_notes
from alerts.settings import AlertSettings
from alerts.subject import Subject
from alerts.trackers import Draft
from history.model import Tier
from presentation.sentences import TIER_WORDS


def plan_changes(world: World, settings: AlertSettings) -> list[Change]:
    """Changes in the order in which they should happen: what is open first, then new issues, the worst first."""
    waiting = [subject for subject in world.subjects if issue_state_in(world, subject.key).state in WAITING]
    held = held_subjects(
        [subject for subject in waiting if candidate(world, subject, settings)], world, settings.filing
    )
    changes: list[Change] = [_rename(world, new, old) for new, old in sorted(world.renamed.items())]
    changes = [change for change in changes if change.events or change.sub]
    new: list[Subject] = []
    for subject in world.subjects:
        issue_state = issue_state_in(world, subject.key)
        if subject.key not in world.drafts:
            continue
        if issue_state.state in {*WAITING, State.DIGESTED} and subject.key in world.issues:
            changes += _adopt(world, subject, issue_state)
        elif issue_state.state in WAITING:
            if subject.key in held:
                continue
            if candidate(world, subject, settings):
                new.append(subject)
            else:
                changes += _not_yet(subject, issue_state, settings)
        elif issue_state.state is State.DIGESTED:
            new += [subject] if candidate(world, subject, settings) else []
        else:
            changes += existing_issue_changes(world, subject, issue_state, settings)
    changes += _results(world)
    changes += vanished_changes(world, settings)
    changes += folded_changes(world)
    changes += _environment(world, held, settings)
    return changes + _file(world, new, settings)


def _results(world: World) -> list[Change]:
    """What came of `/rerun` and `/bisect`, a comment each."""
    return [
        Change(
            action="answer",
            key=key,
            number=issue.number,
            why="what was asked for has been measured",
            # Two keys that share an issue each count their own results.
            comment=comment(
                result.event if key in world.issues else f"{result.event}:{key}",
                "result",
                text=result.text,
                command=result.command,
            ),
            events=(NewEvent(event=TOLD, detail={"of": result.event}),),
        )
        for key, issue in (
            *sorted(world.issues.items()),
            *((new, world.issues[old]) for new, old in sorted(world.renamed.items())),
        )
        for result in issue_state_in(world, key).results
    ]


def not_filed_yet(tier: Tier) -> str:
    """Why a finding of a tier that is not filed has no issue."""
    return f"the finding is {TIER_WORDS[tier]}"


def _not_yet(subject: Subject, issue_state: IssueState, settings: AlertSettings) -> list[Change]:
    """A finding that is not filed: remembered once, and again when its tier changes."""
    sure = subject.finding.tier in settings.filing.tiers
    steps: tuple[NewEvent, ...] = ()
    why = "a later release has already given it back" if sure else not_filed_yet(subject.finding.tier)
    if sure and issue_state.state is not State.CONFIRMED:
        steps = to_confirmed(issue_state)
    elif not sure and issue_state.state is not State.NEW and subject.finding.tier == "unconfirmed":
        steps = (NewEvent(event="refuted"),)
    elif not issue_state.events:
        steps = (NewEvent(event="detected", detail={"tier": subject.finding.tier}),)
    return [Change(action="record", key=subject.key, why=why, events=steps)] if steps else []


def _adopt(world: World, subject: Subject, issue_state: IssueState) -> list[Change]:
    """The tracker has the issue and the history does not know: something stopped in between, or the history is new."""
    issue, draft = world.issues[subject.key], world.drafts[subject.key]
    steps = [
        *to_confirmed(issue_state),
        NewEvent(event="filed", detail={"adopted": True, "told": issue_facts(subject, draft)}),
    ]
    if not issue.open:
        steps.append(NewEvent(event="closed", detail={"adopted": True}))
    return [
        Change(
            action="adopt",
            key=subject.key,
            number=issue.number,
            why="the tracker has an issue of this key that the history does not know",
            events=tuple(steps),
            carries=carried(subject),
        )
    ]


def _rename(world: World, new: str, old: str) -> Change:
    """Remember, under both keys, that the older issue answers for the newer key."""
    recorded = issue_state_in(world, new).alias_of == old and new in issue_state_in(world, old).also
    return Change(
        action="record",
        key=old,
        why=f"{new} is the same changepoint, its boundary moved",
        number=world.issues[old].number,
        events=() if recorded else (NewEvent(event=RENAMED, detail={"to": new}),),
        sub=() if recorded else ((new, (NewEvent(event=ALIAS, detail={"of": old}),)),),
        carries=(new,),
    )


def _environment(world: World, held: Mapping[str, str], settings: AlertSettings) -> list[Change]:
    """One issue a server whose lines all moved, and the end of it when they no longer do."""
    changes = []
    by_issue: dict[str, list[Subject]] = {}
    for subject in world.subjects:
        if subject.key in held:
            by_issue.setdefault(held[subject.key], []).append(subject)
    for key, members in sorted(by_issue.items()):
        server = key.split("/")[1]
        rows = [Listed(subject.key, world.drafts[subject.key].title) for subject in members]
        moved = len({(subject.finding.dbms, subject.finding.line) for subject in members})
        lines = len({line for line in world.lines if line[0] == server and line[2] != "majors"})
        draft = environment_draft(key, server, rows, moved=moved, lines=lines, settings=settings)
        sub = tuple(
            (subject.key, (*to_confirmed(issue_state), NewEvent(event="held", detail={"where": key})))
            for subject in members
            if (issue_state := issue_state_in(world, subject.key)).state is not State.HELD
        )
        carries = tuple(dict.fromkeys(name for subject in members for name in carried(subject)))
        changes += _collective(
            "hold", world, draft, sub, carries, why=f"{moved} of {lines} lines moved at once on {server}"
        )
    for key in sorted(world.gone):
        if key.startswith((DIGEST, ENVIRONMENT)) and issue_state_in(world, key).state in OPEN:
            why = "its issue was deleted or moved away"
            changes.append(Change(action="gone", key=key, why=why, events=(NewEvent(event="gone"),)))
    for key, issue in sorted(world.issues.items()):
        issue_state = issue_state_in(world, key)
        if key.startswith(ENVIRONMENT) and key not in by_issue and issue_state.state in OPEN:
            if issue.open or began(world, issue_state, "withdrawn"):
                reason = (
                    "the newest detection no longer shows all lines moving at once; what is left is filed by itself."
                )
                changes.append(withdraw(issue_state, issue, "passed", reason))
            else:
                changes.append(closed_by_person(issue_state, issue))
    return changes


def _collective(
    action: Action,
    world: World,
    draft: Draft,
    sub: tuple[tuple[str, tuple[NewEvent, ...]], ...],
    carries: tuple[str, ...],
    *,
    why: str,
) -> list[Change]:
    """An issue that carries several findings: created, or edited when its rows changed."""
    issue, issue_state = world.issues.get(draft.key), issue_state_in(world, draft.key)
    filed = (*to_confirmed(issue_state), NewEvent(event="filed", detail={"told": {"title": draft.title}}))
    if issue is None and issue_state.state in WAITING:
        return [
            Change(
                action=action, key=draft.key, why=why, draft=draft, events=filed, carries=(draft.key, *carries), sub=sub
            )
        ]
    if issue is None:
        return [Change(action="record", key=draft.key, why=why, sub=sub)] if sub else []
    fresh = ours(issue.body) != draft.body.rstrip() and issue.open
    steps = filed if issue_state.state in WAITING else ()
    if not (fresh or sub or steps):
        return []
    return [
        Change(
            action=action,
            key=draft.key,
            number=issue.number,
            why=why,
            title=draft.title if fresh else None,
            body=with_notes(draft.body, issue.body) if fresh else None,
            events=steps,
            carries=(draft.key, *carries),
            sub=sub,
        )
    ]


def _file(world: World, new: list[Subject], settings: AlertSettings) -> list[Change]:
    """New issues up to what is left of the day's cap, then one digest."""
    today = world.now.date()
    own = [s for key, s in world.issue_states.items() if not key.startswith((DIGEST, ENVIRONMENT))]
    filed = sum(issue_state.filed_on == today for issue_state in own)
    room = max(0, settings.filing.daily_cap - filed)
    changes = [
        Change(
            action="file",
            key=subject.key,
            why="confirmed" if subject.finding.kind == "regression" else f"confirmed {subject.finding.kind}",
            draft=world.drafts[subject.key],
            events=(
                *to_confirmed(issue_state_in(world, subject.key)),
                NewEvent(event="filed", detail={"told": issue_facts(subject, world.drafts[subject.key])}),
            ),
            carries=carried(subject),
        )
        for subject in new[:room]
    ]
    # What is in a digest already and found no room today waits for another day.
    over = [subject for subject in new[room:] if issue_state_in(world, subject.key).state is not State.DIGESTED]
    return changes + _digest(world, over, settings)


def _shut(world: World, key: str) -> bool:
    """Whether a person closed or deleted an issue that carries others: no row is added where nobody looks any more."""
    issue = world.issues.get(key)
    return not issue.open if issue else issue_state_in(world, key).state not in WAITING


def _digest(world: World, over: list[Subject], settings: AlertSettings) -> list[Change]:
    key = f"{DIGEST}{world.now.date()}"
    before = [
        s
        for s in world.subjects
        if issue_state_in(world, s.key).state is State.DIGESTED and issue_state_in(world, s.key).where == key
    ]
    if not over or _shut(world, key):
        return []
    members = sorted([*before, *over], key=lambda s: list(world.subjects).index(s))
    rows = [Listed(s.key, world.drafts[s.key].title) for s in members if s.key in world.drafts]
    sub = tuple(
        (
            s.key,
            (
                *to_confirmed(issue_state_in(world, s.key)),
                NewEvent(event="digested", detail={"where": key, "told": issue_facts(s, world.drafts[s.key])}),
            ),
        )
        for s in over
    )
    carries = tuple(dict.fromkeys(name for s in over for name in carried(s)))
    draft = digest_draft(key, str(world.now.date()), rows, settings)
    return _collective("digest", world, draft, sub, carries, why=f"over the daily cap of {settings.filing.daily_cap}")
