"""The sentences of a finding: its evidence, the noise of its series, and what one of them would show by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from detector.releases.families import Family
from detector.releases.metric_kinds import COSTS, kind_of
from detector.releases.series_steps import PanelSteps
from detector.wording import count, signed, span
from history.metrics import MetricRegistry
from history.model import Move

#: A common shift smaller than this (log units) is not worth a sentence.
WORTH_SAYING = 0.003
#: A median of fewer tests says nothing true, as in `presentation`.
FEWEST_FOR_MEDIAN = 5
#: What the independent method says of a boundary (`releases/panel_segments.py`).
AGREES = "Another method (ruptures, on all tests as one signal) finds the boundary as well."
DIFFERS = "Another method (ruptures, on all tests as one signal) does not find the boundary."
CANNOT_TELL = (
    "Another method (ruptures, on all tests as one signal) cannot tell: too few tests moved, or too little, for it to "
    "find the boundary."
)
#: So many tests are named in a sentence, more are counted.
MOST_NAMED = 3


def of_boundary(
    family: Family, panel_steps: PanelSteps, release: int, moves: Sequence[Move], moved: Sequence[Move] = ()
) -> tuple[str, ...]:
    """Sentences about one boundary of one family; `release` is its index, `moves` those of one finding, `moved` all
    that moves there."""
    panel = family.panel
    place = f"{family.benchmark}, {family.config}"
    kinds = {move.key.metric: kind_of(family.metrics[move.key.metric]) for move in moves}
    metrics = sorted(kinds, key=lambda metric: (kinds[metric] != "throughput", metric))
    servers = sorted({move.key.server for move in moves})
    together = ", in one metric or more" if len(metrics) > 1 else ""
    sentences = [
        f"{server} ({place}): {_counted(family, release, moves, server, metrics)} moved{together}."
        for server in servers
    ]
    for metric in metrics:
        of_metric = [move for move in moves if move.key.metric == metric]
        counts = {server: _counted(family, release, of_metric, server, [metric]) for server in servers}
        spread = " and ".join(f"{count} on {server}" if len(servers) > 1 else count for server, count in counts.items())
        noise = span([move.noise_pct for move in of_metric])
        smallest = span([move.mde_pct for move in of_metric])
        each = "the test" if len(of_metric) == 1 else "each test"
        sentences.append(
            f"{metric}: {f'{spread} moved, ' if together else ''}noise floor {noise} from release to release; "
            f"smallest detectable change of {each} by itself {smallest}."
        )
    both = [move for move in moves if min(move.blocks_before, move.blocks_after) >= 2]
    if both:
        has = "has" if len(both) == 1 else "have"
        sentences.append(f"{len(both)} of {count(len(moves), 'move')} {has} two or more blocks of both sides.")
    else:
        sentences.append("No move has two blocks of both sides: sister tests and metrics carry the evidence.")
    sentences.append(_second_opinion(family, panel_steps, release, moves))
    agreeing = _agreeing(moves, family.metrics, moved)
    if agreeing:
        sentences.append(agreeing)
    near_zero = [move for move in moves if move.near_zero]
    if near_zero:
        sentences.append(f"Near zero, so told in units: {_in_words(near_zero, family.metrics)}.")
    throughput = family.metrics.first("throughput")
    if throughput in panel.metrics:
        shifts = panel_steps.shift[panel.metrics.index(throughput), :, release]
        for server, shift in zip(panel.servers, shifts.tolist(), strict=True):
            if abs(shift) >= WORTH_SAYING:
                sentences.append(
                    f"{server}: a shift of {signed(100.0 * np.expm1(shift))} common to all quiet tests of "
                    f"{panel.releases[release]} was taken away first."
                )
    return tuple(sentences)


def _second_opinion(family: Family, panel_steps: PanelSteps, release: int, moves: Sequence[Move]) -> str:
    """Where what moved was not measured at every release, its step may lie at any of those in between."""
    before = max((at for at in family.measured_at(moves) if at < release), default=release - 1)
    places = range(before + 1, release + 1)
    if any(place in places for place in panel_steps.second_opinion):
        return AGREES
    return CANNOT_TELL if panel_steps.too_small_for_second_opinion(places) else DIFFERS


def _counted(family: Family, release: int, moves: Sequence[Move], server: str, metrics: Sequence[str]) -> str:
    """`2 of 8 tests`: those that moved on the server, and all measured there on both sides, in these metrics."""
    measured = {
        member.key.test
        for member in family.series.values()
        if member.key.server == server and member.key.metric in metrics and family.has_both_sides(member, release)
    }
    moved = {move.key.test for move in moves if move.key.server == server}
    return f"{len(moved)} of {count(len(measured), 'test')}"


def _agreeing(moves: Sequence[Move], metrics: MetricRegistry, moved: Sequence[Move] = ()) -> str:
    """How many of the tests that moved in throughput say the same, or the opposite, in CPU per operation or
    instructions, here or in the finding of the other direction: less work done at less cost each is time spent
    waiting, more work done at more cost each is bought with CPU."""

    def kind(move: Move) -> str:
        return kind_of(metrics[move.key.metric])

    rate = {(move.key.server, move.key.test): move.direction for move in moves if kind(move) == "throughput"}
    cost = {(move.key.server, move.key.test, move.direction) for move in (*moves, *moved) if kind(move) in COSTS}
    if not rate or not cost:
        return ""
    same = sum((*place, direction) in cost for place, direction in rate.items())
    other = sum(
        (*place, opposite) in cost and (*place, direction) not in cost
        for place, direction in rate.items()
        for opposite in ("regression", "improvement")
        if opposite != direction
    )
    of = f"of {len(rate)} {'test' if len(rate) == 1 else 'tests'} that moved in throughput"
    sentences = [f"{same} {of} moved in CPU cost the same way."] if same or not other else []
    if other:
        bought = set(rate.values()) == {"improvement"}
        why = "the gain is paid for with CPU" if bought else "look at waits, not at CPU"
        sentences.append(f"{other} {of} moved in CPU cost the other way: {why}.")
    return " ".join(sentences)


#: How the sentence about plans begins.
PLANS = "The plan of"


def plans_sentence(changed: int, tests: int) -> str:
    """How many of the tests that moved have another plan."""
    return f"{PLANS} {changed} of {tests} {'test' if tests == 1 else 'tests'} that moved is another one."


def older_sentence(moves: Sequence[Move]) -> str:
    """About moves that an older set-up of the host alone shows, which is judged by itself."""
    return f"{len(moves)} more {'move is' if len(moves) == 1 else 'moves are'} of an older set-up of the host."


def of_trade(kind: str, moves: Sequence[Move], trade: Sequence[Move], metrics: MetricRegistry) -> tuple[str, ...]:
    """Sentences about what the tests of a finding of `kind` did besides: what is in the finding of the other kind, and
    of an improvement what got worse with it."""
    sentences = []
    if trade:
        better = "better" if kind == "regression" else "worse"
        sentences.append(f"The same tests got {better} in another resource: {_in_words(trade, metrics)}.")
    worse = [move for move in moves if move.direction == "regression"] if kind == "improvement" else []
    if worse:
        sentences.append(f"Worse in the same tests: {_in_words(worse, metrics)}.")
    return tuple(sentences)


def _in_words(moves: Sequence[Move], metrics: MetricRegistry) -> str:
    """`indexed rows/s +17.8 % (l.x), CPU per operation +3.0 to +9.1 % (4 tests)`: metric by metric, by rank."""
    phrases = []
    for name in metrics.ranked(move.key.metric for move in moves):
        of_metric = sorted((move for move in moves if move.key.metric == name), key=lambda move: move.change_pct)
        tests = sorted({move.key.test for move in of_metric})
        where = ", ".join(tests) if len(tests) <= MOST_NAMED else f"{len(tests)} tests"
        if any(move.near_zero for move in of_metric):
            largest = max(of_metric, key=lambda move: (abs(move.after - move.before), move.key.id))
            change = f"{largest.before:.4g} → {largest.after:.4g} {largest.unit}".rstrip()
            change = change if len(of_metric) == 1 else f"at most {change}"
        else:
            change = span([move.change_pct for move in of_metric], signed)
        phrases.append(f"{metrics[name].noun} {change} ({where})")
    return ", ".join(phrases)


def of_drift(family: Family, moves: Sequence[Move], first: str) -> tuple[str, ...]:
    """Sentences about a slow drift."""
    sentences = []
    for metric in sorted({move.key.metric for move in moves}):
        of_metric = [move for move in moves if move.key.metric == metric]
        tests = len({move.key.test for move in of_metric})
        worst = max(of_metric, key=lambda move: abs(move.change_pct))
        text = (
            f"{family.benchmark}, {family.config}: {metric} of {tests} {'test' if tests == 1 else 'tests'} changed "
            f"slowly since {first}, worst {signed(worst.change_pct)} ({worst.key.test})"
        )
        if tests >= FEWEST_FOR_MEDIAN:
            text += f", median {signed(float(np.median([move.change_pct for move in of_metric])))}"
        sentences.append(f"{text}.")
    return *sentences, "No single release took most of it; steps that were found are not counted in."
