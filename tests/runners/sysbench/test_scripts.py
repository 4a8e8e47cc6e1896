"""The Lua module's own arithmetic, run by the real sysbench without a server."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from runners.sysbench.driver import run_sysbench

SCRIPT = Path(__file__).parent / "scripts" / "draw_ids.lua"
#: Exponent of the script's Zipfian ids, and draws enough to tell it from 0.75 and 0.85.
EXPONENT = 0.8
DRAWS = 40_000


def draw(*options: str, seed: int = 5) -> list[int]:
    command = ["sysbench", "--time=0", f"--events={DRAWS}", f"--rand-seed={seed}", "--rand-type=uniform", *options]
    text = run_sysbench([*command, str(SCRIPT), "run"], deadline_s=60)
    return [int(number) for number in re.findall(r"^id (\d+)$", text, re.MULTILINE)]


def test_zipfian_ids_follow_their_law() -> None:
    rows = 1_000
    ids = draw("--zipf=on", f"--table-size={rows}")
    assert len(ids) == DRAWS
    assert min(ids) >= 1
    assert max(ids) <= rows
    weights = np.arange(1, rows + 1) ** -EXPONENT
    expected = DRAWS * weights / weights.sum()
    seen = Counter(ids)
    observed = np.array([seen[number] for number in range(1, rows + 1)])
    # Chi-square over 1000 cells has mean 999 and standard deviation 45: six of them are out of reach of chance.
    assert ((observed - expected) ** 2 / expected).sum() < 999 + 6 * 45


@pytest.mark.parametrize("options", [("--zipf=on",), ()])
def test_the_same_seed_draws_the_same_ids(options: tuple[str, ...]) -> None:
    size = "--table-size=500"
    assert draw(*options, size) == draw(*options, size)
    assert draw(*options, size) != draw(*options, size, seed=6)


def test_one_row_is_always_the_first() -> None:
    assert set(draw("--one-row=on")) == {1}
