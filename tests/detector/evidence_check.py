"""Checks what a finding's evidence says about blocks, sessions, tests and moves against the blocks themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from detector.attribution import SIDE_BY_SIDE
from detector.releases.epochs import comparable
from detector.releases.metric_kinds import COSTS, kind_of
from history.metrics import MetricRegistry, shipped_metrics
from history.model import BlockEvidence, Finding, Move, Series, carrying_moves

#: A sentence with one of these is about blocks, and has to be known here.
COUNTED = re.compile(r"\b(?:\d+|one|two|no)(?: of \d+)?(?: more)? (?:blocks?|sessions?|tests?|moves?)\b", re.IGNORECASE)


@dataclass
class Evidence:
    """One finding and the series it was made of."""

    finding: Finding
    series: Mapping[str, Series]
    metrics: MetricRegistry

    def moves(self, **wanted: str) -> list[Move]:
        """Those of which these parts of the key are so."""
        return [
            move
            for move in self.finding.moves
            if all(getattr(move.key, name) == value for name, value in wanted.items())
        ]

    def measured(self, metrics: Iterable[str], **wanted: str) -> set[int]:
        """Tests measured on both sides of the boundary: of whole series, or of what is joined to its newest release."""
        names = set(metrics)
        counts = set()
        for part in (lambda one: one, lambda one: comparable(one, self.metrics)[0]):
            tests = set()
            for one in self.series.values():
                key = one.key
                here = (key.dbms, key.line) == (self.finding.dbms, self.finding.line) and key.metric in names
                if here and all(getattr(key, name) == value for name, value in wanted.items()):
                    versions = [point.version for point in part(one).points]
                    after = [position_of(one, version) for version in versions]
                    if any(self.is_before(one, at) for at in after) and not all(
                        self.is_before(one, at) for at in after
                    ):
                        tests.add(key.test)
            counts.add(len(tests))
        return counts

    def is_before(self, one: Series, position: int) -> bool:
        """Whether a position of a series lies before the release."""
        places = [
            position_of(other, self.finding.release)
            for other in self.series.values()
            if (other.key.dbms, other.key.line) == (one.key.dbms, one.key.line)
            and any(point.version == self.finding.release for point in other.points)
        ]
        return position < max(places)


def position_of(one: Series, version: str) -> int:
    return next(point.position for point in one.points if point.version == version)


def check(finding: Finding, series: Iterable[Series], metrics: MetricRegistry | None = None) -> int:
    """How many sentences were checked; AssertionError for one that the blocks do not bear out, or that nobody knows."""
    found = Evidence(finding, {one.key.id: one for one in series}, metrics or shipped_metrics())
    check_rows(found)
    checked = 0
    for sentence in finding.evidence:
        for pattern, test in SENTENCES:
            if match := re.fullmatch(pattern, sentence):
                assert test(found, match), f"{finding.key}: {sentence}"
                checked += 1
                break
        else:
            assert not COUNTED.search(sentence), f"nobody checks: {sentence}"
    return checked


def check_rows(found: Evidence) -> None:
    """Every block that a finding names is there, took part in one thing only, and judged where it could."""
    finding = found.finding
    named = [name for row in finding.blocks for name in row.series]
    if finding.kind == "drift":
        assert not named
    else:
        assert sorted(named) == sorted(move.key.id for move in finding.moves)
    by_id = {move.key.id: move for move in finding.moves}
    for row in finding.blocks:
        assert not set(row.discovered) & set(row.again) and not set(row.discovered_in) & set(row.again_in)
        assert row.discovered and len(set(row.discovered)) == len(row.discovered)
        listed = {"discovered": set[str](), "again": set[str]()}
        for name in row.series:
            one, move = found.series[name], by_id[name]
            order = {session: at for at, session in enumerate(one.sessions)}
            held = {
                (point.version, block.session_id): [
                    b.block_id for b in point.values if b.session_id == block.session_id
                ]
                for point in one.points
                for block in point.values
            }
            for session in row.again_in:
                sides = [held[version, session] for version in (side_before(one, row, finding), finding.release)]
                assert all(sides), "measured side by side"
                assert all(order[session] > order[first] for first in row.discovered_in if first in order)
                listed["again"].update(*sides)
            listed["discovered"].update(
                block for (_, session), blocks in held.items() if session in row.discovered_in for block in blocks
            )
            assert move.judged_in in (0, len(row.again_in))
            assert move.tier == "provisional" or move.judged_in
        assert set(row.again) == listed["again"]
        assert set(row.discovered) <= listed["discovered"]
    assert finding.tier == "provisional" or any(move.tier == finding.tier for move in finding.moves)
    assert all(move.tier == finding.tier for move in carrying_moves(finding)) or finding.tier != "confirmed"


def side_before(one: Series, row: BlockEvidence, finding: Finding) -> str:
    """The release that these sessions measured beside the new one; of several boundaries of one finding, this one's."""
    again = set(row.again)
    of_row = [point.version for point in one.points if any(block.block_id in again for block in point.values)]
    return next(version for version in reversed(of_row) if version != finding.release)


def tests_moved(found: Evidence, match: re.Match[str]) -> bool:
    """Of a server, config and benchmark; where several parts of a finding speak of it, their numbers add up."""
    place = match.groupdict()
    wanted = {name: place[name] for name in ("server", "config", "benchmark")}
    moved = found.moves(**wanted)
    mine = [
        other
        for sentence in found.finding.evidence
        if (other := re.fullmatch(TESTS_MOVED, sentence)) and all(other[name] == wanted[name] for name in wanted)
    ]
    total = sum(int(other["moved"]) for other in mine)
    # What point releases explain whole is counted here, and said to be left out below.
    whole = [one.key for one in found.finding.explained if one.whole and not found.finding.wholly_explained]
    whole = [key for key in whole if all(getattr(key, name) == value for name, value in wanted.items())]
    actual = len({move.key.test for move in moved} | {key.test for key in whole})
    older = any("older set-up" in sentence for sentence in found.finding.evidence)
    environment = found.finding.kind == "environment"  # one of two parts whose sentences are the same is left out
    measured = found.measured({move.key.metric for move in found.moves(config=wanted["config"])}, **wanted)
    of = int(match["tests"])
    return (total == actual or (older and total < actual) or (environment and 2 * total == actual)) and (
        of in measured or (len(mine) > 1 and of <= max(measured)) or (environment and of <= max(measured))
    )


def metric_moved(found: Evidence, match: re.Match[str]) -> bool:
    """Some config and benchmark has just these numbers on each server."""
    metric = match["metric"]
    for config, benchmark in {(move.key.config, move.key.benchmark) for move in found.moves(metric=metric)}:
        place = {"config": config, "benchmark": benchmark}
        servers = sorted({move.key.server for move in found.moves(**place)})
        told = re.findall(r"(\d+) of (\d+) tests?(?: on (\S+))?", match["counts"] or "")
        if all(
            int(moved) <= len({m.key.test for m in found.moves(metric=metric, server=server or servers[0], **place)})
            and int(of) <= max(found.measured([metric], server=server or servers[0], **place))
            for moved, of, server in told
        ):
            return True
    return False


def two_blocks(found: Evidence, match: re.Match[str]) -> bool:
    of = sum(int(other[2]) for sentence in found.finding.evidence if (other := re.fullmatch(TWO_BLOCKS, sentence)))
    both = [move for move in found.finding.moves if min(nearest_blocks(found, move)) >= 2]
    told = 0 if found.finding.wholly_explained else sum(one.whole for one in found.finding.explained)
    return int(match[1]) <= len(both) + told and of <= len(found.finding.moves) + told


def no_two_blocks(found: Evidence, match: re.Match[str]) -> bool:
    return any(min(nearest_blocks(found, move)) < 2 for move in found.finding.moves)


def nearest_blocks(found: Evidence, move: Move) -> tuple[int, int]:
    """Blocks of the nearest measured release on either side."""
    one = found.series[move.key.id]
    before = [len(point.values) for point in one.points if found.is_before(one, point.position)]
    after = [len(point.values) for point in one.points if not found.is_before(one, point.position)]
    return (before or [0])[-1], (after or [0])[0]


def agreeing(found: Evidence, match: re.Match[str]) -> bool:
    everything = (*found.finding.moves, *found.finding.trade)
    kinds = {move.key.id: kind_of(found.metrics[move.key.metric]) for move in everything}
    rates = {(m.key.server, m.key.config, m.key.test) for m in found.finding.moves if kinds[m.key.id] == "throughput"}
    costs = {(m.key.server, m.key.config, m.key.test) for m in everything if kinds[m.key.id] in COSTS}
    numbers = [(int(a), int(b)) for a, b in re.findall(r"(\d+) of (\d+) tests? that moved in throughput", match[0])]
    return all(told <= len(rates & costs) and of <= len(rates) for told, of in numbers)


def one_session(found: Evidence, match: re.Match[str]) -> bool:
    """All moves share a session of both sides; or each has one."""
    shared = []
    for move in found.finding.moves:
        one = found.series[move.key.id]
        sessions = {point.version: {block.session_id for block in point.values} for point in one.points}
        after = sessions.get(found.finding.release, set())
        shared.append(set().union(*(after & sessions[v] for v in sessions if v != found.finding.release)))
    return bool(all(shared) if match[0].startswith(SIDE_BY_SIDE) else set.intersection(*shared))


def explained(found: Evidence, match: re.Match[str]) -> bool:
    return int(match[1]) <= int(match[2]) <= len(found.finding.moves)


def alike(found: Evidence, match: re.Match[str]) -> bool:
    moved = found.moves(server=match[3], metric=match[4])
    return int(match[1]) == len(moved) and int(match[1]) <= int(match[2])


def idle(found: Evidence, match: re.Match[str]) -> bool:
    moved = found.moves(server=match[2])
    fast = {move.key.test for move in moved if kind_of(found.metrics[move.key.metric]) == "throughput"}
    costly = {move.key.test for move in moved if kind_of(found.metrics[move.key.metric]) in COSTS}
    one_block = any(min(nearest_blocks(found, move)) < 2 for move in moved)
    return int(match[1]) == len(fast) and int(match[3]) == len(fast & costly) and one_block


def drifted(found: Evidence, match: re.Match[str]) -> bool:
    moves = found.moves(benchmark=match[1], config=match[2], metric=match[3])
    return int(match[4]) == len({move.key.test for move in moves})


def plans(found: Evidence, match: re.Match[str]) -> bool:
    tests = {move.key.test for move in found.finding.moves}
    return (int(match[1]), int(match[2])) == (len({plan.test for plan in found.finding.plans}), len(tests))


def unexplained(found: Evidence, match: re.Match[str]) -> bool:
    doubted = [m for m in found.finding.moves if m.counted_pct is not None and m.tier != "confirmed"]
    worst = [m for m in doubted if (m.key.test, m.key.metric) == (match["test"], match["metric"])]
    told = [float(match[name].replace("−", "-")) for name in ("change", "counted")]
    return int(match["count"]) == len(doubted) and told in [
        [float(f"{value:.{1 if abs(value) >= 0.995 else 2}f}") for value in (m.change_pct, m.counted_pct)]
        for m in worst
        if m.counted_pct is not None
    ]


def older(found: Evidence, match: re.Match[str]) -> bool:
    return int(match[1]) < len(found.finding.moves)


def discovered(found: Evidence, match: re.Match[str]) -> bool:
    """Blocks, sessions, moves and what became of them, as some row of blocks has them."""
    by_id = {move.key.id: move for move in found.finding.moves}

    def sessions(names: tuple[str, ...]) -> str:
        if len(names) > 2:
            return f"{len(names)} sessions, {names[0]} to {names[-1]}"
        return f"session{'s' if len(names) > 1 else ''} {' and '.join(names)}"

    for row in found.finding.blocks:
        moves = [by_id[name] for name in row.series]
        place = " on {0.server} ({0.benchmark}, {0.config}, {1} lane)".format(
            moves[0].key, found.metrics[moves[0].key.metric].lane
        )
        tiers = [move.tier for move in moves if move.judged_in]
        rest = match["rest"]
        first = int(match["blocks"]) == len(row.discovered) and match["sessions"].removesuffix(place) == sessions(
            row.discovered_in
        )
        if not row.again:
            if first and rest == "not confirmed: no later session has measured both sides":
                return True
            continue
        again = f" {len(row.again)} block{'s' if len(row.again) > 1 else ''} of {sessions(row.again_in)}, "
        seen, refuted = tiers.count("confirmed"), tiers.count("unconfirmed")
        if not tiers:
            said = rest == f"measured again in{again}too few to judge by"
        else:
            numbers = [int(number) for number in re.findall(r"\d+", rest.partition("side by side: ")[2])]
            said = numbers == [seen, len(tiers), *([refuted] if refuted else [])]
            said = said and rest.startswith(("confirmed by" if 2 * seen >= len(tiers) else "measured again in") + again)
        if first and said:
            return True
    return False


TESTS_MOVED = (
    r"(?P<server>\S+) \((?P<benchmark>[^,]+), (?P<config>[^)]+)\): (?P<moved>\d+) of (?P<tests>\d+) tests? moved"
    r"(?:, in one metric or more)?\."
)
TWO_BLOCKS = r"(\d+) of (\d+) moves? (?:has|have) two or more blocks of both sides\."
AGREEING = r"\d+ of \d+ tests? that moved in throughput moved in CPU cost the (?:same way|other way.*)\."


#: What a sentence looks like, and what says whether it is true.
def joined(found: Evidence, match: re.Match[str]) -> bool:
    """No more than the sessions that timed a series of the server that moved; what is counted needs no such thing."""
    moved = [found.series[move.key.id] for move in found.moves(server=match["server"])]
    sessions = {
        name
        for one in moved
        if found.metrics[one.key.metric].lane == "time"
        for name in one.sessions or (block.session_id for point in one.points for block in point.values)
    }
    return int(match["count"]) <= len(sessions)


def not_judged(found: Evidence, match: re.Match[str]) -> bool:
    """The first metric that is named was measured on the server, and no release of it twice with two values."""
    named = [one for one in found.series.values() if one.key.line == found.finding.line]
    named = [one for one in named if (one.key.server, one.key.metric) == (match["server"], match["metric"])]
    return bool(named) and all(len({b.value for b in p.values if b.value > 0}) < 2 for one in named for p in one.points)


def left_out(found: Evidence, match: re.Match[str]) -> bool:
    """On majors what is explained; of a line what came to another one, too."""
    whole = sum(step.whole for step in found.finding.explained) if found.finding.explained else int(match[1])
    return (int(match[1]), int(match[2])) == (whole, whole + len(found.finding.moves))


SENTENCES: list[tuple[str, Callable[[Evidence, re.Match[str]], bool]]] = [
    (TESTS_MOVED, tests_moved),
    (r"(?P<metric>[^:]+): (?:(?P<counts>\d+ of .*) moved, )?noise floor .* from release to release; .*", metric_moved),
    (TWO_BLOCKS, two_blocks),
    (r"No move has two blocks of both sides: .*", no_two_blocks),
    (rf"{AGREEING}(?: {AGREEING})?", agreeing),
    (r"Both sides (?:of each move )?were measured in one session, so the machine is the same\.", one_session),
    (r"That explains (\d+) of (\d+) moves\.", explained),
    (r"(\d+) of (\d+) tests of (\S+) moved alike in (\S+) \(.*", alike),
    (r"(\d+) tests of (\S+) moved in throughput and (\d+) of them in CPU cost, with one block .*", idle),
    (r"([^,]+), ([^:]+): (.+) of (\d+) tests? changed slowly since .*", drifted),
    (r"The plan of (\d+) of (\d+) tests? that moved is another one\.", plans),
    (
        r"(?P<count>\d+) moves? of the time lane (?:is|are) not explained by counted instructions "
        r"\((?P<test>.+): (?P<metric>\S+) (?P<change>\S+) %, instructions (?P<counted>\S+) %\), .*",
        unexplained,
    ),
    (r"(\d+) of (\d+) moves are left out for that\.", left_out),
    (
        r"(?P<server>[^:]+): (?:\d+ of )?(?P<count>\d+) timed sessions (?:are compared through|has no|have no) .*",
        joined,
    ),
    (r"(?P<server>[^:]+): (?P<metric>[^ ,]+),? .*not judged: no release has two blocks that would tell .*", not_judged),
    (r"(\d+) more moves? (?:is|are) of an older set-up of the host\.", older),
    (
        r"Discovered in (?P<blocks>\d+) blocks? of (?P<sessions>[^;]+); (?P<rest>.*?)(?:; more blocks are needed)?\.",
        discovered,
    ),
]
