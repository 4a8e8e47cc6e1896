"""The boundaries of one family of series: what one (config, benchmark) adds to the findings of its line. Pure.

family -> scan -> steps -> moves -> one part per boundary and kind
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_high

from detector.directions import by_kind
from detector.drift import drifts, first_ga, move_of_drift
from detector.evidence import DIFFERS, of_boundary, of_drift, older_sentence
from detector.releases.epochs import breaks, judged_apart
from detector.releases.families import Family, aligned, family_of
from detector.releases.scan import scan_panel
from detector.releases.series_steps import PanelSteps, read_steps
from detector.series_moves import moves_of
from detector.settings import DetectorSettings
from history.model import FindingKind, Move, Series

#: A level needs two releases on either side of a boundary.
FEWEST_RELEASES = 2


@dataclass(frozen=True)
class Part:
    """A boundary in one family: what one (config, benchmark) adds to a finding."""

    dbms: str
    line: str
    kind: FindingKind
    previous: str
    release: str
    moves: tuple[Move, ...]
    evidence: tuple[str, ...]
    tests: dict[tuple[str, str, str], int]
    """Tests measured by (server, metric, group)."""
    disputed: bool = False
    """Whether the second opinion does not find the boundary."""


def parts_of(series: Sequence[Series], settings: DetectorSettings) -> list[Part]:
    """The boundaries of one family: all series of one (dbms, line, config, benchmark)."""
    return [boundary for together in aligned(series, settings.metrics) for boundary in _of_aligned(together, settings)]


def _of_aligned(series: Sequence[Series], settings: DetectorSettings) -> list[Part]:
    """The boundaries of series of one axis; epochs, and sessions of timed values, that nothing joins are judged apart.

    Where two of them show the same boundary the newer one is told, and of the older one what only it shows: in a part
    of its own where another release stood before the boundary there.
    """
    first, *others = judged_apart(series, settings.metrics)
    parts = {(part.release, part.kind, part.previous): part for part in _boundaries(first, settings)}
    for older in others:
        for part in _boundaries(older, settings):
            same = [known for place, known in parts.items() if place[:2] == (part.release, part.kind)]
            shown = {move.key for known in same for move in known.moves}
            more = tuple(move for move in part.moves if move.key not in shown)
            known = parts.get((part.release, part.kind, part.previous))
            if known:
                tests = dict(Counter(known.tests) | Counter(part.tests))
                said = (*known.evidence, *([older_sentence(more)] if more else []))
                part = replace(known, moves=(*known.moves, *more), tests=tests, evidence=said)
            elif same and more:
                counted = sum((Counter(other.tests) for other in same), Counter[tuple[str, str, str]]())
                tests = dict(Counter(part.tests) - counted)
                part = replace(part, moves=more, tests=tests, evidence=(older_sentence(more),))
            if known or more:
                parts[part.release, part.kind, part.previous] = part
    return [*parts.values(), *(_breaks(series, settings) if others else ())]


def _breaks(series: Sequence[Series], settings: DetectorSettings) -> list[Part]:
    """What reads differently where one epoch ends and another begins that nothing joins to it."""
    breaks_of = {member.key.id: breaks(member, settings.metrics) for member in series}
    if not any(breaks_of.values()):
        return []
    family = family_of(series, settings.metrics)
    versions = family.panel.releases
    scan = scan_panel(family.panel)
    panel_steps = read_steps(scan, settings.probability)
    parts = []
    for release, moves in moves_of(family, scan, panel_steps, settings.probability).items():
        across = [
            move
            for move in moves
            if any(versions.index(left) < release <= versions.index(right) for left, right in breaks_of[move.key.id])
        ]
        if across:
            sentences = (*of_boundary(family, panel_steps, release, across), *family.notes(across))
            parts.append(_part(family, "environment", release - 1, release, across, sentences))
    return parts


def _boundaries(series: Sequence[Series], settings: DetectorSettings) -> list[Part]:
    if len({point.position for member in series for point in member.points}) < FEWEST_RELEASES:
        return []
    family = family_of(series, settings.metrics)
    scan = scan_panel(family.panel)
    panel_steps = read_steps(scan, settings.probability)
    parts = []
    for release, moves in _placed(family, moves_of(family, scan, panel_steps, settings.probability)).items():
        for kind, of_kind in by_kind(moves, settings.metrics).items():
            sentences = (*of_boundary(family, panel_steps, release, of_kind, moves), *family.notes(of_kind))
            previous = max(at for at in family.measured_at(of_kind) if at < release)
            part = _part(family, kind, previous, release, of_kind, sentences)
            parts.append(replace(part, disputed=DIFFERS in sentences))
    return parts + _drifts(family, panel_steps, settings)


def _placed(family: Family, moves: Mapping[int, Sequence[Move]]) -> dict[int, list[Move]]:
    """Moves by the first release from their boundary on that any of their series was measured at: what other series
    were measured at in between says nothing of these."""
    placed: dict[int, list[Move]] = defaultdict(list)
    for release, of_release in moves.items():
        placed[min(at for at in family.measured_at(of_release) if at >= release)] += of_release
    return {release: sorted(placed[release], key=lambda move: move.key.id) for release in sorted(placed)}


def _part(
    family: Family, kind: FindingKind, previous: int, release: int, moves: list[Move], evidence: tuple[str, ...]
) -> Part:
    versions = family.panel.releases
    measured = (member for member in family.series.values() if family.has_both_sides(member, release))
    tests = Counter((member.key.server, member.key.metric, member.group) for member in measured)
    sides = versions[previous], versions[release]
    return Part(family.dbms, family.line, kind, *sides, tuple(moves), evidence, dict(tests))


def _drifts(family: Family, panel_steps: PanelSteps, settings: DetectorSettings) -> list[Part]:
    """Slow drifts of one family: those for the worse, since nobody needs an issue about a slow gain."""
    panel = family.panel
    start = first_ga(panel.releases)
    drifted = drifts(family, panel_steps, math.log1p(settings.drift_pct / 100.0))
    pairs = [(drift.release, move_of_drift(family, drift, settings.drift_pct)) for drift in drifted]
    moves = [move for _, move in pairs if move.direction == "regression"]
    if not moves:
        return []
    release = median_high(release for release, move in pairs if move.direction == "regression")
    sentences = of_drift(family, moves, panel.releases[start])
    return [_part(family, "drift", start, release, moves, sentences)]
