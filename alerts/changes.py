"""The values a plan is made of and made from: the world as it is, and the changes to make. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pydantic import Field

from alerts.lifecycle import WAITING, State
from alerts.news import told, worse
from alerts.recovery import Recovered
from alerts.settings import AlertSettings
from alerts.standing import Standing
from alerts.subject import Subject
from alerts.trackers import CloseReason, Draft, Issue
from alerts.words import headline
from history.model import Row

Action = Literal[
    "file", "adopt", "edit", "update", "recover", "return", "withdraw", "wake", "close", "hold", "digest", "gone",
    "duplicate", "record", "answer",
]  # fmt: skip

#: Keys that are no boundary.
DIGEST, ENVIRONMENT = "digest/", "environment/"


class Step(Row):
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
    events: tuple[Step, ...] = ()
    carries: tuple[str, ...] = ()
    """Finding keys whose link points to this issue."""
    sub: tuple[tuple[str, tuple[Step, ...]], ...] = ()
    """Events of other keys that this issue carries: rows of a digest or an environment issue."""


class World(NamedTuple):
    """Everything a plan depends on."""

    now: datetime
    subjects: tuple[Subject, ...]
    drafts: Mapping[str, Draft]
    """By subject key; a subject without one could not be rendered and is left alone."""
    standings: Mapping[str, Standing]
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


def standing_in(world: World, key: str) -> Standing:
    return world.standings.get(key) or Standing(key=key)


def outgrown(world: World, subject: Subject) -> bool:
    """Whether a row of a digest became clearly worse than it was when it was folded in."""
    standing, draft = standing_in(world, subject.key), world.drafts.get(subject.key)
    if draft is None or standing.state is not State.DIGESTED:
        return False
    return worse(standing.told, what_is_told(subject, draft))


def candidate(world: World, subject: Subject, settings: AlertSettings) -> bool:
    """Sure enough to be filed, not filed, and not already given back by a later release."""
    return (
        subject.finding.tier in settings.filing.tiers
        and subject.key in world.drafts
        and subject.key not in world.issues
        and (standing_in(world, subject.key).state in WAITING or outgrown(world, subject))
        and subject.key not in world.recoveries
    )


def what_is_told(subject: Subject, draft: Draft) -> dict[str, Any]:
    lead = headline(subject.finding)
    return told(subject.finding, lead, draft.title) if lead else {"title": draft.title}


def to_confirmed(standing: Standing) -> tuple[Step, ...]:
    """The events that lead from a waiting state to `confirmed`."""
    if standing.state in (State.CONFIRMED, State.DIGESTED):
        return ()
    if standing.state is State.HELD:
        return (Step(event="released"),)
    return (*(() if standing.events else (Step(event="detected"),)), Step(event="confirmed"))


def carried(subject: Subject) -> tuple[str, ...]:
    keys = (subject.key, subject.finding.key, *(other.key for other in (*subject.beside, *subject.same)))
    return tuple(dict.fromkeys(keys))
