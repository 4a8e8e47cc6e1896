"""A block is noisy when others had too much of the machine, and says when and how much."""

from __future__ import annotations

import pytest

from runners.meters.costs import Noise
from runners.meters.stalls import Cause, Stalls
from runners.sessions.judgement import judge
from runners.sessions.lanes import TestResult
from runners.settings import Server

SERVER = Server(name="here", threads=1, tables=1, rows=1_000, pool_mib=64, log_mib=64)


def judge_here(results: list[tuple[str, TestResult]]) -> tuple[str, str]:
    return judge(results, SERVER)


def result(steal: float | None, foreign: float | None, seconds: float = 10.0) -> TestResult:
    return TestResult(noise=Noise(steal=steal, foreign=foreign, harness=0.001), seconds=seconds)


def test_a_quiet_block_is_ok() -> None:
    assert judge_here([("a", result(0.0, 0.02)), ("b", result(0.005, 0.05))]) == ("ok", "")


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (
            [("a", result(0.0, 0.0)), ("b", result(0.03, 0.0))],
            "steal 1.5 % of the CPUs over the block (limit 1 %), at worst 3.0 %",
        ),
        ([("a", result(0.0, 0.11)), ("b", result(0.0, 0.15))], "foreign load 13.0 %"),
        ([("a", result(0.0, 0.0, 300)), ("b", result(0.0, 0.5, 10))], "at worst 50.0 % in b"),
    ],
)
def test_too_much_for_others_is_noisy_with_the_reason(results: list[tuple[str, TestResult]], words: str) -> None:
    status, reason = judge_here(results)
    assert status == "noisy"
    assert words in reason


def test_what_this_host_does_not_tell_condemns_nothing() -> None:
    assert judge_here([("a", result(None, None)), ("b", TestResult(seconds=5.0))]) == ("ok", "")


def test_the_mean_is_weighted_by_time() -> None:
    short, long = result(0.025, 0.0, 1.0), result(0.0, 0.0, 99.0)
    assert judge_here([("short", short), ("long", long)])[0] == "ok"


def stalled(window_s: float, seconds: dict[Cause, float]) -> TestResult:
    return TestResult(
        stalls=Stalls(window_s, seconds), noise=Noise(steal=0.0, foreign=0.0, harness=0.001), seconds=window_s
    )


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (
            [("a", stalled(1.0, {})), ("b", stalled(1.0, {"server": 0.61}))],
            "stood still for 30.5 % of the block (limit 2 %), at worst 0.61 of 1.0 s in b: the server was stopped",
        ),
        (
            [("a", stalled(300.0, {})), ("b", stalled(1.0, {"client": 0.1}))],
            "0.10 of 1.0 s in b: the client was stopped",
        ),
        ([("a", stalled(10.0, {"harness": 0.3})), ("b", stalled(10.0, {"asleep": 0.2}))], "stood still for 2.5 %"),
        ([("a", stalled(9.0, {"clock": 0.3, "server": 0.5}))], "the server was stopped and the clocks parted"),
        ([("a", stalled(9.0, {"clock": 3600.0}))], "at worst 9.00 of 9.0 s in a"),
    ],
)
def test_tests_that_stood_still_are_noisy_with_the_reason(results: list[tuple[str, TestResult]], words: str) -> None:
    status, reason = judge_here(results)
    assert status == "noisy"
    assert words in reason


@pytest.mark.parametrize("seconds", [{}, {"server": 0.1}, {"storage": 5.0}])
def test_short_stalls_of_long_tests_and_waits_for_storage_are_ok(seconds: dict[Cause, float]) -> None:
    assert judge_here([("a", stalled(10.0, seconds))]) == ("ok", "")


def test_the_limit_of_stalls_is_the_servers() -> None:
    patient = SERVER.model_copy(update={"stall_limit": 1.0})
    assert judge([("a", stalled(1.0, {"server": 1.0}))], patient) == ("ok", "")


def test_all_reasons_are_given() -> None:
    _, reason = judge_here([("a", stalled(1.0, {"server": 0.5})), ("b", result(0.5, 0.5))])
    assert [words in reason for words in ("stood still", "steal", "foreign load")] == [True] * 3


def test_a_server_may_tolerate_more() -> None:
    busy = SERVER.model_copy(update={"foreign_limit": 1.0})
    assert judge([("a", result(0.0, 0.9))], busy) == ("ok", "")
    assert judge([("a", result(0.02, 0.9))], busy)[0] == "noisy"
