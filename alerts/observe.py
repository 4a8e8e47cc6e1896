"""Reads history and tracker into the `World` a plan is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from alerts.changes import DIGEST, ENVIRONMENT, Change, World
from alerts.context import Context, HasSeries, context_from
from alerts.errors import IncompleteIssue, IssueGone
from alerts.lifecycle import CLOSED_BY_US, OPEN, WAITING, State
from alerts.marker import event_of
from alerts.measurable import Measurable, measured_here
from alerts.notes import comment
from alerts.recovery import recovery
from alerts.render import render
from alerts.settings import AlertSettings
from alerts.standing import Standing, standing_of
from alerts.subject import Subject, subjects
from alerts.trackers import Draft, Issue, Tracker
from history.model import MAJORS, Finding, FindingEvent, IssueLink
from history.versions import sort_versions, version_key


class HasFindings(HasSeries, Protocol):
    """The part of `history.store.Store` this room uses."""

    def findings(self) -> list[Finding]: ...
    def events(self, key: str) -> list[FindingEvent]: ...
    def links(self, key: str) -> list[IssueLink]: ...
    def lines(self, dbms: str | None = None) -> list[tuple[str, str, str, str, str]]: ...
    def append_event(self, event: FindingEvent) -> object: ...
    def append_link(self, link: IssueLink) -> object: ...


class Observed(NamedTuple):
    """The world, and what was noticed while looking."""

    world: World
    duplicates: list[Change]
    refused: tuple[str, ...]
    warnings: tuple[str, ...]


def observe(
    store: HasFindings,
    tracker: Tracker,
    settings: AlertSettings,
    now: datetime,
    more: Sequence[Issue] = (),
    can: Measurable | None = None,
) -> Observed:
    """Read everything a plan needs. `more` are issues found by another way than the label, `can` what can be measured
    here, everything if None."""
    listed = {issue.number: issue for issue in (*more, *tracker.issues())}
    issues, duplicates = duplicates_of(listed.values())
    findings = store.findings()
    standings: dict[str, Standing] = {}

    def standing(key: str) -> Standing:
        if key not in standings:
            standings[key] = standing_of(key, store.events(key), tracker.name)
        return standings[key]

    for key in issues:
        standing(key)
    found, renamed = answered_by(subjects(findings, settings.filing.kinds), issues, standing)
    for subject in found:
        standing(subject.key)
        if standing(subject.key).where:
            standing(standing(subject.key).where)
    gone = _fetch_missing(store, tracker, found, issues, standings)
    half_done = _half_done(tracker, issues, standings)
    contexts = {subject.key: context_from(store, subject.finding, settings.text) for subject in found}
    drafts, refused = _drafts(found, contexts, issues, standings, renamed, settings, can)
    back = {
        subject.key: recovery(subject.finding, findings, settings.recovery, settings.filing.tiers) for subject in found
    }
    world = World(
        now=now,
        subjects=tuple(found),
        drafts=drafts,
        standings=standings,
        issues=issues,
        gone=frozenset(gone),
        recoveries={key: recovered for key, recovered in back.items() if recovered},
        lines=frozenset((server, dbms, line) for dbms, line, server, _, _ in store.lines()),
        releases=_releases(found, contexts),
        renamed=renamed,
        half_done=half_done,
        unmeasurable=frozenset(subject.key for subject in found if not measured_here(subject.finding, can)),
    )
    return Observed(world, duplicates, refused, tuple(f"{key}: {error}" for key, error in gone.items()))


def duplicates_of(issues: Iterable[Issue]) -> tuple[dict[str, Issue], list[Change]]:
    """Our issues by first key, the lowest number of each, and the changes that close the others."""
    kept: dict[str, Issue] = {}
    changes = []
    for issue in sorted(issues, key=lambda issue: issue.number):
        if not issue.keys:
            continue
        first = kept.setdefault(issue.keys[0], issue)
        if first is not issue and issue.open:
            said = comment(f"duplicate:{issue.number}", "duplicate", of=first.number)
            changes.append(
                Change(
                    action="duplicate",
                    key=issue.keys[0],
                    number=issue.number,
                    why=f"the same finding as issue {first.number}",
                    comment=said,
                    close="duplicate",
                )
            )
    return kept, changes


def answered_by(
    found: Sequence[Subject], issues: dict[str, Issue], standing: Callable[[str], Standing]
) -> tuple[list[Subject], dict[str, str]]:
    """Subjects under the key of the issue that already answers for them, and the new names among these.

    With more results a boundary can move inside its suspect range (8.0.29 was not measured, now it is): the finding
    has another key, but it is the same changepoint and keeps its issue. Never when the older key is found as well.
    """
    own = {subject.key for subject in found}
    free = {
        key: standing(key)
        for key in issues
        if key not in own and not key.startswith((DIGEST, ENVIRONMENT)) and standing(key).state not in WAITING
    }
    answered: list[Subject] = []
    renamed: dict[str, str] = {}
    for subject in found:
        mine = standing(subject.key)
        older = ""
        if mine.state in WAITING and subject.key not in issues:
            older = mine.alias_of if mine.alias_of in free else _same_range(subject.finding, free)
        if older:
            renamed[subject.key] = older
            free.pop(older)
            answered.append(subject.model_copy(update={"key": older}))
        else:
            answered.append(subject)
    return answered, renamed


def _same_range(finding: Finding, free: dict[str, Standing]) -> str:
    """The key of an issue of the same kind and line whose suspect range overlaps the finding's."""

    for key, standing in sorted(free.items()):
        previous, release = standing.told.get("previous"), standing.told.get("release")
        if not (previous and release) or finding.line == MAJORS:
            continue
        same = key.split("/")[:2] == [finding.dbms, finding.line] and key.endswith(f"/{finding.kind}")
        overlap = max(version_key(finding.dbms, previous), version_key(finding.dbms, finding.previous)) < min(
            version_key(finding.dbms, release), version_key(finding.dbms, finding.release)
        )
        if same and overlap:
            return key
    return ""


def _fetch_missing(
    store: HasFindings,
    tracker: Tracker,
    found: Iterable[Subject],
    issues: dict[str, Issue],
    standings: dict[str, Standing],
) -> dict[str, IssueGone]:
    """Issues the history links to and the listing does not show (a label was taken off): fetched by number.

    Puts them into `issues`; returns those that are gone, by key.
    """
    gone: dict[str, IssueGone] = {}
    wanted = [subject.key for subject in found] + [s.where for s in standings.values() if s.where]
    for key in dict.fromkeys(wanted):
        standing = standings[key]
        if key in issues or standing.state in (State.GONE, State.DIGESTED, State.HELD):
            continue
        numbers = [link.number for link in store.links(key) if link.tracker == tracker.name]
        if not numbers:
            continue
        try:
            issue = tracker.issue(numbers[-1])
        except IssueGone as error:
            gone[key] = error
            continue
        # A key that shared an older one's issue may need one of its own now.
        if issue.keys[:1] == (key,):
            issues[key] = issue
    return gone


def _half_done(tracker: Tracker, issues: dict[str, Issue], standings: dict[str, Standing]) -> dict[str, str]:
    """By key of each issue that is open or closed against the history: the event of our newest comment about that."""
    said: dict[str, str] = {}
    for key, issue in issues.items():
        state = standings[key].state
        if state in (OPEN if not issue.open else CLOSED_BY_US) and not key.startswith(DIGEST):
            try:
                events = [event_of(one.body) for one in tracker.comments(issue.number) if one.ours]
            except IssueGone:
                continue
            told = [event for event in events if event.partition(":")[0] in ("recovered", "withdrawn", "returned")]
            said |= {key: told[-1]} if told else {}
    return said


def _drafts(
    found: Iterable[Subject],
    contexts: dict[str, Context],
    issues: dict[str, Issue],
    standings: dict[str, Standing],
    renamed: dict[str, str],
    settings: AlertSettings,
    can: Measurable | None,
) -> tuple[dict[str, Draft], tuple[str, ...]]:
    """The issue of every subject, and why some cannot be written."""
    drafts: dict[str, Draft] = {}
    refused: list[str] = []
    for subject in found:
        issue = issues.get(subject.key)
        newer = (new for new, old in renamed.items() if old == subject.key)
        also = dict.fromkeys((*(issue.keys[1:] if issue else ()), *standings[subject.key].also, *newer))
        try:
            drafts[subject.key] = render(subject, contexts[subject.key], settings, tuple(also), can)
        except IncompleteIssue as error:
            if subject.finding.tier in settings.filing.tiers:
                refused.append(str(error))
    return drafts, tuple(refused)


def _releases(found: Iterable[Subject], contexts: dict[str, Context]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Measured releases by (dbms, line), as far as the contexts know them."""
    known: dict[tuple[str, str], set[str]] = {}
    for subject in found:
        place = subject.finding.dbms, subject.finding.line
        known.setdefault(place, set()).update(contexts[subject.key].releases)
    return {place: tuple(sort_versions(place[0], versions)) for place, versions in known.items()}
