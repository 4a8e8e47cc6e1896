"""Series in, findings out: the whole detector as one pure function of the history and the settings.

    campaign -> scan -> steps -> moves -> one finding per boundary and kind -> origin, confirmation, evidence

The same series give the same findings, byte for byte, in any order of arrival.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from detector.attribution import control_stood_still, every_line_moved, origin
from detector.confirmation import confirm, upheld
from detector.drift import drifts, first_ga
from detector.evidence import of_boundary, of_drift
from detector.moves import direction, log_percent, moves_of, percent, raw_level, verdict_of
from detector.releases.campaign import Campaign, aligned, campaign, families
from detector.releases.scan import scan
from detector.releases.steps import Reading, read
from detector.settings import DetectorSettings
from history.model import Cause, Finding, FindingKind, GroupSummary, Move, Release, Series, Tier, finding_key
from history.versions import sort_versions

#: Kinds in the order in which findings of one boundary are listed.
KINDS: tuple[FindingKind, ...] = ("regression", "improvement", "environment", "drift")
#: A level needs two releases on either side of a boundary.
FEWEST_RELEASES = 2
TIERS: tuple[Tier, ...] = ("unconfirmed", "provisional", "confirmed")


def detect(
    series: Iterable[Series], settings: DetectorSettings | None = None, known: Iterable[Release] = ()
) -> list[Finding]:
    """All findings in `series`, sorted by dbms, line, release and kind.

    `known` are releases that exist, measured or not: those between the two sides of a boundary are named as suspects.
    """
    settings = settings or DetectorSettings()
    everything = list(series)
    parts = [part for family in families(everything).values() for part in parts_of(family, settings)]
    return join(parts, everything, settings, known)


@dataclass(frozen=True)
class Part:
    """A boundary in one campaign: what one (config, benchmark) adds to a finding."""

    dbms: str
    line: str
    kind: FindingKind
    previous: str
    release: str
    moves: tuple[Move, ...]
    evidence: tuple[str, ...]
    tests: dict[tuple[str, str, str], int]
    """Tests measured by (server, metric, group)."""


def join(
    parts: Iterable[Part], series: Iterable[Series], settings: DetectorSettings, known: Iterable[Release] = ()
) -> list[Finding]:
    """Findings from the boundaries of all campaigns, in whatever order they were scanned."""
    by_id = {one.key.id: one for one in series}
    boundaries: dict[tuple[str, str, str, FindingKind], list[Part]] = defaultdict(list)
    for part in sorted(parts, key=lambda part: (part.previous, part.moves[0].key.id)):
        boundaries[part.dbms, part.line, part.release, part.kind].append(part)
    findings = [_finding(of_boundary, by_id, settings) for of_boundary in boundaries.values()]
    ordered = [by_id[name] for name in sorted(by_id)]
    return _in_order(_with_lines(_with_suspects(findings, list(known)), ordered))


def parts_of(series: Sequence[Series], settings: DetectorSettings) -> list[Part]:
    """The boundaries of one campaign: all series of one (dbms, line, config, benchmark)."""
    return [boundary for together in aligned(series) for boundary in _boundaries(together, settings)]


def _boundaries(series: Sequence[Series], settings: DetectorSettings) -> list[Part]:
    measured = {point.position for one in series for point in one.points}
    if len(measured) < FEWEST_RELEASES:
        return []
    from_series = campaign(series, settings.metrics)
    panel, by_id = from_series.panel, {one.key.id: one for one in from_series.series.values()}
    found = scan(panel)
    reading = read(found, settings.probability)
    parts = []
    for release, moves in moves_of(from_series, found, reading, settings.probability).items():
        by_test: dict[str, list[Move]] = defaultdict(list)
        for move in moves:
            by_test[move.key.test].append(move)
        by_kind: dict[FindingKind, list[Move]] = defaultdict(list)
        for of_test in by_test.values():
            better = verdict_of(of_test, settings.metrics) == "improvement"
            by_kind["improvement" if better else "regression"] += of_test
        for kind, of_test in by_kind.items():
            of_kind = upheld(of_test, by_id, panel.releases[release - 1], panel.releases[release], settings.metrics)
            sentences = (*of_boundary(from_series, found, reading, release, of_kind), *from_series.joined)
            parts.append(_part(from_series, kind, release - 1, release, of_kind, sentences))
    return parts + _drifts(from_series, reading, settings)


def _part(
    from_series: Campaign, kind: FindingKind, previous: int, release: int, moves: list[Move], evidence: tuple[str, ...]
) -> Part:
    versions = from_series.panel.releases
    tests: dict[tuple[str, str, str], int] = defaultdict(int)
    for one in from_series.series.values():
        if from_series.has_both_sides(one, release):
            tests[one.key.server, one.key.metric, one.group] += 1
    return Part(
        from_series.dbms,
        from_series.line,
        kind,
        versions[previous],
        versions[release],
        tuple(moves),
        evidence,
        dict(tests),
    )


def _drifts(from_series: Campaign, reading: Reading, settings: DetectorSettings) -> list[Part]:
    """Slow drifts of one campaign: those for the worse, since nobody needs an issue about a slow gain."""
    panel = from_series.panel
    start = first_ga(panel.releases)
    moves = []
    since = []
    for drift in drifts(from_series, reading, math.log1p(settings.drift_pct / 100.0)):
        series = from_series.series[drift.place]
        before = raw_level(from_series, drift.place, drift.start)
        after = raw_level(from_series, drift.place, drift.start + drift.size)
        change = percent(before, after)
        if direction(series, change) != "regression":
            continue
        low, high = (log_percent(drift.size + sign * 1.96 * drift.error) for sign in (-1, 1))
        since.append(drift.release)
        noise = float(reading.noise[drift.place])
        moves.append(
            Move(
                key=series.key,
                group=series.group,
                unit=series.unit,
                better=series.better,
                before=before,
                after=after,
                change_pct=change,
                low_pct=low,
                high_pct=high,
                direction="regression",
                probability=1.0 - math.erfc(abs(drift.size) / drift.error / math.sqrt(2.0)),
                noise_pct=log_percent(noise),
                mde_pct=settings.drift_pct,
                blocks_before=len(series.points[0].values),
                blocks_after=len(series.points[-1].values),
            )
        )
    if not moves:
        return []
    release = sorted(since)[len(since) // 2]
    sentences = of_drift(from_series, moves, panel.releases[start])
    return [_part(from_series, "drift", start, release, moves, sentences)]


def _finding(parts: list[Part], by_id: Mapping[str, Series], settings: DetectorSettings) -> Finding:
    """One finding of all that moves at a boundary, whatever the configuration and benchmark."""
    dbms, line = parts[0].dbms, parts[0].line
    release, kind = parts[0].release, parts[0].kind
    previous = sort_versions(dbms, {part.previous for part in parts})[-1]
    previous_of = {move.key.id: part.previous for part in parts for move in part.moves}
    moves = sorted((move for part in parts for move in part.moves), key=lambda move: move.key.id)
    tests: dict[tuple[str, str, str], int] = defaultdict(int)
    for part in parts:
        for place, count in part.tests.items():
            tests[place] += count
    evidence = [sentence for part in parts for sentence in part.evidence]
    cause: Cause = "product"
    tier: Tier = "provisional"
    if kind != "drift":
        found = origin(moves, by_id, previous_of, release, tests, settings.metrics)
        cause = found.cause
        confirmed = confirm(moves, by_id, previous_of, release, settings.metrics)
        tier = confirmed.tier
        evidence += [*found.evidence, *confirmed.evidence]
        if cause in ("machine", "epoch"):
            kind = "environment"
    warnings = sorted({warning for move in moves for warning in move.warnings})
    return Finding(
        key=finding_key(dbms, line, release, kind),
        kind=kind,
        cause=cause,
        tier=tier,
        dbms=dbms,
        line=line,
        previous=previous,
        release=release,
        moves=tuple(moves),
        groups=groups_of(moves, tests),
        evidence=tuple(dict.fromkeys(evidence)),
        warnings=tuple(warnings),
    )


def groups_of(moves: Sequence[Move], tests: Mapping[tuple[str, str, str], int]) -> tuple[GroupSummary, ...]:
    """Moves folded by server, metric and group; `tests` counts those measured by the same three.

    Groups that did not move are there as well, with `moved` 0, where others did on that server and in that metric: of
    how many tests so many moved is a question about all that were measured.
    """
    folded: dict[tuple[str, str, str], list[Move]] = defaultdict(list)
    for move in moves:
        folded[move.key.server, move.key.metric, move.group].append(move)
    moved = {place[:2] for place in folded}
    summaries = [
        GroupSummary(
            server=server,
            metric=metric,
            group=group,
            moved=0,
            tests=count,
            median_pct=0.0,
            worst_pct=0.0,
            worst_test="",
        )
        for (server, metric, group), count in sorted(tests.items())
        if (server, metric) in moved and (server, metric, group) not in folded
    ]
    for (server, metric, group), of_group in sorted(folded.items()):
        changes = sorted(move.change_pct for move in of_group)
        middle = 0.5 * (changes[(len(changes) - 1) // 2] + changes[len(changes) // 2])
        worst = max(of_group, key=lambda move: (abs(move.change_pct), move.key.id))
        summaries.append(
            GroupSummary(
                server=server,
                metric=metric,
                group=group,
                moved=len(of_group),
                tests=max(tests.get((server, metric, group), 0), len(of_group)),
                median_pct=middle,
                worst_pct=worst.change_pct,
                worst_test=worst.key.test,
            )
        )
    return tuple(sorted(summaries, key=lambda one: (one.server, one.metric, one.group)))


def _with_suspects(findings: list[Finding], known: list[Release]) -> list[Finding]:
    """Findings with the releases between their two sides that have no results."""
    by_line: dict[tuple[str, str], list[str]] = defaultdict(list)
    for release in known:
        by_line[release.dbms, release.line].append(release.version)
    named = []
    for finding in findings:
        there = by_line.get((finding.dbms, finding.line), [])
        order = sort_versions(finding.dbms, {*there, finding.previous, finding.release})
        between = order[order.index(finding.previous) + 1 : order.index(finding.release)]
        named.append(finding if finding.kind == "drift" else finding.model_copy(update={"unmeasured": tuple(between)}))
    return named


def _with_lines(findings: list[Finding], series: list[Series]) -> list[Finding]:
    """Findings that every line shares become one environment finding each."""
    by_dbms: dict[str, list[Series]] = defaultdict(list)
    for one in series:
        by_dbms[one.key.dbms].append(one)
    judged = []
    for finding in findings:
        sentence = ""
        if finding.kind in ("regression", "improvement"):
            sentence = every_line_moved(finding, findings, by_dbms[finding.dbms])
        if sentence and control_stood_still(finding, by_dbms[finding.dbms]):
            evidence = (*finding.evidence, f"{sentence} The control stood still: a change that came to every line.")
            finding = finding.model_copy(update={"evidence": evidence})
        elif sentence:
            key = finding_key(finding.dbms, finding.line, finding.release, "environment")
            evidence = (*finding.evidence, sentence)
            finding = finding.model_copy(
                update={"kind": "environment", "cause": "machine", "key": key, "evidence": evidence}
            )
        judged.append(finding)
    return judged


def _in_order(findings: list[Finding]) -> list[Finding]:
    """Findings sorted, those with one key (both directions of an environment shift) made one."""
    by_key: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda f: (f.key, f.previous, [move.key.id for move in f.moves])):
        other = by_key.get(finding.key)
        if other is not None:
            finding = _merged(other, finding)
        by_key[finding.key] = finding
    place: dict[tuple[str, str], list[str]] = {}
    for dbms in sorted({finding.dbms for finding in by_key.values()}):
        versions = {finding.release for finding in by_key.values() if finding.dbms == dbms}
        place[dbms, ""] = sort_versions(dbms, versions)
    return sorted(
        by_key.values(),
        key=lambda f: (f.dbms, f.line, place[f.dbms, ""].index(f.release), KINDS.index(f.kind)),
    )


def _merged(one: Finding, other: Finding) -> Finding:
    moves = {move.key.id: move for move in (*one.moves, *other.moves)}
    groups = {(g.server, g.metric, g.group, g.worst_test): g for g in (*one.groups, *other.groups)}
    moved = {key[:3] for key, group in groups.items() if group.moved}
    groups = {key: group for key, group in groups.items() if group.moved or key[:3] not in moved}
    return one.model_copy(
        update={
            "moves": tuple(moves[key] for key in sorted(moves)),
            "groups": tuple(groups[key] for key in sorted(groups)),
            "evidence": tuple(dict.fromkeys((*one.evidence, *other.evidence))),
            "warnings": tuple(sorted({*one.warnings, *other.warnings})),
            "tier": max(one.tier, other.tier, key=TIERS.index),
        }
    )
