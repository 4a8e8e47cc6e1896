"""Suspects: boundaries that are measured again, both sides interleaved in one session, before anybody is told. Pure.

A finding is `provisional` until a session that took no part in discovering it holds blocks of the release and of its
predecessor. The jobs here make that session, both sides on fresh data; the detector judges its blocks and then says
`confirmed` or `unconfirmed`. Where nobody measured the releases between the two, the instructions lane measures them as
well, since that costs seconds: a finding should name the release that did it, not the first one that somebody happened
to look at.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass

from history.errors import BadSettings
from history.keys import issue_key
from history.metrics import MetricRegistry
from history.model import NOT_FILED, Finding, Move, Release, goes_its_way
from history.versions import build_mark, version_key
from pointdrop.jobs.release_selection import Work, by_version, in_version_order, spread
from presentation.ranking import Severity, severity
from runners.settings.plans import Measure, Plan

#: Blocks of each side; four give the ABBA order its full effect.
CONFIRM_BLOCKS = {"time": 4, "instructions": 1}
#: More boundaries than this of one lane in one night are a flood, not a list of suspects: the most severe are measured.
MOST_SUSPECTS = 20
#: What so many sessions have judged without a clear answer will not be clear by another one: it stays suspected. An
#: improvement, which has no issue of its own, has had its chance after one.
MOST_AGAIN, MOST_AGAIN_IMPROVEMENT = 2, 1
#: Releases measured between the two sides of a boundary in one night; what is left comes the next night.
MOST_BETWEEN = 4

_TEXT = re.compile(
    r"(?P<server>[\w.-]+)/(?P<dbms>\w+)/(?P<config>[\w.-]+)/(?P<benchmark>[\w-]+)/(?P<lane>time|instructions)/"
    r"(?P<previous>[\w.+~-]+?)\.\.(?P<release>[\w.+~-]+)"
)


@dataclass(frozen=True, order=True)
class Suspect:
    """One boundary on one server in one lane."""

    server: str
    dbms: str
    config: str
    benchmark: str
    lane: str
    previous: str
    release: str

    def __str__(self) -> str:
        return f"{'/'.join(self.place)}/{self.previous}..{self.release}"

    @property
    def place(self) -> tuple[str, ...]:
        """Server, DBMS, config, benchmark and lane: what one session measures."""
        return astuple(self)[:5]

    @classmethod
    def parse(cls, text: str) -> Suspect:
        """The inverse of `str`; BadSettings says what the form is.

        >>> Suspect.parse("small/postgres/default/sysbench/time/17.4..17.5").release
        '17.5'
        """
        match = _TEXT.fullmatch(text.strip())
        if not match:
            raise BadSettings(
                f"{text!r} is no suspect; the form is SERVER/DBMS/CONFIG/BENCHMARK/LANE/PREVIOUS..RELEASE, as in "
                "small/postgres/default/sysbench/time/17.4..17.5"
            )
        return cls(**match.groupdict())


def suspects(findings: Iterable[Finding], metrics: MetricRegistry, asked: Set[str] = frozenset()) -> list[Suspect]:
    """What to measure again, in the order in which findings are filed, each once; what is settled is left out, unless
    somebody asked for the key of the finding, or that of its issue.

    Steps between two builders are left out, since no measurement separates the compiler from the code, and drifts, of
    which no single release took most.
    What is counted is counted again while its finding is provisional, or names releases that nobody measured. A move of
    the time lane whose test's instructions explain it is left to them, which takes a tenth of the time; where they do
    not, as when the two contradict each other, the time lane is measured again, whatever the finding's tier: no counted
    move confirms a timed one. Machine time is not spent on improvements, which have no issue of their own, nor on a
    line of a change that another line leads. A step between majors that is explained is left out altogether, and so is
    what is near zero: neither decides anything.
    """
    severities: dict[Suspect, Severity] = {}
    for finding in findings:
        wanted = not asked.isdisjoint(finding_keys(finding))
        settled_apart = finding.kind == "drift" or finding.cause in NOT_FILED
        told_elsewhere = bool(finding.folded_under) and not finding.same_as
        if finding.kind == "environment" or ((settled_apart or told_elsewhere) and not wanted):
            continue
        moved: dict[Suspect, list[Move]] = defaultdict(list)
        most = MOST_AGAIN_IMPROVEMENT if finding.kind == "improvement" else MOST_AGAIN
        counted = {
            _test(move)
            for move in finding.moves
            if metrics[move.key.metric].lane == "instructions" and move.tier != "unconfirmed"
        }
        places = {test[:-1] for test in counted}
        for move in finding.moves:
            metric, key = metrics[move.key.metric], move.key
            if metric.lane == "instructions":
                narrow = finding.kind == "regression" and finding.unmeasured and finding.tier != "unconfirmed"
                open_still = narrow or finding.tier == move.tier == "provisional"
            else:
                explained = _test(move) in counted and move.counted_pct is None
                told = metric.leads or _test(move)[:-1] not in places
                worse = finding.kind != "improvement" and goes_its_way(finding.kind, move)
                open_still = move.tier == "provisional" and worse and told and not explained and not finding.same_as
            if not wanted and (move.judged_in >= most or move.near_zero or not open_still):
                continue
            place = (key.server, finding.dbms, key.config, key.benchmark, metric.lane)
            moved[Suspect(*place, finding.previous, finding.release)].append(move)
        for suspect, moves in moved.items():
            own = severity(finding, moves, metrics)
            severities[suspect] = min(own, severities.get(suspect, own))
    return sorted(severities, key=lambda suspect: (severities[suspect], suspect))


def in_plan(wanted: Iterable[Suspect], plan: Plan) -> list[Suspect]:
    """Those that `plan` measures, in order: a history holds besides what other plans measured and others published."""
    return [suspect for suspect in wanted if suspect.server in plan.servers and _of_plan(suspect, plan)]


def with_available_releases(
    wanted: Iterable[Suspect], releases: Mapping[str, Iterable[Release]], most: int = MOST_SUSPECTS
) -> tuple[list[Suspect], list[str]]:
    """The first `most` of each lane, counted ones first, of those whose two releases are known, and a sentence about
    each that has not both."""
    versions = {dbms: {release.version for release in of_dbms} for dbms, of_dbms in releases.items()}
    available: dict[str, list[Suspect]] = {"instructions": [], "time": []}
    lost = []
    for suspect in wanted:
        if {suspect.previous, suspect.release} <= versions.get(suspect.dbms, set()):
            available[suspect.lane].append(suspect)
        else:
            lost.append(f"{suspect}: one of the two can no longer be had, so it is not measured again")
    return [suspect for of_lane in available.values() for suspect in of_lane[:most]], lost


def finding_keys(finding: Finding) -> set[str]:
    """What people may call a finding: its own key, or that of its issue."""
    return {finding.key, issue_key(finding.dbms, finding.line, finding.release, finding.kind)}


def _test(move: Move) -> tuple[str, str, str, str]:
    return move.key.server, move.key.config, move.key.benchmark, move.key.test


def confirmation_work(wanted: Iterable[Suspect], plan: Plan, releases: Mapping[str, Iterable[Release]]) -> list[Work]:
    """Sessions for the suspects, measured as `plan` measures that DBMS in that lane; suspects of one server, config and
    lane share a session, so that a release that stands at two boundaries is measured once.

    `releases` are releases by DBMS. Raises BadSettings for a suspect that the plan or the releases do not know.
    """
    sessions: dict[tuple[str, ...], list[Suspect]] = {}
    for suspect in wanted:
        sessions.setdefault(suspect.place, []).append(suspect)
    return [_session(together, plan, releases) for together in sessions.values()]


def _session(together: Sequence[Suspect], plan: Plan, by_dbms: Mapping[str, Iterable[Release]]) -> Work:
    first = together[0]
    versions = dict.fromkeys(version for suspect in together for version in (suspect.previous, suspect.release))
    releases = by_version(first.dbms, by_dbms.get(first.dbms, ()), versions)
    measure = _of_plan(first, plan)
    if measure is None:
        raise BadSettings(f"{first}: the plan {plan.name} measures no such thing, so it cannot be confirmed with it")
    measure = measure.model_copy(update={"blocks": CONFIRM_BLOCKS[first.lane], "backfill": None})
    chosen = {version: releases[version] for version in versions}
    if first.lane == "instructions":
        chosen |= {r.version: r for suspect in together for r in _between(suspect, releases)}
    candidates = in_version_order(chosen.values())
    return Work(measure, first.config, "", candidates, candidates[0], again=True)


def _between(suspect: Suspect, releases: Mapping[str, Release]) -> list[Release]:
    """Releases of the suspect's line between its two sides, of their builders alone, spread when there are many; none
    between two lines."""
    before, after = releases[suspect.previous], releases[suspect.release]
    if before.line != after.line:
        return []
    low, high = (version_key(suspect.dbms, side.version) for side in (before, after))
    marks = {build_mark(before.version), build_mark(after.version)}
    inside = [
        release
        for release in in_version_order(releases.values())
        if release.line == after.line
        and build_mark(release.version) in marks
        and low < version_key(suspect.dbms, release.version) < high
    ]
    return spread(inside, MOST_BETWEEN)


def _of_plan(suspect: Suspect, plan: Plan) -> Measure | None:
    """How `plan` measures it."""
    wanted = (suspect.dbms, suspect.benchmark, suspect.lane)
    measures = (m for m in plan.measure if (m.dbms, m.benchmark, m.lane) == wanted and suspect.config in m.configs)
    return next(measures, None)
