"""Counted instructions show a step of 0.3 % of one test, and none where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from detector import detect
from detector.explanation import explain
from detector.releases.families import LINE_GAP
from detector.releases.scan import scan_panel
from detector.releases.series_panel import panel_of_blocks
from detector.releases.series_steps import read_steps
from history.metrics import shipped_metrics
from tests.benchmarks.counted_steps import NOISES, STEP, line, measure

LINES, TESTS = 8, 24


def test_their_smallest_change_is_less_than_such_a_step() -> None:
    (counted,) = [metric for metric in shipped_metrics() if metric.lane == "instructions"]
    assert counted.smallest_change_pct == 0.2 < 100.0 * STEP


@pytest.mark.parametrize(
    ("place", "releases", "found", "confirmed"),
    [("middle", 6, 1.0, 0.0), ("middle", 12, 1.0, 0.0), ("newest", 6, 0.6, 0.6), ("newest", 12, 0.95, 0.7)],
)
def test_a_step_of_one_test_is_found_at_its_release_and_nothing_else(
    place: str, releases: int, found: float, confirmed: float
) -> None:
    """Noise 0.03 %; on the newest release when a second block has seen it, less surely on a line of six."""
    tally = measure("normal", place, lines=LINES, tests=TESTS, releases=releases, seed=5)
    assert tally.false == 0
    assert tally.found >= found * LINES
    assert tally.of_confirmed >= confirmed * LINES


@pytest.mark.parametrize("kind", NOISES)
def test_whatever_the_noise_is_quiet_lines_stay_quiet(kind: str) -> None:
    tally = measure(kind, "none", lines=LINES, tests=TESTS, releases=12, seed=6)
    assert 1000.0 * tally.false / tally.boundaries <= 0.5
    assert tally.false_confirmed == 0


def test_two_repeats_that_happen_to_lie_apart_are_not_the_noise_of_a_test() -> None:
    """Of eleven releases with one block and two with two: the gap of two blocks is known from two pairs alone."""
    for seed in range(5):
        made, test = line("normal", np.random.default_rng([9, seed]), tests=TESTS, releases=12, at=6)
        apart = []
        for member in made:
            first, *rest, last = member.points
            wide = tuple(
                block._replace(value=block.value * (1.0008 if number else 0.9992))
                for number, block in enumerate(last.values)
            )
            update = {"values": wide} if member.key.test == test else {}
            apart.append(member.model_copy(update={"points": (first, *rest, last.model_copy(update=update))}))
        moves = [move for finding in detect(apart) for move in finding.moves if finding.release == "17.6"]
        assert [move.key.test for move in moves] == [test]
        assert moves[0].noise_pct < 0.1


def test_where_every_release_moves_every_test_intervals_hold_the_steps_and_no_zero() -> None:
    """Steps between majors: 0.6 to 3 %, a noise of 0.03 % that differs between tests by a factor of two."""
    counted, inside, zero, told = shipped_metrics()["insn/o"], 0, 0, 0
    for seed in range(6):
        random = np.random.default_rng(seed)
        steps = random.choice([-1.0, 1.0], (8, 9)) * random.uniform(0.006, 0.03, (8, 9))
        noise = 0.0003 * np.exp(0.7 * random.standard_normal((8, 1))) * random.standard_normal((8, 9))
        blocks = 50_000.0 * np.exp((np.cumsum(steps, axis=1) + noise)[None, :, :, None].repeat(2, axis=3))
        found = read_steps(scan_panel(panel_of_blocks({counted: blocks}, gaps=np.full(9, LINE_GAP)))).steps
        for step in found:
            low, high = step.interval
            inside += low <= steps[step.place[2], step.release] <= high
            zero += low < 0.0 < high
        told += len(found)
    assert (told, zero) == (6 * 8 * 8, 0)
    assert inside >= 0.95 * told


def test_blocks_that_count_the_very_same_are_said_to_be_several() -> None:
    """Reads often count alike to the last instruction: `stands on one block` stood beside `two or more blocks`."""
    made, test = line("normal", np.random.default_rng(3), tests=TESTS, releases=12, at=6)
    twice = []
    for member in made:
        points = [
            point.model_copy(
                update={
                    "values": tuple(
                        block._replace(block_id=f"{block.block_id}/{n}") for block in point.values[:1] for n in (1, 2)
                    )
                }
            )
            for point in member.points
        ]
        last = points[-1].values
        if member.key.test == test:
            points[-1] = points[-1].model_copy(
                update={"values": tuple(block._replace(value=block.value * 1.05) for block in last)}
            )
        twice.append(member.model_copy(update={"points": tuple(points)}))
    newest = twice[0].points[-1].version
    (move,) = [move for finding in detect(twice) for move in finding.moves if finding.release == newest]
    assert (move.key.test, move.blocks_after) == (test, 2)
    (warning,) = move.warnings
    assert warning == "the level after the boundary stands on 2 blocks that agree to the last digit, which count as one"
    told = explain(twice, move.key)
    assert "2 blocks that agree to the last digit, which count as one" in told.cases[-1].contra
