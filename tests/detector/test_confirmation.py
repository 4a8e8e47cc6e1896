"""Seen again: only by blocks that took no part in discovering it, each move by itself, told from the blocks."""

from __future__ import annotations

import random
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detector import detect
from detector.confirmation import confirm, sides_of, tier_of
from detector.counted import explains
from history.metrics import shipped_metrics
from history.model import Finding, Move, Series, carrying_moves
from history.store import Store
from pointdrop.jobs.suspects import suspects
from presentation.findings import moves_frame
from presentation.headline import headline, title
from tests.alerts.scenarios import SCENARIOS
from tests.builders import DAY, SESSION, block, measured_again, series, series_key
from tests.builders import run as run_of
from tests.detector.evidence_check import check
from tests.detector.test_detection import suite

METRICS = shipped_metrics()
CHECKS = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
BOUNDARY = ("17.5", "17.6")


def counted(test: str, step_pct: float, sessions: list[str] | None = None, blocks: int = 1) -> Series:
    """Ten releases in one session unless named; a step from 17.6 on."""
    levels = [1000.0 * (1 + step_pct / 100 * (at >= 6)) for at in range(10)]
    values = [[level] * blocks for level in levels]
    return series(values, test=test, metric="insn/o", sessions=sessions or ["night"] * 10)


def timed(test: str, metric: str, step_pct: float, seed: int, noise: float = 0.004) -> Series:
    rng = np.random.default_rng(seed)
    levels = np.array([[1000.0 * (1 + step_pct / 100 * (at >= 6))] for at in range(10)])
    values = levels * np.exp(noise * rng.standard_normal((10, 2)))
    return series(values.tolist(), test=test, metric=metric, sessions=["night"] * 10)


def again(one: Series, session: str, step_pct: float, blocks: int = 1, noise: float = 0.0) -> Series:
    """A later session of both sides that shows a step of its own."""
    rng = np.random.default_rng(len(session) + blocks)
    values = 1000.0 * np.exp(noise * rng.standard_normal((2, blocks)))
    values[1] *= 1 + step_pct / 100
    return measured_again(one, session, dict(zip(BOUNDARY, values.tolist(), strict=True)))


def of(made: list[Series], kind: str = "regression") -> Finding:
    (finding,) = [one for one in detect(made) if one.kind == kind and one.release == "17.6"]
    check(finding, made)
    return finding


def sentence(finding: Finding) -> str:
    (found,) = [text for text in finding.evidence if text.startswith("Discovered in")]
    return found


def eight(step_pct: float) -> list[Series]:
    """Two of eight counted tests move."""
    return [counted(f"test-{n}", step_pct if n < 2 else 0.0) for n in range(8)]


def test_the_session_that_discovered_it_confirms_nothing_however_many_blocks_it_has() -> None:
    made = [counted(f"test-{n}", 3.0 if n < 2 else 0.0, blocks=6) for n in range(8)]
    finding = of(made)
    assert finding.tier == "provisional" and {move.tier for move in finding.moves} == {"provisional"}
    assert sentence(finding) == (
        "Discovered in 12 blocks of session night; not confirmed: no later session has measured both sides."
    )


def test_a_later_session_of_both_sides_confirms_and_its_blocks_are_named() -> None:
    made = [again(one, "morning", 3.0 if n < 2 else 0.0) for n, one in enumerate(eight(3.0))]
    finding = of(made)
    assert finding.tier == "confirmed" and {(move.tier, move.judged_in) for move in finding.moves} == {("confirmed", 1)}
    (row,) = finding.blocks
    assert (row.discovered_in, row.again_in) == (("night",), ("morning",))
    assert row.discovered == ("17.5/0", "17.6/0")
    assert row.again == ("morning/17.5/0", "morning/17.6/0")
    assert sentence(finding) == (
        "Discovered in 2 blocks of session night; confirmed by 2 blocks of session morning, measured side by side: "
        "2 of 2 moves were seen again."
    )
    assert moves_frame(finding, METRICS)["tier"].tolist() == ["confirmed"] * 2


def test_where_the_second_opinion_differs_one_block_more_judges() -> None:
    one = counted("test-0", 3.0)
    move = one_move(3.0, "insn/o", "test-0").model_copy(update={"key": one.key})
    once = again(one, "morning", 3.0)
    for made, agreed, disputed in ((once, "confirmed", "provisional"), (again(once, "noon", 3.0), *["confirmed"] * 2)):
        for tier, ids in ((agreed, set()), (disputed, {one.key.id})):
            found = confirm(
                "regression", [move], {one.key.id: made}, {one.key.id: "17.5"}, "17.6", METRICS, disputed=ids
            )
            assert found.tier == tier


def test_sessions_of_one_side_confirm_nothing() -> None:
    made = [
        measured_again(measured_again(one, "day-2", {"17.5": [1000.0] * 3}), "day-3", {"17.6": [1030.0] * 3})
        for one in eight(3.0)[:2]
    ] + eight(3.0)[2:]
    assert of(made).tier == "provisional"


def test_what_the_first_session_did_not_show_is_discovered_by_the_second_and_confirmed_by_a_third() -> None:
    """Where the blocks before show nothing, the move is made of the second session's, which cannot confirm it."""
    move = one_move(4.0, "insn/o", "test-0").model_copy(update={"key": counted("test-0", 0.0).key})
    second = again(counted("test-0", 0.0), "s-2", 4.0, blocks=8)
    third = again(second, "s-3", 4.0, blocks=2)
    tiers = []
    for one in (second, third):
        found = confirm("regression", [move], {one.key.id: one}, {one.key.id: "17.5"}, "17.6", METRICS)
        tiers.append((found.tier, found.blocks[0].discovered_in, found.blocks[0].again_in))
    assert tiers == [("provisional", ("night", "s-2"), ()), ("confirmed", ("night", "s-2"), ("s-3",))]


def test_what_is_measured_again_and_not_seen_is_unconfirmed() -> None:
    made = [again(counted(f"test-{n}", 3.0), "morning", 0.0) for n in range(2)]
    moves = [one_move(3.0, "insn/o", one.key.test).model_copy(update={"key": one.key}) for one in made]
    by_id = {one.key.id: one for one in made}
    found = confirm("regression", moves, by_id, dict.fromkeys(by_id, "17.5"), "17.6", METRICS)
    assert found.tier == "unconfirmed"
    assert found.sentences[0].endswith("0 of 2 moves were seen again, 2 were not.")


def in_two_hours(hour: float, step: float) -> Series:
    """17.5 timed in one hour and 17.6 in another, in which all is `hour` as fast, each beside 17.0; then both."""
    control = {"a": (1000.0,), "b": (1000.0 * hour,)}
    one = series(
        [[1000.0, 1000.0 * hour], [1000.0], [1000.0 * hour * (1 + step / 100)]], test="t", metric="qps",
        releases=["17.0", *BOUNDARY], sessions=["a", "a", "b"], control=control,
    )  # fmt: skip
    first, *rest = one.points
    first = first.model_copy(update={"values": (first.values[0], first.values[1]._replace(session_id="b"))})
    pinned = dict.fromkeys("abcd", "17.0")
    return again(one.model_copy(update={"points": (first, *rest), "control_versions": pinned}), "c", -8.0, blocks=4)


@pytest.mark.parametrize(
    ("hour", "step", "judging"),
    [(0.92, 0.0, ["d"]), (1.08, -8.0, ["c", "d"]), (1.0, -8.0, ["c", "d"])],
)
def test_an_hour_in_which_the_machine_was_slower_discovers_nothing(
    hour: float, step: float, judging: list[str]
) -> None:
    """Judged by raw values the slow hour had shown the move, and the session that did would have confirmed it; and a
    fast hour had hidden it."""
    one = again(in_two_hours(hour, step), "d", -8.0, blocks=4)
    move = one_move(-8.0, "qps", "t").model_copy(update={"key": one.key})
    discovered, again_in = sides_of(move, one, *BOUNDARY, METRICS)
    assert list(again_in.before) == judging
    assert discovered.before.keys() | discovered.after.keys() == {"a", "b", "c", "d"} - set(judging)


def test_a_session_that_shows_another_test_by_luck_does_not_confirm_that_one() -> None:
    """All tests are measured again with the one that was found; of many, some are off by luck in that session, and
    some of those were off by as much as one block is before."""
    one = series([[1000.0], [955.0]], test="t", metric="qps", releases=BOUNDARY, sessions=["a", "a"])
    lucky = again(one, "b", -7.0, blocks=4)
    move = one_move(-6.0, "qps", "t").model_copy(update={"key": one.key, "noise_pct": 3.0})
    assert not sides_of(move, lucky, *BOUNDARY, METRICS)[1].before
    quiet = move.model_copy(update={"noise_pct": 0.5})
    assert list(sides_of(quiet, lucky, *BOUNDARY, METRICS)[1].before) == ["b"]


def test_a_sure_difference_of_a_tenth_of_the_move_is_not_the_move_seen_again() -> None:
    one = series([[1000.0], [690.0]], test="t", metric="qps", releases=BOUNDARY, sessions=["a", "a"])
    move = one_move(-31.0, "qps", "t").model_copy(update={"key": one.key})
    tiers = []
    for step in (-2.4, -14.0, -20.0, 2.4):
        made = again(one, "b", step, blocks=8, noise=0.001)
        found = confirm("regression", [move], {one.key.id: made}, {one.key.id: "17.5"}, "17.6", METRICS)
        tiers.append(found.tier)
    assert tiers == ["provisional", "provisional", "confirmed", "unconfirmed"]


def test_what_is_near_zero_confirms_and_refutes_nothing() -> None:
    counted_move = one_move(5.0, "insn/o", "t")
    cpu = one_move(60.0, "cpu_us/o", "t", near_zero=True, tier="confirmed", judged_in=1)
    assert tier_of("regression", [counted_move, cpu], METRICS) == "provisional"
    refuted = cpu.model_copy(update={"tier": "unconfirmed"})
    assert tier_of("regression", [counted_move, refuted], METRICS) == "provisional"
    assert tier_of("regression", [cpu], METRICS) == "confirmed", "there is nothing else"


def test_where_time_alone_moved_the_evidence_does_not_deny_its_title() -> None:
    """Instructions were counted, and none moved: the CPU is in the title of what is no more than suspected."""
    finding = of(night_of_two_lanes(insn_pct=0.0))
    assert {move.key.metric for move in carrying_moves(finding)} == {"cpu_us/o"}
    lead = headline(finding, METRICS)
    assert lead is not None and lead.metric == "cpu_us/o"
    (said,) = [text for text in finding.evidence if "not explained by counted instructions" in text]
    assert said.endswith("and nothing else carries the finding, which proves nothing before later blocks have shown it "
                         "again.")  # fmt: skip


def test_the_time_lane_needs_two_fresh_blocks_of_each_side() -> None:
    made = [timed(f"test-{n}", "qps", -8.0 if n < 2 else 0.0, n) for n in range(10)]
    one_block = [again(one, "a", -8.0 if n < 2 else 0.0, blocks=1, noise=0.004) for n, one in enumerate(made)]
    finding = of(one_block)
    assert finding.tier == "provisional" and sentence(finding).endswith("too few to judge by.")
    two = [again(one, "b", -8.0 if n < 2 else 0.0, blocks=4, noise=0.004) for n, one in enumerate(made)]
    assert of(two).tier == "confirmed"


def night_of_two_lanes(cpu_pct: float = 49.0, insn_pct: float = 1.6) -> list[Series]:
    """A real night of a new release: a few tests count a little more, and one of them took half as much CPU again, by
    luck."""
    made = [counted(f"test-{n}", insn_pct if n < 3 else 0.0) for n in range(8)]
    made += [timed(f"test-{n}", "cpu_us/o", cpu_pct if n == 0 else 0.0, n, noise=0.01) for n in range(8)]
    return [one.model_copy(update={"points": one.points[:7]}) for one in made]


def test_no_metric_of_a_test_inherits_what_another_has() -> None:
    """Counted again, the instructions are confirmed; the CPU was measured once, and no title or group names it."""
    made = [
        again(one, "counted", 1.6 if int(one.key.test[-1]) < 3 else 0.0) if one.key.metric == "insn/o" else one
        for one in night_of_two_lanes()
    ]
    finding = of(made)
    tiers = {(move.key.test, move.key.metric): move.tier for move in finding.moves}
    assert tiers["test-0", "cpu_us/o"] == "provisional" and tiers["test-0", "insn/o"] == "confirmed"
    assert finding.tier == "confirmed"
    assert {move.key.metric for move in carrying_moves(finding)} == {"insn/o"}
    assert {group.metric for group in finding.groups if group.moved} == {"insn/o"}
    lead = headline(finding, METRICS)
    assert lead is not None and lead.others == () and "more instructions" in title(finding, lead)
    assert any("1 move of the time lane is not explained" in text for text in finding.evidence)


def test_lanes_that_contradict_each_other_are_measured_again_in_the_time_lane() -> None:
    made = night_of_two_lanes()
    finding = of(made)
    (move,) = [move for move in finding.moves if move.key.metric == "cpu_us/o"]
    assert finding.tier == "provisional" and move.counted_pct == pytest.approx(1.6)
    lead = headline(finding, METRICS)
    assert lead is not None and lead.metric == "insn/o", "no title names it"
    assert {suspect.lane for suspect in suspects([finding], METRICS)} == {"instructions", "time"}
    counted_again = [
        again(one, "c", 1.6 if one.key.test < "test-3" else 0.0) for one in made if one.key.metric == "insn/o"
    ]
    rest = [one for one in made if one.key.metric != "insn/o"]
    confirmed = of(counted_again + rest)
    assert [suspect.lane for suspect in suspects([confirmed], METRICS)] == ["time"], "counting it settles no time"
    measured = [again(one, "t", -2.4 if one.key.test == "test-0" else 0.0, blocks=8, noise=0.01) for one in rest]
    settled = of(counted_again + measured)
    assert settled.tier == "confirmed" and {move.key.metric for move in carrying_moves(settled)} == {"insn/o"}
    assert suspects([settled], METRICS) == []


def test_time_that_instructions_explain_is_left_to_them() -> None:
    finding = of(night_of_two_lanes(cpu_pct=8.0, insn_pct=6.0))
    assert all(move.counted_pct is None for move in finding.moves)
    assert [suspect.lane for suspect in suspects([finding], METRICS)] == ["instructions"]


def test_what_stays_unclear_is_measured_again_twice_and_no_more() -> None:
    """One counted block a side leaves a small step on a noisy test open."""
    finding = of(eight(3.0))

    def judged(times: int) -> list[str]:
        moves = tuple(move.model_copy(update={"judged_in": times}) for move in finding.moves)
        return [str(one) for one in suspects([finding.model_copy(update={"moves": moves})], METRICS)]

    assert judged(0) == judged(1) != []
    assert judged(2) == []


def one_move(change: float, metric: str, test: str, **fields: object) -> Move:
    better = METRICS[metric].better
    key = series_key(test, metric)
    return Move(
        key=key, before=1000.0, after=1000.0 * (1 + change / 100), change_pct=change, low_pct=change, high_pct=change,
        direction="regression" if (change > 0) == (better == "lower") else "improvement", probability=0.9,
        noise_pct=0.5, mde_pct=1.5, better=better, **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "tier"),
    [
        ({"insn/o": "cc", "qps": "pp"}, "confirmed"),
        ({"insn/o": "cu", "qps": "uuuu"}, "confirmed"),
        ({"insn/o": "cuu", "qps": "uuuu"}, "unconfirmed"),
        ({"insn/o": "up", "cs/o": "cc"}, "provisional"),
        ({"cs/o": "cc"}, "confirmed"),
        ({"insn/o": "puu"}, "unconfirmed"),
    ],
)
def test_the_tier_of_a_finding_follows_from_the_moves_of_one_metric(seen: dict[str, str], tier: str) -> None:
    """c: seen again, u: not seen again, p: judged and not clear. Metrics do not answer for each other."""
    steps = {"c": -8.0, "u": 0.0, "p": -3.5}
    moves, made = [], []
    for metric, letters in seen.items():
        sign = -1 if METRICS[metric].better == "lower" else 1
        for number, letter in enumerate(letters):
            move = one_move(sign * -8.0, metric, f"{metric}-{number}")
            step = sign * steps[letter]
            noise = 6.0 if letter == "p" else 0.5
            moves.append(move.model_copy(update={"noise_pct": noise}))
            one = series([[1000.0] * 6, [1000.0 * (1 + sign * -0.08)] * 6], move.key, sessions=["a", "a"])
            values = {"17.0": [1000.0] * 4, "17.1": [1000.0 * (1 + step / 100)] * 4}
            made.append(measured_again(one, "b", values))
    by_id = {one.key.id: one for one in made}
    found = confirm("regression", moves, by_id, dict.fromkeys(by_id, "17.0"), "17.1", METRICS)
    assert found.tier == tier


@pytest.mark.parametrize(
    ("work", "change", "rate", "explained"),
    [(45.0, -28.0, True, True), (1.6, 49.0, False, False), (3.0, 5.0, False, True), (-7.0, -8.0, True, False)],
)
def test_instructions_explain_what_goes_their_way_by_about_as_much(
    work: float, change: float, rate: bool, explained: bool
) -> None:
    assert explains(work, change, rate) is explained


SESSIONS = ("s-0", "s-1", "s-2", "s-3", "s-4")


@CHECKS
@given(data=st.data())
def test_no_block_both_discovers_and_confirms(data: st.DataObject) -> None:
    """Any spread of blocks over sessions, in any order of the sessions' names and of arrival."""
    order = tuple(data.draw(st.permutations(SESSIONS)))
    values = st.lists(
        st.tuples(st.sampled_from(SESSIONS), st.sampled_from([95.0, 100.0, 105.0])), min_size=1, max_size=8
    )
    sides = {version: data.draw(values) for version in BOUNDARY}
    one = series([[100.0], [100.0]], test="t", metric="qps", releases=BOUNDARY)
    points = tuple(
        point.model_copy(
            update={
                "values": tuple(
                    point.values[0]._replace(value=value, session_id=session, block_id=f"{point.version}/{number}")
                    for number, (session, value) in enumerate(sides[point.version])
                )
            }
        )
        for point in one.points
    )
    one = one.model_copy(update={"points": points, "sessions": order})
    move = one_move(-5.0, "qps", "t")
    discovered, again_in = sides_of(move, one, *BOUNDARY, METRICS)
    assert not discovered.blocks & again_in.blocks
    assert again_in.before.keys() == again_in.after.keys()
    held = [{session for session, _ in sides[version]} for version in BOUNDARY]
    for session in again_in.before:
        assert session in held[0] & held[1]
        assert all(order.index(session) > order.index(first) for first, _ in discovered.blocks)
    if again_in.before:
        assert discovered.before and discovered.after
    else:
        assert {session for session, _ in discovered.blocks} == held[0] | held[1]
    shuffled = tuple(
        point.model_copy(update={"values": tuple(data.draw(st.permutations(point.values)))}) for point in points
    )
    same = sides_of(move, one.model_copy(update={"points": shuffled}), *BOUNDARY, METRICS)
    assert [side.blocks for side in same] == [discovered.blocks, again_in.blocks]


@CHECKS
@given(
    seed=st.integers(0, 50),
    confirming=st.integers(0, 3),
    fresh=st.integers(1, 4),
    drop=st.sampled_from([0.0, 0.03, 0.08]),
)
def test_every_number_of_the_evidence_is_that_of_the_blocks(
    seed: int, confirming: int, fresh: int, drop: float
) -> None:
    rng = random.Random(seed)
    names = [rng.choice(["x", "y", "z"]) if rng.random() < 0.5 else f"night-{at}" for at in range(10)]
    made = suite(seed=seed, drop=0.08, tests=6, moving=2, sessions=sorted(names))
    noise = np.random.default_rng(seed)
    for number in range(confirming):
        blocks = {}
        for one in made:
            moved = one.key.test < "test-02"
            step = (1.0 - drop if one.key.metric == "qps" else 1.0 / (1.0 - drop)) if moved else 1.0
            level = 1000.0 if one.key.metric == "qps" else 50.0
            values = level * np.exp(0.006 * noise.standard_normal((2, fresh)))
            blocks[one.key.id] = {"17.5": values[0].tolist(), "17.6": (values[1] * step).tolist()}
        made = [measured_again(one, f"later-{number}", blocks[one.key.id]) for one in made]
    for finding in detect(made):
        assert check(finding, made) >= 2


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_evidence_of_the_scenarios_is_that_of_their_blocks(name: str) -> None:
    with Store.open("sqlite://") as store:
        SCENARIOS[name][0](store)
        made = list(store.series())
        found = detect(made)
        assert found and all(check(finding, made) for finding in found)


def test_sessions_stand_in_the_order_in_which_they_began_however_they_came(tmp_path: object) -> None:
    """The later session is stored first, and its name comes first as well."""
    with Store.open("sqlite://") as store:
        for name, day in (("a-late", 2), ("b-middle", 1), ("c-early", 0)):
            session = SESSION.model_copy(update={"id": name, "started": DAY + timedelta(days=day)})
            store.append_session(session)
            row = run_of("17.1", session=name)
            store.append_run(row)
            started = session.started
            store.append_block(block(row, 100.0, started=started, ended=started + timedelta(minutes=1)))
        (one,) = store.series()
    assert one.sessions == ("c-early", "b-middle", "a-late")
