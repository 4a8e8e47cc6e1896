"""Everything a site is built from, read from the history once. Pages are pure functions of it.

Functions, plans and per-second samples are large and few pages show them, so they are read when a page needs them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, TypeVar, get_args

from history.keys import issue_key
from history.model import Block, CanaryReading, Finding, FindingEvent, FindingKind, IssueLink, Run, Series, Session
from presentation.addresses import LineKey
from reports.details import Details

if TYPE_CHECKING:
    from history.store import Store


Keyed = TypeVar("Keyed", FindingEvent, IssueLink)

#: `Run.profile` of figures somebody else measured and published.
PUBLISHED = "published"
FINDING_KINDS = frozenset(get_args(FindingKind))


def keys_of(finding: Finding) -> tuple[str, ...]:
    """The keys under which something can have happened to a finding: its own, and that of its issue."""
    issue = issue_key(finding.dbms, finding.line, finding.release, finding.kind)
    return tuple(dict.fromkeys((finding.key, issue)))


@dataclass(frozen=True)
class Ran:
    """One run and what became of its blocks."""

    run: Run
    session: Session
    statuses: Mapping[str, int]
    """Blocks by status."""
    reasons: Mapping[str, int]
    """Blocks by reason, of those that are not ok."""
    ended: datetime | None
    block_s: float | None = None
    """How long a block that counts took, the median."""


@dataclass(frozen=True)
class Snapshot:
    """A history as pages see it, in an order that does not depend on the order of arrival."""

    lines: Mapping[LineKey, tuple[Series, ...]]
    findings: tuple[Finding, ...] = ()
    events: Mapping[str, tuple[FindingEvent, ...]] = field(default_factory=dict)
    links: Mapping[str, tuple[IssueLink, ...]] = field(default_factory=dict)
    ran: tuple[Ran, ...] = ()
    """By start of session, newest first, then by release."""
    readings: tuple[CanaryReading, ...] = ()
    """Of the machine canary, oldest first."""
    details: Details | None = None
    """Reads what is too large to hold; None in a snapshot that was not read from a store."""

    @property
    def gone(self) -> list[str]:
        """Keys of findings that something happened to and that the newest detection no longer has; digests and issues
        about a machine have keys too, and are no findings."""
        current = {key for finding in self.findings for key in keys_of(finding)}
        return sorted(
            key for key in (self.events.keys() | self.links.keys()) - current if key.rsplit("/", 1)[-1] in FINDING_KINDS
        )

    def events_of(self, finding: Finding) -> tuple[FindingEvent, ...]:
        """What happened to a finding, in order, whether it was written under its own key or its issue's."""
        events = [event for key in keys_of(finding) for event in self.events.get(key, ())]
        return tuple(sorted(events, key=lambda event: event.at))

    def links_of(self, finding: Finding) -> tuple[IssueLink, ...]:
        """Its issues, each once, the newest last."""
        links = {(link.tracker, link.number): link for key in keys_of(finding) for link in self.links.get(key, ())}
        return tuple(links.values())

    @property
    def sessions(self) -> list[Session]:
        """Newest first."""
        return list({ran.session.id: ran.session for ran in self.ran}.values())

    @property
    def newest(self) -> datetime | None:
        """When the newest block ended: the stamp of the site."""
        return max((ran.ended for ran in self.ran if ran.ended), default=None)

    def ran_of(self, key: LineKey) -> list[Ran]:
        """The runs of the line's DBMS, server, config and benchmark."""
        place = (key.dbms, key.server, key.config, key.benchmark)
        return [
            ran
            for ran in self.ran
            if (ran.run.release.dbms, ran.session.server, ran.run.config, ran.run.benchmark) == place
        ]

    def timed_block_s(self, key: LineKey) -> float | None:
        """How long a timed block takes there, in seconds; None where Pointdrop measured none."""
        timed = (ran for ran in self.ran_of(key) if ran.run.lane == "time" and ran.run.profile != PUBLISHED)
        took = [ran.block_s for ran in timed if ran.block_s is not None]
        return median(took) if took else None

    def findings_of(self, key: LineKey) -> list[Finding]:
        """Findings with a moved series on this line page."""
        return [finding for finding in self.findings if any(LineKey.of(move.key) == key for move in finding.moves)]


def ran(run: Run, session: Session, blocks: Iterable[Block]) -> Ran:
    """Fold the blocks of one run."""
    statuses: dict[str, int] = defaultdict(int)
    reasons: dict[str, int] = defaultdict(int)
    ended = None
    took = []
    for block in blocks:
        statuses[block.status] += 1
        if block.status == "ok":
            took.append((block.ended - block.started).total_seconds())
        if block.status != "ok":
            reasons[block.reason or block.status] += 1
        ended = block.ended if ended is None else max(ended, block.ended)
    block_s = median(took) if took else None
    return Ran(run, session, dict(sorted(statuses.items())), dict(sorted(reasons.items())), ended, block_s)


def grouped_by_line(series: Iterable[Series]) -> dict[LineKey, tuple[Series, ...]]:
    """Series by the line page that shows them; pages and tests in the order of their names."""
    by_line: dict[LineKey, list[Series]] = defaultdict(list)
    for member in series:
        if member.points:
            by_line[LineKey.of(member.key)].append(member)
    return {
        key: tuple(sorted(by_line[key], key=lambda member: (member.key.test, member.key.metric)))
        for key in sorted(by_line)
    }


def newest_first(rows: Sequence[Ran]) -> tuple[Ran, ...]:
    by_release = sorted(rows, key=lambda ran: (ran.run.release.dbms, ran.run.release.version, ran.run.id))
    return tuple(sorted(by_release, key=lambda ran: (ran.session.started, ran.session.id), reverse=True))


def by_key(rows: Iterable[Keyed]) -> dict[str, tuple[Keyed, ...]]:
    by_key_rows: dict[str, list[Keyed]] = defaultdict(list)
    for row in rows:
        by_key_rows[row.key].append(row)
    return {key: tuple(by_key_rows[key]) for key in sorted(by_key_rows)}


def read(store: Store) -> Snapshot:
    """The whole history, once."""
    sessions = {session.id: session for session in store.sessions()}
    rows = [
        ran(run, sessions[run.session_id], store.blocks(run.id, details=False, measurements=False))
        for run in store.runs()
    ]
    return Snapshot(
        lines=grouped_by_line(store.series()),
        findings=tuple(sorted(store.findings(), key=lambda finding: finding.key)),
        events=by_key(store.events()),
        links=by_key(sorted(store.links(), key=lambda link: (link.tracker, link.number))),
        ran=newest_first(rows),
        readings=tuple(store.readings()),
        details=Details(store),
    )
