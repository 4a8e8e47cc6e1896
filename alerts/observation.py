"""Reads history and tracker into the `World` a plan is made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from alerts.answering import answered_by, folded_issues, led_by_issues
from alerts.changes import DIGEST, ENVIRONMENT, Change, World
from alerts.comment_texts import comment
from alerts.context import Context, context_from
from alerts.errors import IncompleteIssue, IssueGone
from alerts.issue_state import IssueState, issue_state_of
from alerts.lifecycle import CLOSED_BY_US, OPEN, State
from alerts.marker import event_of
from alerts.recovery import Recovered, recovered_in_all_lines, recoveries
from alerts.render import render
from alerts.settings import AlertSettings
from alerts.subject import Subject, not_filed, subjects
from alerts.trackers import Draft, Issue, Tracker
from history.keys import boundary
from history.store import Store
from history.versions import sort_versions
from presentation.commands import measurable_here

#: Comments of ours that close an issue or open it again.
CLOSINGS = ("recovered", "withdrawn", "folded", "returned")


class Observation(NamedTuple):
    """The world, and what was noticed while looking."""

    world: World
    duplicates: list[Change]
    refused: tuple[str, ...]
    warnings: tuple[str, ...]


def observe(
    store: Store,
    tracker: Tracker,
    settings: AlertSettings,
    now: datetime,
    more: Sequence[Issue] = (),
) -> Observation:
    """Read everything a plan needs. `more` are issues found by another way than the label."""
    listed = {issue.number: issue for issue in (*more, *tracker.issues())}
    issues, duplicates = duplicates_of(listed.values())
    findings = store.findings()
    issue_states: dict[str, IssueState] = {}

    def issue_state(key: str) -> IssueState:
        if key not in issue_states:
            issue_states[key] = issue_state_of(key, store.events(key), tracker.name)
        return issue_states[key]

    for key in issues:
        issue_state(key)
    findings = led_by_issues(findings, settings.filing.kinds, issues, issue_state)
    answered, renamed = answered_by(subjects(findings, settings.filing.kinds, settings.metrics), issues, issue_state)
    folded = folded_issues(answered, findings, issues, issue_state)
    back: dict[str, Recovered] = {}
    for at, subject in enumerate(answered):
        of_change = recoveries(subject, findings, settings.recovery, settings.filing.tiers)
        if recovered := recovered_in_all_lines(subject, of_change):
            back[subject.key] = recovered
        releases = {key: recovered.release for key, recovered in of_change.items()}
        answered[at] = subject.model_copy(update={"back": releases})
    for subject in answered:
        issue_state(subject.key)
        if issue_state(subject.key).where:
            issue_state(issue_state(subject.key).where)
    gone = _fetch_missing(store, tracker, answered, issues, issue_states)
    half_done = _half_done(tracker, issues, issue_states)
    contexts = {subject.key: context_from(store, subject.finding, settings) for subject in answered}
    drafts, refused = _drafts(answered, contexts, issues, issue_states, renamed, settings)
    world = World(
        now=now,
        subjects=tuple(answered),
        drafts=drafts,
        issue_states=issue_states,
        issues=issues,
        gone=frozenset(gone),
        recoveries=back,
        lines=frozenset((server, dbms, line) for dbms, line, server, _, _ in store.lines()),
        releases=_releases(answered, contexts),
        renamed=renamed,
        half_done=half_done,
        unmeasurable=frozenset(
            subject.key for subject in answered if not measurable_here(subject.finding, settings.measurable)
        ),
        unmeasured=frozenset(
            key
            for key in issues.keys() - {subject.key for subject in answered}
            if not key.startswith((DIGEST, ENVIRONMENT))
            and issue_states[key].state in OPEN
            and not _boundary_measured(store, issue_states[key])
        ),
        builds=not_filed(findings),
        folded=folded,
    )
    return Observation(world, duplicates, refused, tuple(f"{key}: {error}" for key, error in gone.items()))


def duplicates_of(issues: Iterable[Issue]) -> tuple[dict[str, Issue], list[Change]]:
    """Our issues by first key, the lowest number of each, and the changes that close the others."""
    first_issues: dict[str, Issue] = {}
    changes = []
    for issue in sorted(issues, key=lambda issue: issue.number):
        if not issue.keys:
            continue
        first = first_issues.setdefault(issue.keys[0], issue)
        if first is not issue and issue.open:
            explanation = comment(f"duplicate:{issue.number}", "duplicate", of=first.number)
            changes.append(
                Change(
                    action="duplicate",
                    key=issue.keys[0],
                    number=issue.number,
                    why=f"the same finding as issue {first.number}",
                    comment=explanation,
                    close="duplicate",
                )
            )
    return first_issues, changes


def _boundary_measured(store: Store, issue_state: IssueState) -> bool:
    """Whether a series of the servers and the metric that an issue tells of has both releases of its boundary."""
    (dbms, line, *rest), told = issue_state.key.split("/"), issue_state.told
    sides = [told[side] for side in ("previous", "release") if side in told] or rest[:-1]
    wanted = {boundary(dbms, line, str(release)) for release in sides}
    return any(
        wanted <= {boundary(dbms, line, point.version) for point in series.points}
        for server in told.get("servers", [None])
        for series in store.series(dbms=dbms, line=line, server=server, metric=told.get("metric"))
    )


def _fetch_missing(
    store: Store,
    tracker: Tracker,
    answered: Iterable[Subject],
    issues: dict[str, Issue],
    issue_states: dict[str, IssueState],
) -> dict[str, IssueGone]:
    """Issues the history links to and the listing does not show (a label was taken off): fetched by number.

    Puts them into `issues`; returns those that are gone, by key.
    """
    gone: dict[str, IssueGone] = {}
    wanted = [subject.key for subject in answered] + [s.where for s in issue_states.values() if s.where]
    for key in dict.fromkeys(wanted):
        issue_state = issue_states[key]
        if key in issues or issue_state.state in (State.GONE, State.DIGESTED, State.HELD):
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


def _half_done(tracker: Tracker, issues: dict[str, Issue], issue_states: dict[str, IssueState]) -> dict[str, str]:
    """By key of each issue that is open or closed against the history: the event of our newest comment about that."""
    newest_events: dict[str, str] = {}
    for key, issue in issues.items():
        state = issue_states[key].state
        if state in (OPEN if not issue.open else CLOSED_BY_US) and not key.startswith(DIGEST):
            try:
                events = [event_of(comment.body) for comment in tracker.comments(issue.number) if comment.ours]
            except IssueGone:
                continue
            closings = [event for event in events if event.partition(":")[0] in CLOSINGS]
            newest_events |= {key: closings[-1]} if closings else {}
    return newest_events


def _drafts(
    answered: Iterable[Subject],
    contexts: dict[str, Context],
    issues: dict[str, Issue],
    issue_states: dict[str, IssueState],
    renamed: dict[str, str],
    settings: AlertSettings,
) -> tuple[dict[str, Draft], tuple[str, ...]]:
    """The issue of every subject, and why some cannot be written."""
    drafts: dict[str, Draft] = {}
    refused: list[str] = []
    for subject in answered:
        issue = issues.get(subject.key)
        newer = (new for new, old in renamed.items() if old == subject.key)
        also = dict.fromkeys((*(issue.keys[1:] if issue else ()), *issue_states[subject.key].also, *newer))
        try:
            drafts[subject.key] = render(subject, contexts[subject.key], settings, tuple(also))
        except IncompleteIssue as error:
            if subject.finding.tier in settings.filing.tiers:
                refused.append(str(error))
    return drafts, tuple(refused)


def _releases(answered: Iterable[Subject], contexts: dict[str, Context]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Measured releases by (dbms, line), as far as the contexts know them."""
    releases: dict[tuple[str, str], set[str]] = {}
    for subject in answered:
        place = subject.finding.dbms, subject.finding.line
        releases.setdefault(place, set()).update(contexts[subject.key].releases)
    return {place: tuple(sort_versions(place[0], versions)) for place, versions in releases.items()}
