"""What is measured again: suspects, and what people asked for with `/rerun` and `/bisect`.

A request is answered by measurements, wherever and by whatever job they were made: one session, begun after it was
asked, that holds blocks of both sides of the boundary.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from alerts.issue_state import BISECT, moment_after, open_requests
from detector.confirmation import DISCOVERED
from history.metrics import MetricRegistry
from history.model import MAJORS, Finding, FindingEvent, Series
from history.store import Store
from pointdrop.jobs.suspects import Suspect, finding_keys, suspects
from presentation.commands import source_tags
from presentation.sentences import TIER_WORDS

#: So many sessions that measured both sides are enough, whatever became of the moves: no session can judge a test that
#: is not measured any more, or one of which the two releases next to the boundary do not show what all of them do.
MOST_SIDE_BY_SIDE = 4


def suspects_to_measure(store: Store, findings: Sequence[Finding], metrics: MetricRegistry) -> list[Suspect]:
    """What to measure again, the most severe first: what is not settled, and what somebody asked for."""
    keys = {request.key for request in open_requests(store.events())}
    requested = suspects([one for one in findings if not keys.isdisjoint(finding_keys(one))], metrics, keys)
    wanted = suspects(findings, metrics, keys)
    return [one for one in wanted if one in requested or _side_by_side(one, store) < MOST_SIDE_BY_SIDE]


def _side_by_side(suspect: Suspect, store: Store) -> int:
    """Sessions with blocks of both sides that count."""
    server, dbms, config, benchmark, lane = suspect.place
    sides = []
    for version in (suspect.previous, suspect.release):
        runs = store.runs(dbms=dbms, version=version, server=server, config=config, benchmark=benchmark, lane=lane)
        sides.append(
            {
                run.session_id
                for run in runs
                if any(block.status == "ok" for block in store.blocks(run.id, details=False, measurements=False))
            }
        )
    return len(set.intersection(*sides))


def settle_requests(
    store: Store, findings: Sequence[Finding], sources: Mapping[str, str], metrics: MetricRegistry
) -> None:
    """Write down which requests are answered by the history that `findings`, its newest detection, were made of.

    `sources`, by DBMS: where the source of two releases is compared.
    """
    if waiting := open_requests(store.events()):
        started = {session.id: session.started for session in store.sessions()}
        for request in answered_requests(waiting, findings, store.series(), started):
            done = f"{request.event.removesuffix('-requested')}-done"
            requested = [finding for finding in findings if request.key in finding_keys(finding)]
            detail = request_result(request.event, requested, sources, metrics)
            at = moment_after(store.events(request.key), datetime.now(UTC))
            store.append_event(FindingEvent(key=request.key, event=done, at=at, detail=detail))


def request_result(
    asked: str, findings: Sequence[Finding], sources: Mapping[str, str], metrics: MetricRegistry
) -> dict[str, Any]:
    """What is said in the issue when the work is done: `text`, and for a bisection the `command` that goes on with
    commits, once no release is left between the two."""
    if not findings:
        return {"text": "The newest detection does not find this boundary any more; there is nothing left to measure."}
    finding = findings[0]
    seen = [sentence for sentence in finding.evidence if sentence.startswith(DISCOVERED)]
    text = f"Both sides were measured again in one session: {TIER_WORDS[finding.tier]}. {' '.join(seen)}".strip()
    if asked != BISECT or finding.tier == "unconfirmed":
        return {"text": text}
    between = ", ".join(finding.unmeasured)
    inside = f"with one of {between} or {finding.release}" if between else f"with {finding.release}"
    text += f" The change came after {finding.previous}, {inside}."
    if between:
        return {"text": f"{text} Where instructions are counted, the next nights measure those between as well."}
    refs = source_tags(sources.get(finding.dbms, ""), finding)
    if finding.line == MAJORS or not refs:
        return {"text": text}
    counted = [move for move in finding.moves if metrics[move.key.metric].lane == "instructions"] or finding.moves
    key = max(counted, key=lambda move: (abs(move.change_pct), move.key.id)).key
    words = ["pointdrop", "bisect", finding.dbms, *refs, "--repository", "CLONE", "--test", key.test]
    words += ["--metric", key.metric, "--server", key.server, "--config", key.config, "--benchmark", key.benchmark]
    where = "No release lies between them; in a clone of the source, this goes on with commits:"
    return {"text": f"{text} {where}", "command": shlex.join(words)}


def answered_requests(
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
        for key in finding_keys(finding):
            of_key.setdefault(key, []).append(finding)
    by_id = {member.key.id: member for member in series}
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
        if moved := series.get(move.key.id):
            at = {point.version: {value.session_id for value in point.values} for point in moved.points}
            sessions |= at.get(finding.previous, set()) & at.get(finding.release, set())
    return sessions
