"""Brings a tracker in line with the findings of the newest detection: the one driver of the room.

`sync(store, tracker, settings)` reads findings, events and links from the history and issues from the tracker, makes
a plan (`alerts.plan`, pure) and carries it out. It may be stopped anywhere and run again: whatever was done is seen,
whatever was not is done. `preview` gives the same plan and touches nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field

from alerts.changes import Change, carried
from alerts.comments import CommandResult, read_comments
from alerts.errors import IssueGone, TrackerUnavailable
from alerts.issue_state import DAY, moment_after
from alerts.marker import with_notes
from alerts.observation import Observation, duplicates_of, observe
from alerts.plan import plan_changes
from alerts.settings import AlertSettings
from alerts.trackers import Tracker
from alerts.webhooks import notify
from history.model import FindingEvent, IssueLink, Row
from history.store import Store

#: After so many failures in a row the tracker is taken to be down; the next sync does the rest.
FAILURES_IN_A_ROW = 3


class Done(Row):
    """A change that was carried out, or in a preview would be."""

    action: str
    key: str
    why: str
    number: int | None = None
    url: str = ""
    title: str = ""


class SyncReport(Row):
    """What a sync did; `complete` is false when something is left for the next one or for a person."""

    tracker: str
    dry_run: bool = False
    done: tuple[Done, ...] = ()
    heard: tuple[CommandResult, ...] = ()
    """Commands of people that were carried out or refused."""
    refused: tuple[str, ...] = ()
    """Findings that lack a value their issue must show: message each."""
    failed: tuple[str, ...] = ()
    """What the tracker did not do: message each."""
    warnings: tuple[str, ...] = ()
    open: int = 0
    """Our open issues after the sync."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Changes by action."""

    @property
    def complete(self) -> bool:
        return not (self.refused or self.failed)


def preview(
    store: Store,
    tracker: Tracker,
    settings: AlertSettings,
    now: datetime | None = None,
) -> list[Change]:
    """The changes a sync would make; nothing is written anywhere."""
    observed = observe(store, tracker, settings, now or datetime.now(UTC))
    return [*observed.duplicates, *plan_changes(observed.world, settings)]


def sync(
    store: Store,
    tracker: Tracker,
    settings: AlertSettings,
    *,
    now: datetime | None = None,
    environment: Mapping[str, str] | None = None,
) -> SyncReport:
    """File, edit, comment, close and re-open until tracker and findings agree; then tell the webhooks.

    Failures of single changes are reported, not raised; TrackerRefused (no permission, no such repository) is raised,
    since nothing would work. `environment` holds the addresses and keys of webhooks, by default this process's.
    """
    now = now or datetime.now(UTC)
    log = _Log(store, tracker, now)
    observed = observe(store, tracker, settings, now)
    heard, failed = _listen(observed, tracker, settings, log)
    if heard:
        observed = observe(store, tracker, settings, now)
    changes = [*observed.duplicates, *plan_changes(observed.world, settings)]
    if any(change.number is None and change.draft for change in changes):
        # Labels can be taken off an issue; before anything is created, it is looked for by its author as well.
        observed = observe(store, tracker, settings, now, more=tracker.look_again())
        changes = [*observed.duplicates, *plan_changes(observed.world, settings)]
    done, problems = _carry_out_all(changes, store, tracker, log)
    _relink(observed, store, tracker)
    urls = {change.key: change.url for change in done if change.url}
    where = os.environ if environment is None else environment
    silent = notify(settings.webhooks, observed.world, urls, store.events, log.record, where, log.now)
    return _report(tracker.name, observed, done, [*failed, *problems], heard, silent)


def _listen(
    observed: Observation, tracker: Tracker, settings: AlertSettings, log: _Log
) -> tuple[list[CommandResult], list[str]]:
    """Commands in comments come before the plan, which then knows of them."""
    heard: list[CommandResult] = []
    try:
        read_comments(observed.world, tracker, settings, log.record, heard)
    except (TrackerUnavailable, IssueGone) as error:
        return heard, [f"comments were not read: {error}"]
    return heard, []


def _carry_out_all(
    changes: Iterable[Change], store: Store, tracker: Tracker, log: _Log
) -> tuple[list[Done], list[str]]:
    done: list[Done] = []
    failed: list[str] = []
    in_a_row = 0
    for change in changes:
        try:
            done.append(carry_out(change, store, tracker, log))
            in_a_row = 0
        except IssueGone as error:
            failed.append(f"{change.action} {change.key}: {error}")
        except TrackerUnavailable as error:
            failed.append(f"{change.action} {change.key}: {error}")
            in_a_row += 1
            if in_a_row >= FAILURES_IN_A_ROW:
                return done, [*failed, f"{tracker.name} does not answer; the next sync does the rest."]
    if any(change.action in ("file", "hold", "digest") for change in done):
        try:
            done += close_duplicates(store, tracker, log)
        except (TrackerUnavailable, IssueGone) as error:
            failed.append(str(error))
    return done, failed


def _report(
    name: str,
    observed: Observation,
    done: Sequence[Done],
    failed: Sequence[str],
    heard: Sequence[CommandResult],
    silent: Sequence[str],
) -> SyncReport:
    counts = Counter(change.action for change in done)
    closed = counts["recover"] + counts["withdraw"] + counts["duplicate"] + counts["fold"]
    opened = counts["return"] + sum(bool(change.url) for change in done)
    return SyncReport(
        tracker=name,
        done=tuple(done),
        heard=tuple(heard),
        refused=observed.refused,
        failed=tuple(failed),
        warnings=(*observed.warnings, *silent),
        open=sum(issue.open for issue in observed.world.issues.values()) + opened - closed,
        counts=dict(counts),
    )


class _Log:
    """Writes events of this tracker, at moments that differ and so keep their order."""

    def __init__(self, store: Store, tracker: Tracker, now: datetime) -> None:
        self.store, self.tracker, self.now = store, tracker.name, now

    def record(self, key: str, event: str, actor: str = "pointdrop", detail: dict[str, Any] | None = None) -> None:
        self.now += timedelta(microseconds=1)
        event_detail = {**(detail or {}), "tracker": self.tracker}
        at = moment_after(self.store.events(key), self.now)
        if at.date() != self.now.date():
            event_detail[DAY] = str(self.now.date())
        self.store.append_event(FindingEvent(key=key, event=event, at=at, actor=actor, detail=event_detail))


def carry_out(change: Change, store: Store, tracker: Tracker, log: _Log) -> Done:
    """One change, its steps in the order that can be repeated: the link first, the events last."""
    number, url = change.number, ""
    if number is None and change.draft is not None:
        body = with_notes(change.draft.body, None)
        issue = tracker.create(change.draft.model_copy(update={"body": body}))
        number, url = issue.number, issue.url
    if number is not None:
        _link(store, tracker, change.carries, number, url)
        _apply(change, tracker, number)
    for key, steps in ((change.key, change.events), *change.sub):
        for step in steps:
            log.record(key, step.event, detail=step.detail)
    title = change.title or (change.draft.title if change.draft else "")
    return Done(action=change.action, key=change.key, why=change.why, number=number, url=url, title=title)


def _apply(change: Change, tracker: Tracker, number: int) -> None:
    if change.title is not None or change.body is not None:
        tracker.edit(number, title=change.title, body=change.body)
    if change.labels:
        tracker.add_labels(number, change.labels)
    if change.comment is not None:
        tracker.comment(number, *change.comment)
    # After its comment, by which the next sync knows that it was us and no person.
    if change.reopen:
        tracker.reopen(number)
    if change.close is not None:
        tracker.close(number, change.close)


def _link(store: Store, tracker: Tracker, keys: Iterable[str], number: int, url: str) -> None:
    """Point the keys to the issue; nothing is written when the newest link already does."""
    for key in keys:
        links = [link for link in store.links(key) if link.tracker == tracker.name]
        if not links or links[-1].number != number:
            store.append_link(IssueLink(key=key, tracker=tracker.name, number=number, url=url))


def _relink(observed: Observation, store: Store, tracker: Tracker) -> None:
    """Every finding points to its issue, also after the older of two was kept, or a machine stopped in between."""
    for subject in observed.world.subjects:
        issue = observed.world.issues.get(subject.key)
        if issue is not None:
            _link(store, tracker, carried(subject), issue.number, issue.url)


def close_duplicates(store: Store, tracker: Tracker, log: _Log) -> list[Done]:
    """After creating: two publishers at once each see the other's issue here, and both keep the older one."""
    first_issues, changes = duplicates_of(tracker.issues())
    done = [carry_out(change, store, tracker, log) for change in changes]
    for change in changes:
        _link(store, tracker, (change.key,), first_issues[change.key].number, first_issues[change.key].url)
    return done
