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
from alerts.lifecycle import SILENT, WAITING, next_state
from alerts.marker import event_of
from alerts.notes import comment as comment_of
from alerts.settings import AlertSettings
from alerts.standing import BISECT, HEARD, RERUN, Standing
from alerts.trackers import Comment, Issue, Tracker
from alerts.words import count
from history.model import Row

Record = Callable[[str, str, str, dict[str, Any]], None]
"""Key, event, actor, detail."""


class Heard(Row):
    """A command that was carried out or refused."""

    key: str
    number: int
    actor: str
    command: str
    answer: str
    event: str = ""


def hear(world: World, tracker: Tracker, settings: AlertSettings, record: Record, heard: list[Heard]) -> None:
    """Carry out new commands in the comments of our issues and add them to `heard`, which also holds those before a
    TrackerError when the tracker does not answer."""
    for key, issue in sorted(world.issues.items()):
        standing = world.standings.get(key)
        # What the history does not know yet is adopted first; its comments are read by the next sync.
        if standing is None or standing.state in WAITING or issue.comments == standing.heard:
            continue
        comments = tracker.comments(issue.number)
        told = {event_of(one.body) for one in comments if one.ours}
        read = len(comments)
        for one in comments:
            # With a person's token, what that person says is written by our account as well; ours has a marker.
            if (one.ours and event_of(one.body)) or one.id in standing.answered:
                continue
            done = _one(world, key, issue, standing, one, tracker, settings, record, told)
            if done:
                heard.append(done)
                read += f"answer:{one.id}" not in told
                standing = standing.model_copy(
                    update={"state": next_state(standing.state, done.event) or standing.state}
                )
        if read != standing.heard:
            record(key, HEARD, "pointdrop", {"comments": read})


def _one(
    world: World,
    key: str,
    issue: Issue,
    standing: Standing,
    comment: Comment,
    tracker: Tracker,
    settings: AlertSettings,
    record: Record,
    told: set[str],
) -> Heard | None:
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
            standing,
            tracker.permission(comment.author),
            newest=newest,
            summary=summary_of(standing, newest),
            measurable=key not in world.unmeasurable,
        )
    if event not in told:
        tracker.comment(issue.number, *comment_of(event, "answer", text=reply.text))
        tracker.react(issue.number, comment.id, reply.reaction)
    detail: dict[str, Any] = {"comment_id": comment.id}
    if isinstance(wanted, Command):
        detail |= {"reason": wanted.argument, "releases": wanted.releases, "from": _newest(world, key)}
    repeated = event in told and reply.event in (RERUN, BISECT)
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
    return Heard(key=key, number=issue.number, actor=comment.author, command=name, answer=reply.text, event=reply.event)


def _newest(world: World, key: str) -> str:
    for subject in world.subjects:
        if subject.key == key:
            releases = world.releases.get((subject.finding.dbms, subject.finding.line), ())
            return releases[-1] if releases else subject.finding.release
    return ""


def summary_of(standing: Standing, newest: str) -> str:
    """The state in words, for `/status`."""
    parts = [f"State: {standing.state.value}"]
    if standing.since:
        parts.append(f"since {standing.since:%Y-%m-%d}")
    if newest:
        parts.append(f"newest measured release {newest}")
    if standing.state in SILENT:
        parts.append("silent")
    if standing.missed_on:
        parts.append(f"not found by the detector on {count(len(standing.missed_on), 'day')}")
    return ", ".join(parts) + "."
