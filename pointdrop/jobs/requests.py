"""What is measured again: suspects, and what people asked for with `/rerun` and `/bisect`.

A request is answered by measurements, wherever and by whatever job they were made: one session, begun after it was
asked, that holds blocks of both sides of the boundary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from alerts.standing import open_requests
from history.model import Finding, FindingEvent, Series
from history.store import Store
from pointdrop.jobs.confirm import Suspect, keys_of, suspects

#: A boundary that so many sessions measured side by side, and that is not clear yet, will not be by another one; an
#: improvement has had its chance after one.
MOST_AGAIN, MOST_AGAIN_IMPROVEMENT = 3, 1


def to_measure(store: Store, findings: Sequence[Finding]) -> list[Suspect]:
    """What to measure again, the largest changes first: what is not settled, and what somebody asked for."""
    asked = {request.key for request in open_requests(store.events())}
    by_id = {one.key.id: one for one in store.series()}
    open_still = [
        finding
        for finding in findings
        if not asked.isdisjoint(keys_of(finding))
        or len(_beside(finding, by_id)) < (MOST_AGAIN_IMPROVEMENT if finding.kind == "improvement" else MOST_AGAIN)
    ]
    return suspects(open_still, asked)


def settle_requests(store: Store, findings: Sequence[Finding], series: Iterable[Series]) -> None:
    """Write down which requests are answered by the `series` that `findings` were made of."""
    if waiting := open_requests(store.events()):
        started = {session.id: session.started for session in store.sessions()}
        for request in answered(waiting, findings, series, started):
            done = f"{request.event.removesuffix('-requested')}-done"
            store.append_event(FindingEvent(key=request.key, event=done, at=datetime.now(UTC)))


def answered(
    waiting: Iterable[FindingEvent],
    findings: Sequence[Finding],
    series: Iterable[Series],
    started: Mapping[str, datetime],
) -> list[FindingEvent]:
    """Those of the requests that need no more work; `started` are the beginnings of sessions by id.

    A request about a finding that is no more is among them: there is nothing left to measure.
    """
    of_key: dict[str, list[Finding]] = {}
    for finding in findings:
        for key in keys_of(finding):
            of_key.setdefault(key, []).append(finding)
    by_id = {one.key.id: one for one in series}
    return [
        request
        for request in waiting
        if all(
            any(started[session] > request.at for session in _beside(finding, by_id) if session in started)
            for finding in of_key.get(request.key, ())
        )
    ]


def _beside(finding: Finding, series: Mapping[str, Series]) -> set[str]:
    """Sessions that measured both sides of a boundary, in any series that moved there."""
    sessions: set[str] = set()
    for move in finding.moves:
        if one := series.get(move.key.id):
            at = {point.version: {value.session_id for value in point.values} for point in one.points}
            sessions |= at.get(finding.previous, set()) & at.get(finding.release, set())
    return sessions
