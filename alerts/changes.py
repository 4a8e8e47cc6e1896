"""The values a plan is made of and made from: the world as it is, and the changes to make. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pydantic import Field

from alerts.issue_state import IssueState
from alerts.issue_updates import issue_facts, worsened
from alerts.lifecycle import WAITING, State
from alerts.recovery import Recovered
from alerts.settings import AlertSettings
from alerts.subject import Subject
from alerts.trackers import CloseReason, Draft, Issue
from history.model import Row

Action = Literal[
    "file", "adopt", "edit", "update", "recover", "return", "withdraw", "wake", "close", "hold", "digest", "gone",
    "duplicate", "fold", "record", "answer",
]  # fmt: skip

#: Keys that are no boundary.
DIGEST, ENVIRONMENT = "digest/", "environment/"


class NewEvent(Row):
    """An event to record for a key."""

    event: str
    detail: dict[str, Any] = Field(default_factory=dict)


class Change(Row):
    """One issue's changes, carried out in the order of the fields, the events last."""

    action: Action
    key: str
    why: str
    number: int | None = None
    """None: the issue is to be created from `draft`."""
    draft: Draft | None = None
    title: str | None = None
    body: str | None = None
    comment: tuple[str, str] | None = None
    """Event and body."""
    reopen: bool = False
    close: CloseReason | None = None
    labels: frozenset[str] = frozenset()
    events: tuple[NewEvent, ...] = ()
    carries: tuple[str, ...] = ()
    """Finding keys whose link points to this issue."""
    sub: tuple[tuple[str, tuple[NewEvent, ...]], ...] = ()
    """Events of other keys that this issue carries: rows of a digest or an environment issue."""


class World(NamedTuple):
    """Everything a plan depends on."""

    now: datetime
    subjects: tuple[Subject, ...]
    drafts: Mapping[str, Draft]
    """By subject key; a subject without one could not be rendered and is left alone."""
    issue_states: Mapping[str, IssueState]
    """Of every subject and every issue."""
    issues: Mapping[str, Issue]
    """Our issues by their first key, duplicates already taken out."""
    gone: frozenset[str]
    """Keys whose linked issue was deleted or moved away."""
    recoveries: Mapping[str, Recovered]
    lines: frozenset[tuple[str, str, str]]
    """(server, dbms, line) that are measured."""
    releases: Mapping[tuple[str, str], tuple[str, ...]]
    """Measured releases by (dbms, line), in order."""
    renamed: Mapping[str, str]
    """Keys of findings that an older key's issue answers for."""
    half_done: Mapping[str, str] = MappingProxyType({})
    """Of issues that are open or closed against the history: what our newest comment about that said (its event)."""
    unmeasurable: frozenset[str] = frozenset()
    """Keys of subjects that nothing configured here can measure again."""
    unmeasured: frozenset[str] = frozenset()
    """Keys of open issues that no finding has and whose boundary no series shows: one of its two releases has no blocks
    that count, as after a change of the method of measuring."""
    builds: frozenset[str] = frozenset()
    """Keys of findings that are shown and not filed, since two builders made the two sides."""
    folded: Mapping[str, str] = MappingProxyType({})
    """By key of an issue: that of the issue which tells of the same change, known to be one since both were filed."""


def issue_state_in(world: World, key: str) -> IssueState:
    return world.issue_states.get(key) or IssueState(key=key)


def outgrown(world: World, subject: Subject) -> bool:
    """Whether a row of a digest became clearly worse than it was when it was folded in."""
    issue_state, draft = issue_state_in(world, subject.key), world.drafts.get(subject.key)
    if draft is None or issue_state.state is not State.DIGESTED:
        return False
    return worsened(issue_state.told, issue_facts(subject, draft))


def candidate(world: World, subject: Subject, settings: AlertSettings) -> bool:
    """Sure enough to be filed, not filed, and not already given back by a later release."""
    return (
        subject.finding.tier in settings.filing.tiers
        and subject.key in world.drafts
        and subject.key not in world.issues
        and (issue_state_in(world, subject.key).state in WAITING or outgrown(world, subject))
        and subject.key not in world.recoveries
    )


def to_confirmed(issue_state: IssueState) -> tuple[NewEvent, ...]:
    """The events that lead from a waiting state to `confirmed`."""
    if issue_state.state in (State.CONFIRMED, State.DIGESTED):
        return ()
    if issue_state.state is State.HELD:
        return (NewEvent(event="released"),)
    return (*(() if issue_state.events else (NewEvent(event="detected"),)), NewEvent(event="confirmed"))


def carried(subject: Subject) -> tuple[str, ...]:
    others = (*subject.beside, *subject.same, *subject.members)
    keys = (subject.key, subject.finding.key, *(other.key for other in others))
    return tuple(dict.fromkeys(keys))
