"""Estimates: from the host's own blocks where there are any, wide where there are none, never the wrong way round."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.model import Block
from runners.sessions import Estimate, estimate
from runners.sessions.estimates import MARGIN, NEWEST_BLOCKS, SESSION_S, block_range, needed_s
from runners.sessions.planning import settle_seconds
from tests.small_plans import small_plan

TESTS = ("update-index.range100", "point-query.range100")
START = datetime(2026, 1, 1, tzinfo=UTC)

SECONDS = st.floats(0.01, 1_000.0)
LANES = st.sampled_from(["time", "instructions"])


def seen(
    number: int, tests: dict[str, float], rest: float = 1.0, load: float | None = None, status: str = "ok"
) -> Block:
    """A block that took so long."""
    block = {"restore": rest} | ({} if load is None else {"load": load})
    return Block.model_validate(
        {
            "id": f"b{number}", "run_id": "r", "number": number, "started": START + timedelta(days=number),
            "ended": START + timedelta(days=number, hours=1), "status": status,
            "phases": {"block": block, "tests": tests},
        }
    )  # fmt: skip


def blocks_of(times: list[float], load: float | None = None) -> list[Block]:
    """Blocks of the tests of `small_plan`, a second besides each."""
    return [seen(n, dict.fromkeys(TESTS, (seconds - 1) / 2), load=load) for n, seconds in enumerate(times)]


TIMES = st.lists(st.floats(2.0, 1_000.0), min_size=1, max_size=50)


@given(times=TIMES, lane=LANES)
def test_a_block_is_expected_to_take_what_blocks_took(times: list[float], lane: str) -> None:
    expected = block_range(small_plan(lane=lane), blocks_of(times))
    margin = MARGIN / len(times) ** 0.5
    assert min(times) * (1 - margin) <= expected.low * 1.000001
    assert expected.low <= expected.high <= max(times) * (1 + margin) * 1.000001


@given(times=TIMES, lane=LANES, load=st.none() | SECONDS, workers=st.integers(1, 8), blocks=st.integers(1, 5))
def test_more_to_do_never_takes_less(
    times: list[float], lane: str, load: float | None, workers: int, blocks: int
) -> None:
    known = blocks_of(times, load)
    for learned in (known, []):
        ranges = [
            estimate(small_plan(lane=lane, blocks=blocks, releases=releases), (), workers, learned)
            for releases in (("17.5",), ("17.4", "17.5"))
        ]
        ranges.append(
            estimate(small_plan(lane=lane, blocks=blocks + 1, releases=("17.4", "17.5")), (), workers, learned)
        )
        for less, more in pairwise(ranges):
            assert 0 < less.low_s <= more.low_s and less.high_s <= more.high_s
        assert all(each.low_s <= each.middle_s <= each.high_s for each in ranges)
        assert all(each.known == len(learned[-NEWEST_BLOCKS:]) for each in ranges)


@given(times=TIMES, lane=LANES)
def test_fewer_tests_of_known_ones_never_take_longer(times: list[float], lane: str) -> None:
    known = blocks_of(times)
    both, one = (block_range(small_plan(lane=lane, tests=tests), known) for tests in (TESTS, TESTS[:1]))
    assert one.low <= both.low * 1.000001 and one.high <= both.high * 1.000001


def test_a_test_that_was_never_run_here_is_like_the_others() -> None:
    known = blocks_of([11.0] * 25)
    plan = small_plan(lane="instructions", tests=(*TESTS, "scan.range100"))
    expected = block_range(plan, known)
    assert 15 * 0.9 <= expected.low <= 16 and 16 <= expected.high <= (15 + 1.5) * 1.1 + 1e-9


def test_what_is_measured_is_more_certain_than_a_prior() -> None:
    plan = small_plan(lane="instructions", blocks=2)
    prior, once, often = (estimate(plan, (), 1, blocks_of(times, 5.0)) for times in ([], [20.0], [20.0] * 30))

    def width(each: Estimate) -> float:
        return each.high_s / each.low_s

    assert width(prior) > width(once) > width(often) > 1
    assert (prior.known, once.known, often.known) == (0, 1, 30)
    assert often.low_s - SESSION_S.low == pytest.approx((4 * 20 + 2 * 5) * (1 - MARGIN / 30**0.5))


def test_only_what_was_lately_is_learned_from() -> None:
    slow, fast = ([1_000.0] * NEWEST_BLOCKS, [10.0] * NEWEST_BLOCKS)
    known = blocks_of(slow + fast)
    assert estimate(small_plan(), (), 1, known[::-1]).high_s < 200


def test_waiting_for_another_worker_is_not_work() -> None:
    waited = seen(1, dict.fromkeys(TESTS, 5.0))
    waited.phases["block"]["wait"] = 500.0
    assert block_range(small_plan(), [waited]).high == pytest.approx(11 * (1 + MARGIN))


def test_blocks_without_phases_and_failed_ones_teach_nothing() -> None:
    old = seen(1, {}).model_copy(update={"phases": {}})
    failed = seen(2, dict.fromkeys(TESTS, 900.0), status="failed")
    assert estimate(small_plan(), (), 1, [old, failed]) == estimate(small_plan(), (), 1, [])


def test_noisy_blocks_are_repeated_at_the_upper_end() -> None:
    times = dict.fromkeys(TESTS, 10.0)
    quiet, noisy = ([seen(n, times, status=status) for n in range(10)] for status in ("ok", "noisy"))
    plan = small_plan(noisy_repeats=1)
    calm, busy = estimate(plan, (), 1, quiet), estimate(plan, (), 1, noisy)
    assert calm.low_s == busy.low_s and busy.high_s - calm.high_s == pytest.approx(2 * 21 * (1 + MARGIN / 10**0.5))


def test_a_block_begins_that_will_end_by_what_is_known() -> None:
    """Of a prior the middle will do: the upper end is so high that nothing would ever begin. What was seen once is
    enough: with a margin on top, what took most of a night would never begin again."""
    plan = small_plan()
    once = blocks_of([20.0], load=10.0)
    assert estimate(plan, (), 1, once).block_s == needed_s(plan, once, load=True) == pytest.approx(20 + 10)
    assert needed_s(plan, once, load=False) == pytest.approx(20)
    often = blocks_of([20.0] * 39 + [900.0])
    assert 20 < needed_s(plan, often, load=False) == block_range(plan, often).high < 22, "one that hung is no rule"
    here = {block.run.release.version for block in plan.blocks}
    assert estimate(plan, (), 1, once, here).block_s == pytest.approx(20), "data that is here is not loaded"
    prior = block_range(plan, [])
    assert prior.low < needed_s(plan, [], load=False) < prior.high


def test_a_prior_holds_the_heating_of_each_part() -> None:
    """At most two minutes before each, of two parts here; a counted test has it within its own time."""
    for lane, parts in (("time", 2), ("instructions", 0)):
        small = small_plan(lane=lane)
        server = small.server.model_copy(update={"rows": 50_000_000, "tables": 1, "threads": 1})
        large = replace(small, server=server, profile=small.profile.model_copy(update={"scale": None}))
        settle = settle_seconds(large) - settle_seconds(small)
        more, less = block_range(large, []), block_range(small, [])
        assert less.high - less.low < 100 + (lane == "instructions") * 100, "a few thousand rows are read at once"
        if parts:
            assert more.high - less.high == pytest.approx(parts * 120 + settle, abs=5)
            assert more.low - less.low == pytest.approx(settle)
        else:
            assert more == less


def test_data_that_is_kept_may_be_the_right_one() -> None:
    known = blocks_of([10.0] * 20, load=100.0)
    nothing, control, both = (estimate(small_plan(), (), 1, known, kept) for kept in ((), ("17.0",), ("17.0", "17.5")))
    assert nothing.low_s > control.low_s > both.low_s
    assert nothing.high_s == control.high_s == both.high_s


def test_an_estimate_is_of_what_is_left() -> None:
    plan = small_plan(releases=("17.4", "17.5"), blocks=2)
    whole = estimate(plan)
    rest = estimate(plan, finished={block.id for block in plan.blocks[:3]})
    assert (whole.blocks, rest.blocks) == (6, 3)
    assert 0 < rest.low_s < whole.low_s and rest.high_s < whole.high_s
    done = estimate(plan, finished={block.id for block in plan.blocks})
    assert (done.blocks, done.low_s, done.high_s, done.disk_bytes) == (0, 0, 0, 0)


def test_only_the_lane_that_other_load_does_not_disturb_uses_more_cores() -> None:
    assert estimate(small_plan(), workers=2) == estimate(small_plan(), workers=1)
    counted = small_plan(lane="instructions")
    assert estimate(counted, workers=2).high_s < estimate(counted, workers=1).high_s
