"""Whether what moved was seen again: a tier for each move by itself, and the tier of a finding from its moves.

    sessions of the two releases, in the order in which they began
    night 1: 17.4     night 2: 17.5     night 2, later: 17.4 and 17.5     night 3: 17.4 and 17.5
    `-------- discovered -------'       `------------- measured again -------------------------'

A move is confirmed only by blocks that took no part in discovering it. Those that did are all blocks of the two
releases that ran before the first session which measured both and came when those before it already showed the move: on
one scale (`epochs`), by half of it or more, and by more than luck. That session and later ones that measured both, on
fresh data and interleaved, judge it (`compare`), and no other block does. Where the blocks before showed no such thing,
the session itself is what discovered it, and a later one judges.

The same history gives the same answer in any order of arrival.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from statistics import median
from typing import NamedTuple

from detector.attribution import blocks_at
from detector.compare import Comparison, compare
from detector.releases.epochs import of_sessions, on_one_scale
from detector.series_moves import percent
from history.metrics import MetricRegistry
from history.model import (
    BlockEvidence,
    BlockValue,
    FindingKind,
    Lane,
    Move,
    Series,
    Tier,
    goes_its_way,
)
from history.versions import version_key

#: Blocks of each side that judge a move. Counted instructions do not depend on the machine's luck.
FEWEST_BLOCKS: dict[Lane, int] = {"instructions": 1, "time": 2}
#: So many more judge a move at a boundary that the second opinion does not find.
MORE_IF_DISPUTED = 1
#: Blocks show a move when they differ its way by at least this share of it, and timed ones by so many standard errors.
#: All tests of a boundary are measured again with the one that was found there: a session in which another one is off
#: by luck has discovered that one, and cannot confirm it.
SHOWN_SHARE = 0.5
SHOWN_ERRORS: dict[Lane, float] = {"instructions": 0.0, "time": 2.0}
#: A metric is confirmed when at least this share of its moves that could be judged is seen again.
CONFIRMED_SHARE = 0.5
#: An UNKNOWN whose estimate is at least this share of the move, in its direction, does not speak against it.
LEANING = 0.25
#: Up to so many sessions are named in a sentence.
MOST_SESSIONS = 2
#: How every sentence about the blocks begins.
DISCOVERED = "Discovered in"

Blocks = dict[str, list[BlockValue]]
"""By session, in the order in which they began."""


class Sides(NamedTuple):
    """Blocks of the release before a boundary and of the release at it."""

    before: Blocks
    after: Blocks

    def of(self, sessions: Iterable[str]) -> Sides:
        """Those of these sessions, in their order."""
        names = list(sessions)
        return Sides(*({name: side[name] for name in names if name in side} for side in self))

    @property
    def blocks(self) -> set[tuple[str, str]]:
        """(session, block) of both sides."""
        return {(name, block.block_id) for side in self for name, of_session in side.items() for block in of_session}


class Judged(NamedTuple):
    """A move with its own tier, and the blocks that this rests on."""

    move: Move
    lane: Lane
    order: tuple[str, ...]
    """Sessions of its series."""
    discovered: Sides
    again: Sides


class Confirmed(NamedTuple):
    """What became of the moves of a finding."""

    tier: Tier
    moves: tuple[Move, ...]
    blocks: tuple[BlockEvidence, ...]
    sentences: tuple[str, ...]


def confirm(
    kind: FindingKind,
    moves: Sequence[Move],
    series: Mapping[str, Series],
    previous: Mapping[str, str],
    release: str,
    metrics: MetricRegistry,
    disputed: Set[str] = frozenset(),
) -> Confirmed:
    """The moves of a finding, each with its tier, and what follows; `series`, and the release before it, by series id,
    `disputed` ids of series whose boundary the second opinion does not find.

    The finding is confirmed when at least half of the judged moves of any one metric that leads (of any metric, where
    none leads) were seen again: metrics do not answer for each other. It is unconfirmed when more than half of all
    judged moves of these metrics were not seen again, and provisional otherwise. Moves that go the other way than the
    finding have no part in it, nor have those near zero.
    """
    judgements = [
        judged(move, series[move.key.id], previous[move.key.id], release, metrics, disputed=move.key.id in disputed)
        for move in moves
    ]
    told = [each.move for each in judgements]
    rows = _rows(judgements)
    return Confirmed(tier_of(kind, told, metrics), tuple(told), tuple(rows), block_sentences(rows, told, metrics))


def judged(
    move: Move, series: Series, previous: str, release: str, metrics: MetricRegistry, *, disputed: bool
) -> Judged:
    """`move` with the tier that the blocks of later sessions give it."""
    metric = metrics[move.key.metric]
    discovered, again = sides_of(move, series, previous, release, metrics)
    before, after = _on_one_level(again)
    tier: Tier = "provisional"
    judged_in = 0
    if min(len(before), len(after)) >= FEWEST_BLOCKS[metric.lane] + MORE_IF_DISPUTED * disputed:
        noise = math.log1p(move.noise_pct / 100.0)
        comparison = compare(before, after, floor_pct=metric.smallest_change_pct, noise=noise)
        tier = "confirmed" if _seen(comparison, move) else "unconfirmed" if _against(comparison, move) else tier
        judged_in = len(again.before)
    with_tier = move.model_copy(update={"tier": tier, "judged_in": judged_in})
    return Judged(with_tier, metric.lane, series.sessions, discovered, again)


def sides_of(move: Move, series: Series, previous: str, release: str, metrics: MetricRegistry) -> tuple[Sides, Sides]:
    """The blocks that discovered `move`, and those of the sessions that measured both releases again."""
    exact = Sides(_by_session(blocks_at(series, previous)), _by_session(blocks_at(series, release)))
    order = _in_order({session for point in series.points for session in point.sessions}, series.sessions)
    both = [name for name in order if name in exact.before and name in exact.after]
    for at, name in enumerate(both):
        before = order[: order.index(name)]
        earlier = exact.of(before)
        if all(earlier):
            left, right = on_one_scale(of_sessions(series, set(before)), previous, release, metrics)
            if _shows(left, right, move, metrics[move.key.metric].lane):
                return earlier, exact.of(both[at:])
    return _nearest(series, previous, release).of(order), Sides({}, {})


def _nearest(series: Series, previous: str, release: str) -> Sides:
    """Blocks of the two releases; where the series has not one of them, those of the nearest that it has: sister tests
    can place the step of a test that was measured less often."""
    low, high = (version_key(series.key.dbms, version) for version in (previous, release))
    keys = [(version_key(series.key.dbms, point.version), point) for point in series.points]
    before = [point.values for key, point in keys if key <= low][-1:] or [()]
    after = [point.values for key, point in keys if key >= high][:1] or [()]
    return Sides(_by_session(before[0]), _by_session(after[0]))


def _by_session(values: Iterable[BlockValue]) -> Blocks:
    blocks: Blocks = defaultdict(list)
    for block in values:
        blocks[block.session_id].append(block)
    return dict(blocks)


def _in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Sessions in the order in which they began; those that `order` has not come last, by name."""
    place = {name: at for at, name in enumerate(order)}
    return sorted(names, key=lambda name: (place.get(name, len(place)), name))


def _shows(before: Sequence[float], after: Sequence[float], move: Move, lane: Lane) -> bool:
    """Whether the medians of two sides differ as the move does, by enough of it and by more than luck."""
    if not before or not after:
        return False
    change = percent(median(before), median(after))
    error = move.noise_pct * math.sqrt(1.0 / len(before) + 1.0 / len(after))
    needed = max(SHOWN_SHARE * abs(move.change_pct), SHOWN_ERRORS[lane] * error)
    return change * move.change_pct > 0 and abs(change) >= needed


def _on_one_level(again: Sides) -> tuple[list[float], list[float]]:
    """Values of the two sides, each session scaled to the level of the first."""
    before: list[float] = []
    after: list[float] = []
    reference = None
    for name in again.before:
        left, right = ([block.value for block in side[name]] for side in again)
        level = math.fsum(left) / len(left)
        reference = level if reference is None else reference
        scale = reference / level if level and reference else 1.0
        before += sorted(value * scale for value in left)
        after += sorted(value * scale for value in right)
    return before, after


def _seen(comparison: Comparison, move: Move) -> bool:
    """Whether a comparison shows a difference that is the move: a sure one of a tenth of it is another."""
    own = comparison.change_pct * move.change_pct > 0 and abs(comparison.change_pct) >= SHOWN_SHARE * abs(
        move.change_pct
    )
    return comparison.verdict == "DIFFERENT" and own


def _against(comparison: Comparison, move: Move) -> bool:
    """Whether a comparison that did not see the move speaks against it; what is smaller, but sure, does not."""
    change, moved = comparison.change_pct, move.change_pct
    if comparison.verdict == "UNKNOWN":
        return change * moved < 0 or abs(change) < LEANING * abs(moved)
    return comparison.verdict == "SAME" or change * moved < 0


def tier_of(kind: FindingKind, moves: Sequence[Move], metrics: MetricRegistry) -> Tier:
    """The tier of a finding of these moves, as `confirm` says."""
    told = [move for move in moves if not move.near_zero] or list(moves)
    named = [move for move in told if goes_its_way(kind, move)] or told
    leading = [move for move in named if metrics[move.key.metric].leads] or named
    by_metric: dict[str, list[Tier]] = defaultdict(list)
    for move in leading:
        if move.judged_in:
            by_metric[move.key.metric].append(move.tier)
    if any(tiers.count("confirmed") >= CONFIRMED_SHARE * len(tiers) for tiers in by_metric.values()):
        return "confirmed"
    every = [tier for tiers in by_metric.values() for tier in tiers]
    return "unconfirmed" if every.count("unconfirmed") > len(every) / 2 else "provisional"


def _rows(judgements: Iterable[Judged]) -> list[BlockEvidence]:
    """Moves of one server, config, benchmark and lane that the same sessions measured again, in one row."""
    together: dict[tuple[str, ...], list[Judged]] = defaultdict(list)
    for each in judgements:
        key = each.move.key
        together[key.server, key.config, key.benchmark, each.lane, *each.again.before].append(each)
    rows = []
    for members in together.values():
        order = max((each.order for each in members), key=len)
        discovered, again = (
            sorted(set[tuple[str, str]]().union(*blocks))
            for blocks in ((m.discovered.blocks for m in members), (m.again.blocks for m in members))
        )
        discovered_in, again_in = (_in_order({name for name, _ in side}, order) for side in (discovered, again))
        rows.append(
            BlockEvidence(
                series=tuple(each.move.key.id for each in members),
                discovered_in=tuple(discovered_in),
                discovered=tuple(block for name in discovered_in for session, block in discovered if session == name),
                again_in=tuple(again_in),
                again=tuple(block for name in again_in for session, block in again if session == name),
            )
        )
    return sorted(rows, key=lambda row: row.series)


def block_sentences(rows: Sequence[BlockEvidence], moves: Iterable[Move], metrics: MetricRegistry) -> tuple[str, ...]:
    """What the blocks of each row say of its moves, which are among `moves`."""
    by_id = {move.key.id: move for move in moves}
    return tuple(_sentence(row, [by_id[name] for name in row.series], metrics, alone=len(rows) == 1) for row in rows)


def _sentence(row: BlockEvidence, moves: Sequence[Move], metrics: MetricRegistry, *, alone: bool) -> str:
    """What the blocks of a row say; the place is named unless the row is `alone`."""
    key = moves[0].key
    lane = metrics[key.metric].lane
    place = "" if alone else f" on {key.server} ({key.benchmark}, {key.config}, {lane} lane)"
    found = f"{DISCOVERED} {_blocks(row.discovered)} of {_sessions(row.discovered_in)}{place}"
    if not row.again:
        return f"{found}; not confirmed: no later session has measured both sides."
    blocks = f"{_blocks(row.again)} of {_sessions(row.again_in)}"
    tiers = [move.tier for move in moves if move.judged_in]
    if not tiers:
        return f"{found}; measured again in {blocks}, too few to judge by."
    seen, refuted = tiers.count("confirmed"), tiers.count("unconfirmed")
    confirmed = seen >= CONFIRMED_SHARE * len(tiers)
    verb = "confirmed by" if confirmed else "measured again in"
    rest = f", {refuted} {'was' if refuted == 1 else 'were'} not" if refuted else ""
    more = "" if confirmed or refuted > len(tiers) / 2 else "; more blocks are needed"
    of = f"{len(tiers)} {'move' if len(tiers) == 1 else 'moves'}"
    were = "was" if len(tiers) == 1 else "were"
    return f"{found}; {verb} {blocks}, measured side by side: {seen} of {of} {were} seen again{rest}{more}."


def _blocks(names: Sequence[str]) -> str:
    return f"{len(names)} {'block' if len(names) == 1 else 'blocks'}"


def _sessions(names: Sequence[str]) -> str:
    """`session A`, `sessions A and B`, or how many and the two ends."""
    if len(names) > MOST_SESSIONS:
        return f"{len(names)} sessions, {names[0]} to {names[-1]}"
    return f"{'session' if len(names) == 1 else 'sessions'} {' and '.join(names)}"
