"""Noise of series, and the control in two sessions."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.model import Series
from presentation.noise import block_noise, blocks_needed, last_aa, noise_frame, release_noise, time_to_show
from presentation.relative import level_frame

from .examples import finding, series


def noise(values: dict[str, list[float]]) -> float:
    return float(release_noise(level_frame([series(values)]))[0])


def test_a_step_does_not_inflate_the_noise() -> None:
    quiet = {str(i): [100 * (1.001 if i % 2 else 1.0)] for i in range(12)}
    stepped = {version: [values[0] * (0.8 if int(version) >= 6 else 1)] for version, values in quiet.items()}
    assert noise(stepped) == pytest.approx(noise(quiet), abs=0.01)
    assert math.isnan(noise({"1": [1], "2": [2]}))
    assert math.isnan(noise({str(i): [0.0 if i == 3 else 1.0] for i in range(9)}))
    assert block_noise(series({"1": [100, 102]})) is not None and block_noise(series({"1": [100]})) is None


@given(st.lists(st.floats(min_value=1, max_value=1e6), min_size=5, max_size=12), st.sets(st.integers(0, 11)))
def test_the_noise_is_the_textbook_one_whatever_releases_are_missing(values: list[float], missing: set[int]) -> None:
    measured = [value for at, value in enumerate(values) if at not in missing]
    found = noise({str(at): [] if at in missing else [value] for at, value in enumerate(values)})
    if len(measured) < 5:
        assert math.isnan(found)
    else:
        steps = [abs(math.log(b / a)) for a, b in itertools.pairwise(measured)]
        assert found == pytest.approx(148.26 * statistics.median(steps) / math.sqrt(2), abs=1e-6)


@given(noise=st.floats(0.1, 40), change=st.floats(0.5, 60))
def test_so_many_blocks_show_the_change_and_one_less_does_not(noise: float, change: float) -> None:
    needed = blocks_needed(noise, change)

    def shown(blocks: int) -> float:
        return (2.413302 + 0.841621) * noise / 100 * math.sqrt(2 / blocks)

    assert needed >= 2 and shown(needed) <= math.log1p(change / 100) * (1 + 1e-9)
    assert needed == 2 or shown(needed - 1) > math.log1p(change / 100)


def test_a_line_says_how_much_time_would_show_a_change_where_its_blocks_do_not() -> None:
    noisy = [series({"1": [100.0, 117.0], "2": [98.0, 113.0]}, test=f"test-{n}", metric="qps") for n in range(3)]
    said = time_to_show(noisy, "qps", 60.0)
    assert said.startswith("Blocks of one release vary by 11 % in throughput here (median of the tests)")
    assert said.endswith("a change of 5 % would need about 100 blocks (100 minutes) of each side.")
    assert "minutes" not in time_to_show(noisy, "qps", None)
    quiet = [series({"1": [100.0, 100.4], "2": [100.1, 99.9]}, metric="qps")]
    assert time_to_show(quiet, "qps", 60.0) == time_to_show(noisy, "insn/o", 60.0) == ""
    assert time_to_show([series({"1": [100.0]}, metric="qps")], "qps", 60.0) == ""


def with_control(control: Mapping[str, tuple[float, ...]], versions: Mapping[str, str] | None = None) -> Series:
    member: Series = series({"1": [1.0]})
    return member.model_copy(update={"control": dict(control), "control_versions": dict(versions or {})})


def test_last_aa_compares_the_last_two_sessions_of_the_control() -> None:
    aa = last_aa(with_control({"a": (100.0,), "c": (110.0, 111.0, 112.0), "b": (111.0,)}), ["a", "b", "c"])
    assert aa == ("b", "c", 0.0)
    assert last_aa(with_control({"a": (100.0,)}), ["a"]) is None


def test_last_aa_compares_one_and_the_same_release() -> None:
    control = {"a": (100.0,), "b": (150.0,), "c": (101.0,)}
    member = with_control(control, {"a": "17.0", "b": "18.0", "c": "17.0"})
    aa = last_aa(member, ["a", "b", "c"])
    assert aa and (aa.earlier, aa.later) == ("a", "c")
    assert aa.change_pct == pytest.approx(1.0)
    assert last_aa(member, ["a", "b"]) is None


def test_the_frame_has_what_is_known_and_nothing_else() -> None:
    long, short = series({str(at): [100.0, 101.0 + at] for at in range(9)}), series({"1": [1.0]}, "in|sert")
    moves = {move.key.id: move for move in finding(short, "1", "0").moves}
    table = noise_frame([[long, short]], moves, [])
    assert table["test"].tolist() == ["scan", "in|sert"]
    assert table["noise_between_releases_pct"].notna().tolist() == [True, False]
    between_pct = table["noise_between_releases_pct"][0]
    assert table["smallest_detectable_pct"][0] == pytest.approx(2.801585 * 2**0.5 * between_pct)
    assert table["detector_mde_pct"].dropna().tolist() == [1.5]
    assert table["aa_earlier"].tolist() == [None, None]
