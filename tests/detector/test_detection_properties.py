"""What a finding must not depend on: the unit, the order of arrival, repeated rows, metrics that are not there."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detector import detect
from history.model import Finding, Series
from tests.detector.test_detection import suite

CHECKS = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 5)


def moved(findings: list[Finding]) -> dict[tuple[str, str], tuple[float, float]]:
    """Change and probability by finding and series."""
    return {
        (finding.key, move.key.id): (round(move.change_pct, 6), round(move.probability, 6))
        for finding in findings
        for move in finding.moves
    }


def with_values(one: Series, factor: float, repeats: int = 1) -> Series:
    """`one` in another unit, every block there `repeats` times: the same row loaded again under another name."""
    points = tuple(
        point.model_copy(
            update={
                "values": tuple(
                    value._replace(value=value.value * factor, block_id=f"{value.block_id}/{copy}")
                    for value in point.values
                    for copy in range(repeats)
                )
            }
        )
        for point in one.points
    )
    return one.model_copy(update={"points": points})


@CHECKS
@given(seed=SEEDS, exponents=st.lists(st.integers(-2, 8), min_size=20, max_size=20))
def test_the_unit_of_every_series_is_its_own(seed: int, exponents: list[int]) -> None:
    """As long as nothing becomes so small that it is near zero by the registry (here 50 us of CPU, to 3 us)."""
    made = suite(seed=seed, drop=0.08)
    scaled = [with_values(one, 4.0**exponent) for one, exponent in zip(made, exponents, strict=True)]
    assert moved(detect(scaled)) == moved(detect(made)) != {}


@CHECKS
@given(data=st.data(), seed=SEEDS)
def test_the_order_of_arrival_changes_no_byte(data: st.DataObject, seed: int) -> None:
    made = suite(seed=seed, drop=0.08, tests=6)
    shuffled = [
        one.model_copy(
            update={
                "points": tuple(
                    point.model_copy(update={"values": tuple(data.draw(st.permutations(point.values)))})
                    for point in one.points
                )
            }
        )
        for one in data.draw(st.permutations(made))
    ]
    once, again = ([finding.model_dump_json() for finding in detect(these)] for these in (made, shuffled))
    assert once == again != []


@CHECKS
@given(seed=st.integers(0, 200), repeats=st.integers(2, 6), drop=st.sampled_from([0.0, 0.01, 0.03, 0.08]))
def test_identical_blocks_make_nothing_more_certain(seed: int, repeats: int, drop: float) -> None:
    made = suite(seed=seed, drop=drop, tests=6, moving=2, blocks=1)
    once = moved(detect(made))
    again = moved(detect([with_values(one, 1.0, repeats) for one in made]))
    assert again.keys() <= once.keys()
    assert all(again[name][1] <= once[name][1] + 1e-6 for name in again)


@CHECKS
@given(seed=SEEDS, absent=st.sets(st.integers(0, 19), max_size=12))
def test_what_was_not_measured_takes_nothing_from_the_rest(seed: int, absent: set[int]) -> None:
    """Whole series go, throughput here and CPU there; what is left of the tests that moved is still found."""
    made = suite(seed=seed, drop=0.1)
    left = [one for number, one in enumerate(made) if number not in absent]
    found = moved(detect(left))
    for one in left:
        key = ("postgres/17/17.6/regression", one.key.id)
        assert (key in found) == (int(one.key.test[-2:]) < 4), one.key.id
