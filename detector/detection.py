"""Series in, findings out: the whole detector as one pure function of the history and the settings.

    family -> its boundaries (`parts`) -> one finding per boundary and kind -> origin, confirmation, evidence

The same series give the same findings, byte for byte, in any order of arrival.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from detector.attribution import NOT_JOINED, control_stood_still, every_line_moved, one_of_each, origin
from detector.confirmation import confirm
from detector.counted import unexplained_sentence, with_counted
from detector.directions import OPPOSITE, traded
from detector.evidence import of_trade
from detector.parts import Part, parts_of
from detector.releases.epochs import comparable_at
from detector.releases.families import families
from detector.settings import DetectorSettings
from history.group_summaries import groups_of
from history.metrics import MetricRegistry
from history.model import (
    TIERS,
    BlockEvidence,
    Cause,
    Finding,
    FindingKind,
    Move,
    Release,
    Series,
    Tier,
    carried_by,
    finding_key,
)
from history.versions import build_mark, sort_versions, version_key

#: Kinds in the order in which findings of one boundary are listed.
KINDS: tuple[FindingKind, ...] = ("regression", "improvement", "environment", "drift")


def detect(
    series: Iterable[Series], settings: DetectorSettings | None = None, releases: Iterable[Release] = ()
) -> list[Finding]:
    """All findings in `series`, sorted by dbms, line, release and kind.

    `releases` are those that exist, measured or not: what lies between the two sides of a boundary is named as suspect.
    """
    settings = settings or DetectorSettings()
    everything = list(series)
    parts = [part for members in families(everything).values() for part in parts_of(members, settings)]
    return join(parts, everything, settings, releases)


def join(
    parts: Iterable[Part], series: Iterable[Series], settings: DetectorSettings, releases: Iterable[Release] = ()
) -> list[Finding]:
    """Findings from the boundaries of all families, in whatever order they were scanned."""
    by_id = {member.key.id: member for member in series}
    boundaries: dict[tuple[str, str, str, FindingKind], list[Part]] = defaultdict(list)
    for part in sorted(parts, key=lambda part: (part.previous, part.moves[0].key.id)):
        boundaries[part.dbms, part.line, part.release, part.kind].append(part)
    moved: dict[tuple[str, str, str], list[Move]] = defaultdict(list)
    for (dbms, line, release, kind), of_kind in boundaries.items():
        if kind in OPPOSITE:
            moved[dbms, line, release] += [move for part in of_kind for move in part.moves]
    findings = [
        _finding(of_kind, by_id, moved[place[:3]], settings)
        for place, of_kind in boundaries.items()
        if not all(move.near_zero for part in of_kind for move in part.moves)
    ]
    ordered = [by_id[name] for name in sorted(by_id)]
    judged = _with_lines(_with_suspects(findings, list(releases)), ordered, settings)
    return _in_order(_with_trades(judged, settings.metrics))


def _finding(
    parts: list[Part], by_id: Mapping[str, Series], moved: Sequence[Move], settings: DetectorSettings
) -> Finding:
    """One finding of all that moves at a boundary, whatever the configuration and benchmark; `moved` is what does in
    findings of every kind."""
    dbms, line, release, kind = parts[0].dbms, parts[0].line, parts[0].release, parts[0].kind
    previous = sort_versions(dbms, {part.previous for part in parts})[-1]
    previous_of = {move.key.id: part.previous for part in parts for move in part.moves}
    moves = sorted((move for part in parts for move in part.moves), key=lambda move: move.key.id)
    tests = sum((Counter(part.tests) for part in parts), Counter[tuple[str, str, str]]())
    evidence = [sentence for part in parts for sentence in part.evidence]
    cause: Cause = "product"
    tier: Tier = "provisional"
    blocks: tuple[BlockEvidence, ...] = ()
    if kind != "drift":
        joined = {
            name: comparable_at(by_id[name], left, release, settings.metrics) for name, left in previous_of.items()
        }
        if kind == "environment":
            cause, of_origin = "epoch", [NOT_JOINED]
        else:
            cause, of_origin = origin(moves, joined, previous_of, release, tests, settings.metrics, moved)
        moves = with_counted(moves, by_id, previous_of, release, settings.metrics)
        disputed = {move.key.id for part in parts if part.disputed for move in part.moves}
        tier, told, blocks, confirmation = confirm(
            kind, moves, by_id, previous_of, release, settings.metrics, disputed=disputed
        )
        moves = list(told)
        evidence += [*of_origin, *confirmation, *filter(None, [unexplained_sentence(tier, moves)])]
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
        groups=groups_of(carried_by(tier, moves), tests),
        blocks=blocks,
        evidence=tuple(dict.fromkeys(evidence)),
        warnings=tuple(warnings),
    )


def _with_suspects(findings: list[Finding], releases: list[Release]) -> list[Finding]:
    """Findings with the releases between their two sides, of their builders alone, that have no results."""
    named = []
    for finding in findings:
        place = (finding.dbms, finding.line)
        marks = {build_mark(finding.previous), build_mark(finding.release)}
        versions = {
            release.version
            for release in releases
            if (release.dbms, release.line) == place and build_mark(release.version) in marks
        }
        order = sort_versions(finding.dbms, versions | {finding.previous, finding.release})
        between = order[order.index(finding.previous) + 1 : order.index(finding.release)]
        named.append(finding if finding.kind == "drift" else finding.model_copy(update={"unmeasured": tuple(between)}))
    return named


def _with_lines(findings: list[Finding], series: list[Series], settings: DetectorSettings) -> list[Finding]:
    """Findings that every line shares become one environment finding each."""
    by_dbms: dict[str, list[Series]] = defaultdict(list)
    for member in series:
        by_dbms[member.key.dbms].append(member)
    sessions = {dbms: one_of_each(of_dbms) for dbms, of_dbms in by_dbms.items()}
    judged = []
    for finding in findings:
        sentence = ""
        if finding.kind in ("regression", "improvement"):
            sentence = every_line_moved(finding, findings, sessions[finding.dbms])
        update: dict[str, str] = {}
        if sentence and control_stood_still(finding, by_dbms[finding.dbms], settings.metrics):
            sentence += " The control stood still: a change that came to every line."
        elif sentence:
            key = finding_key(finding.dbms, finding.line, finding.release, "environment")
            update = {"kind": "environment", "cause": "machine", "key": key}
        evidence = (*finding.evidence, sentence) if sentence else finding.evidence
        judged.append(finding.model_copy(update={**update, "evidence": evidence}))
    return judged


def _with_trades(findings: list[Finding], metrics: MetricRegistry) -> list[Finding]:
    """Findings with what their tests gained, or paid, at the same boundary, where that is as sure as they are."""
    by_place = {(finding.dbms, finding.line, finding.release, finding.kind): finding for finding in findings}

    def with_trade(finding: Finding) -> Finding:
        if finding.kind not in OPPOSITE:
            return finding
        other = by_place.get((finding.dbms, finding.line, finding.release, OPPOSITE[finding.kind]))
        sure = other is not None and TIERS.index(other.tier) >= TIERS.index(finding.tier)
        trade = traded(finding.kind, finding.moves, other.moves, metrics) if other and sure else ()
        evidence = (*finding.evidence, *of_trade(finding.kind, finding.moves, trade, metrics))
        return finding.model_copy(update={"trade": trade, "evidence": evidence})

    return [with_trade(finding) for finding in findings]


def _in_order(findings: list[Finding]) -> list[Finding]:
    """Findings sorted, those with one key (both directions of an environment shift) made one."""
    by_key: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda f: (f.key, f.previous, [move.key.id for move in f.moves])):
        other = by_key.get(finding.key)
        by_key[finding.key] = _merged(other, finding) if other else finding
    return sorted(by_key.values(), key=lambda f: (f.dbms, f.line, version_key(f.dbms, f.release), KINDS.index(f.kind)))


def _merged(finding: Finding, other: Finding) -> Finding:
    moves = {move.key.id: move for move in (*finding.moves, *other.moves)}
    groups = {(g.server, g.metric, g.group, g.worst_test): g for g in (*finding.groups, *other.groups)}
    moved = {key[:3] for key, group in groups.items() if group.moved}
    groups = {key: group for key, group in groups.items() if group.moved or key[:3] not in moved}
    return finding.model_copy(
        update={
            "moves": tuple(moves[key] for key in sorted(moves)),
            "groups": tuple(groups[key] for key in sorted(groups)),
            "blocks": (*finding.blocks, *other.blocks),
            "evidence": tuple(dict.fromkeys((*finding.evidence, *other.evidence))),
            "warnings": tuple(sorted({*finding.warnings, *other.warnings})),
            "tier": max(finding.tier, other.tier, key=TIERS.index),
        }
    )
