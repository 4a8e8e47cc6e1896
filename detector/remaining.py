"""A finding without the moves that are told elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from detector.confirmation import DISCOVERED, block_sentences, tier_of
from detector.evidence import PLANS, plans_sentence
from detector.settings_split import of_tests
from history.group_summaries import groups_of
from history.metrics import MetricRegistry
from history.model import Finding, Move, carried_by


def with_moves(finding: Finding, left: Sequence[Move], metrics: MetricRegistry) -> Finding:
    """`finding` as it were with the moves `left` alone: its tier and all that is told of moves follow from them."""
    tests = {(group.server, group.metric, group.group): group.tests for group in finding.groups}
    moved = {move.key.test for move in left}
    series = {move.key.id for move in left}
    places = {_place(move) for move in left}
    of_left = (row.model_copy(update={"series": tuple(s for s in row.series if s in series)}) for row in finding.blocks)
    rows = [row for row in of_left if row.series]
    plans = tuple(change for change in finding.plans if change.test in moved)
    tier = tier_of(finding.kind, left, metrics)
    return finding.model_copy(
        update={
            "moves": tuple(left),
            "tier": tier,
            "trade": tuple(move for move in finding.trade if _place(move) in places),
            "blocks": tuple(rows),
            "evidence": _replaced(
                _replaced(finding.evidence, DISCOVERED, block_sentences(rows, left, metrics)),
                PLANS,
                [plans_sentence(len({change.test for change in plans}), len(moved))] if plans else [],
            ),
            "groups": groups_of(carried_by(tier, left), tests),
            **_split_of(finding, left),
            "functions": tuple(change for change in finding.functions if change.test in moved),
            "plans": plans,
            "warnings": tuple(sorted({warning for move in left for warning in move.warnings})),
        }
    )


def _split_of(finding: Finding, left: Iterable[Move]) -> dict[str, object]:
    """What the moves that are left are made of, settings or code, where that was measured."""
    if not finding.split:
        return {}
    split = of_tests(finding.split, {(move.key.test, move.key.metric) for move in left})
    caused = finding.cause == finding.split.cause
    return {"split": split, **({"cause": split.cause} if caused and split and split.cause else {})}


def _replaced(evidence: Sequence[str], beginning: str, sentences: Sequence[str]) -> tuple[str, ...]:
    """`evidence` with `sentences` at the place of those that begin so."""
    others = [text for text in evidence if not text.startswith(beginning)]
    at = next((place for place, text in enumerate(evidence) if text.startswith(beginning)), len(evidence))
    return (*others[:at], *sentences, *others[at:])


def _place(move: Move) -> tuple[str, str, str, str]:
    return move.key.server, move.key.config, move.key.benchmark, move.key.test


def left_out_sentence(left: Sequence[Move], finding: Finding) -> str:
    """How many moves of `finding` are not among those that are `left`."""
    return f"{len(finding.moves) - len(left)} of {len(finding.moves)} moves are left out for that."
