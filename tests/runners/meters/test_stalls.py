"""Stalls in made-up looks: all that was put in is found, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.meters.stalls import PERIOD_S, Cause, Look, StallFinder, Stalls, Stopped, Wait, is_quiet

INTERVAL_S = 0.05
CORES = 1.5
WHO: tuple[Stopped, ...] = ("server", "client")


def looks_of(
    cpu: list[float], *, waits: dict[int, Wait] | None = None, interval_s: float = INTERVAL_S, excused: float = 0.0
) -> list[Look]:
    """A look at the beginning, and one after each interval, in which server and client used so much CPU (in cores)."""
    looks = [Look(at_s=100.0, clocks_s=(1e9, 0.0), excused_s=0.0, cpu_s=0.0)]
    for number, cores in enumerate(cpu):
        last = looks[-1]
        looks.append(
            Look(
                at_s=last.at_s + interval_s,
                clocks_s=last.clocks_s,
                excused_s=(last.excused_s or 0.0) + excused,
                cpu_s=last.cpu_s + cores * interval_s,
                wait=(waits or {}).get(number),
            )
        )
    return looks


def stalls_of(looks: list[Look]) -> Stalls:
    finder = StallFinder()
    for look in looks:
        finder.add(look)
    return finder.stalls


def test_a_test_that_gets_on_has_none() -> None:
    stalls = stalls_of(looks_of([CORES] * 20))
    assert stalls.window_s == pytest.approx(1.0)
    assert stalls.seconds == {}


@pytest.mark.parametrize("who", WHO)
def test_a_stop_of_0_6_s_in_one_second_is_found_whatever_the_cpu_says(who: Stopped) -> None:
    looks = looks_of([CORES] * 20)
    looks[5:17] = [replace(look, stopped=who) for look in looks[5:17]]
    stalls = stalls_of(looks)
    assert stalls.seconds == {who: pytest.approx(0.6)}
    assert stalls.lost_share == pytest.approx(0.6)
    assert stalls.causes == (who,)


@pytest.mark.parametrize(("wait", "lost"), [("asleep", 0.5), ("storage", 0.0), ("cpu", 0.0)])
def test_what_a_test_without_progress_waits_for_decides(wait: Wait, lost: float) -> None:
    looks = looks_of([CORES] * 5 + [0.0] * 10 + [CORES] * 5, waits=dict.fromkeys(range(6, 15), wait))
    stalls = stalls_of(looks)
    assert stalls.lost_s == pytest.approx(lost)
    assert stalls.storage_s == pytest.approx(0.5 if wait == "storage" else 0.0)


def test_one_interval_without_progress_is_no_stall_and_three_are() -> None:
    for length, lost in ((1, 0.0), (3, 0.15)):
        looks = looks_of([CORES] * 5 + [0.0] * length + [CORES], waits={6: "asleep"})
        assert stalls_of(looks).lost_s == pytest.approx(lost)


def test_what_nobody_looked_into_condemns_nothing() -> None:
    assert stalls_of(looks_of([CORES] * 5 + [0.0] * 10)).seconds == {}


def test_background_work_of_an_idle_server_is_no_progress() -> None:
    looks = looks_of([CORES] * 10 + [0.02] * 10, waits=dict.fromkeys(range(11, 20), "asleep"))
    assert stalls_of(looks).lost_s == pytest.approx(0.5)


def test_a_test_that_always_uses_little_makes_progress() -> None:
    assert stalls_of(looks_of([0.01] * 20, waits=dict.fromkeys(range(20), "asleep"))).seconds == {}


def test_waits_of_different_kinds_count_as_what_they_mostly_were_and_in_doubt_as_no_stall() -> None:
    mostly: list[tuple[list[Wait], dict[Cause, float]]] = [
        (["asleep", "asleep", "storage"], {"asleep": 0.2}),
        (["storage", "storage", "asleep"], {"storage": 0.2}),
        (["asleep", "storage"], {"storage": 0.15}),
        (["asleep", "cpu"], {}),
    ]
    for waits, seconds in mostly:
        quiet = len(waits) + 1
        looks = looks_of([CORES] * 5 + [0.0] * quiet + [CORES], waits=dict(enumerate(waits, 6)))
        assert stalls_of(looks).seconds == {cause: pytest.approx(each) for cause, each in seconds.items()}


def test_the_harness_is_away_when_it_is_late_without_waiting_for_a_cpu() -> None:
    for excused, seconds in ((0.0, {"harness": 0.6}), (0.5, {}), (0.1, {"harness": 0.5})):
        before, after = looks_of([CORES], interval_s=0.7, excused=excused)
        assert stalls_of([before, after]).seconds == pytest.approx(seconds)


def test_where_the_kernel_does_not_tell_waits_for_a_cpu_a_late_look_condemns_nothing() -> None:
    looks = [replace(look, excused_s=None) for look in looks_of([CORES], interval_s=3.0)]
    assert stalls_of(looks).seconds == {}


@pytest.mark.parametrize("clocks", [(1e9 + 5.0, 0.0), (1e9, 5.0), (1e9 - 5.0, 0.0), (1e9 + 5.0, 5.0)])
def test_clocks_that_part_cost_the_whole_window_at_most(clocks: tuple[float, float]) -> None:
    looks = looks_of([CORES] * 20)
    looks[10:] = [replace(look, clocks_s=clocks) for look in looks[10:]]
    stalls = stalls_of(looks)
    assert stalls.seconds == {"clock": pytest.approx(5.0)}
    assert stalls.lost_s == stalls.window_s


def test_a_clock_under_discipline_does_not_part() -> None:
    looks = looks_of([CORES] * 1000)
    looks = [replace(look, clocks_s=(1e9 + 0.0005 * look.at_s, 0.0)) for look in looks]
    assert stalls_of(looks).seconds == {}


def test_a_look_says_what_is_waited_for_from_the_second_interval_without_progress_on() -> None:
    finder = StallFinder()
    still = []
    for look in looks_of([CORES, CORES, 0.0, 0.0, 0.0, CORES, 0.0]):
        still.append(finder.is_still(look))
        finder.add(look)
    assert still == [False, False, False, False, True, True, False, False]


def test_one_look_and_none_make_an_empty_window() -> None:
    assert stalls_of([]) == stalls_of(looks_of([])) == Stalls(0.0)
    assert stalls_of([]).lost_share == 0.0


Interval = tuple[float, float, Stopped | None, Wait | None, float]
"""Seconds, cores used, who was stopped, what was waited for, seconds that the harness itself waited for a CPU."""
WAITS = st.sampled_from(["cpu", "storage", "asleep", None])
INTERVALS = st.lists(
    st.tuples(
        st.floats(0.04, 2.0),
        st.floats(0.0, 4.0),
        st.sampled_from([None, None, None, "server", "client"]),
        WAITS,
        st.floats(0.0, 2.0),
    ),
    max_size=60,
)


def random_looks(intervals: list[Interval]) -> list[Look]:
    looks = [Look(0.0, (0.0,), 0.0, 0.0)]
    for seconds, cores, stopped, wait, excused in intervals:
        last = looks[-1]
        looks.append(
            Look(
                last.at_s + seconds,
                (0.0,),
                (last.excused_s or 0.0) + min(excused, seconds),
                last.cpu_s + cores * seconds,
                stopped,
                wait,
            )
        )
    return looks


@given(INTERVALS)
def test_no_second_is_lost_twice(intervals: list[Interval]) -> None:
    looks = random_looks(intervals)
    stalls = stalls_of(looks)
    assert stalls.window_s == pytest.approx(looks[-1].at_s)
    assert 0.0 <= sum(stalls.seconds.values()) <= stalls.window_s * (1 + 1e-9)
    assert 0.0 <= stalls.lost_share <= 1.0
    assert stalls.lost_s + stalls.storage_s == pytest.approx(sum(stalls.seconds.values()))


@given(INTERVALS)
def test_a_stop_always_counts_whole_unless_the_harness_was_away(
    intervals: list[Interval],
) -> None:
    looks = random_looks(intervals)
    seconds = stalls_of(looks).seconds
    for who in WHO:
        stopped = [
            after.at_s - before.at_s
            for before, after in pairwise(looks)
            if after.stopped == who
            and after.at_s - before.at_s - PERIOD_S - ((after.excused_s or 0) - (before.excused_s or 0)) < 0.25
        ]
        assert seconds.get(who, 0.0) == pytest.approx(sum(stopped))


@given(INTERVALS)
def test_what_always_gets_on_never_stalls(
    intervals: list[Interval],
) -> None:
    steady: list[Interval] = [(0.05, 1.0 + cores / 4, None, wait, 0.0) for _, cores, _, wait, _ in intervals]
    assert stalls_of(random_looks(steady)).seconds == {}


def test_the_floor_is_far_below_any_load() -> None:
    assert is_quiet(0.0002, 0.05, 0.0)
    assert not is_quiet(0.0005, 0.05, 0.0)
