"""Reads comments, carries out their commands and answers: a reaction and one comment each.

Only issues with another number of comments than were read last time are looked at. A command is answered once: its
answer carries the comment's id as its event, and so does the event in the history. With a new history, old answers are
found in the issue: what a command decided is recorded again, what it asked to be done is not done again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alerts.changes import World
from alerts.commands import Answer, Command, Misunderstood, answer, parse
from alerts.comment_texts import comment as comment_of
from alerts.issue_state import BISECT, HEARD, RERUN, IssueState
from alerts.lifecycle import SILENT, WAITING, next_state
from alerts.marker import event_of
from alerts.settings import AlertSettings
from alerts.trackers import Comment, Issue, Tracker
from history.model import Row
from presentation.number_format import count

Record = Callable[[str, str, str, dict[str, Any]], None]
"""Key, event, actor, detail."""


class CommandResult(Row):
    """A command that was carried out or refused."""

    key: str
    number: int
    actor: str
    command: str
    answer: str
    event: str = ""


def read_comments(
    world: World, tracker: Tracker, settings: AlertSettings, record: Record, heard: list[CommandResult]
) -> None:
    """Carry out new commands in the comments of our issues and add them to `heard`, which also holds those before a
    TrackerError when the tracker does not answer."""
    for key, issue in sorted(world.issues.items()):
        issue_state = world.issue_states.get(key)
        # What the history does not know yet is adopted first; its comments are read by the next sync.
        if issue_state is None or issue_state.state in WAITING or issue.comments == issue_state.heard:
            continue
        comments = tracker.comments(issue.number)
        answered_events = {event_of(comment.body) for comment in comments if comment.ours}
        read = len(comments)
        for comment in comments:
            # With a person's token, what that person says is written by our account as well; ours has a marker.
            if (comment.ours and event_of(comment.body)) or comment.id in issue_state.answered:
                continue
            result = _one(world, key, issue, issue_state, comment, tracker, settings, record, answered_events)
            if result:
                heard.append(result)
                read += f"answer:{comment.id}" not in answered_events
                issue_state = issue_state.model_copy(
                    update={"state": next_state(issue_state.state, result.event) or issue_state.state}
                )
        if read != issue_state.heard:
            record(key, HEARD, "pointdrop", {"comments": read})


def _one(
    world: World,
    key: str,
    issue: Issue,
    issue_state: IssueState,
    comment: Comment,
    tracker: Tracker,
    settings: AlertSettings,
    record: Record,
    answered_events: set[str],
) -> CommandResult | None:
    wanted = parse(comment.body)
    if wanted is None:
        return None
    event = f"answer:{comment.id}"
    if isinstance(wanted, Misunderstood):
        reply = Answer("confused", f"{wanted.text}: {wanted.problem}.")
    else:
        newest = _newest(world, key)
        reply = answer(
            wanted,
            issue_state,
            tracker.permission(comment.author),
            newest=newest,
            summary=summary_of(issue_state, newest),
            measurable=key not in world.unmeasurable,
        )
    if event not in answered_events:
        tracker.comment(issue.number, *comment_of(event, "answer", text=reply.text))
        tracker.react(issue.number, comment.id, reply.reaction)
    detail: dict[str, Any] = {"comment_id": comment.id}
    if isinstance(wanted, Command):
        detail |= {"reason": wanted.argument, "releases": wanted.releases, "from": _newest(world, key)}
    repeated = event in answered_events and reply.event in (RERUN, BISECT)
    if reply.closes and reply.event:
        tracker.close(issue.number, "not_planned")
        tracker.add_labels(issue.number, frozenset({settings.labels.not_a_bug}))
    # What is to be measured is the boundary as the detector names it now.
    now = next((new for new, old in world.renamed.items() if old == key), key)
    if reply.event in (RERUN, BISECT) and now != key and not repeated:
        record(now, reply.event, comment.author, {"from": detail["from"]})
        repeated = True
    record(key, "answered" if repeated or not reply.event else reply.event, comment.author, detail)
    name = wanted.name if isinstance(wanted, Command) else wanted.text
    return CommandResult(
        key=key, number=issue.number, actor=comment.author, command=name, answer=reply.text, event=reply.event
    )


def _newest(world: World, key: str) -> str:
    for subject in world.subjects:
        if subject.key == key:
            releases = world.releases.get((subject.finding.dbms, subject.finding.line), ())
            return releases[-1] if releases else subject.finding.release
    return ""


def summary_of(issue_state: IssueState, newest: str) -> str:
    """The state in words, for `/status`."""
    parts = [f"State: {issue_state.state.value}"]
    if issue_state.since:
        parts.append(f"since {issue_state.since:%Y-%m-%d}")
    if newest:
        parts.append(f"newest measured release {newest}")
    if issue_state.state in SILENT:
        parts.append("silent")
    if issue_state.missed_on:
        parts.append(f"not found by the detector on {count(len(issue_state.missed_on), 'day')}")
    return ", ".join(parts) + "."
