"""Callgrind profiles: names compressed or not, calls left out, and nothing that does not add up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.errors import CountingFailed
from runners.instructions.callgrind import parse_profile
from runners.instructions.valgrind import Callgrind

SMALL = """\
# callgrind format
version: 1
pid: 812
part: 1
positions: line
events: Ir
summary: 0

ob=(2) /opt/postgres/bin/postgres
fl=(1) execMain.c
fn=(12) ExecutorRun
0 1200
+4 10
cfn=(40) PortalRun
calls=1000 0
* 98000
-2 5

fn=(40)
0 700

ob=(3) /lib/libc.so.6
fl=(2) memcpy.S
fn=(7) memcpy'2
120 85

totals: 2000
"""


def test_self_costs_by_function_without_what_they_call() -> None:
    profile = parse_profile(SMALL)
    assert profile.total == 2000
    assert profile.functions == {
        ("ExecutorRun", "postgres"): 1215,
        ("PortalRun", "postgres"): 700,
        ("memcpy", "libc.so.6"): 85,
    }
    assert profile.top(2) == [("ExecutorRun", "postgres", 1215), ("PortalRun", "postgres", 700)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "counts no instructions"),
        (SMALL.replace("events: Ir", "events: Ge"), "counts no instructions"),
        (SMALL.partition("totals:")[0], "has no total"),
        (SMALL.replace("totals: 2000", "totals: 2001"), "add up to 2000, its total is 2001"),
        (SMALL.replace("120 85\n", ""), "add up to 1915"),
    ],
)
def test_a_profile_that_is_cut_off_or_does_not_add_up_is_refused(text: str, message: str) -> None:
    with pytest.raises(CountingFailed, match=message):
        parse_profile(text)


@given(st.dictionaries(st.from_regex(r"[a-z_:<>~ ,]{1,20}", fullmatch=True).filter(str.strip),
                       st.integers(1, 10**12), min_size=1))  # fmt: skip
def test_every_function_keeps_its_cost(costs: dict[str, int]) -> None:
    body = "".join(f"fn=({number}) {name}\n0 {cost}\n" for number, (name, cost) in enumerate(costs.items()))
    profile = parse_profile(f"events: Ir\n{body}totals: {sum(costs.values())}\n")
    assert {function: cost for (function, _), cost in profile.functions.items()} == costs


@pytest.mark.parametrize("kind", ["link", "pipe", "too large"])
def test_what_a_server_puts_in_the_place_of_its_profile_is_not_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's file, or one that never ends; the server's account owns the folder."""
    dump = tmp_path / "callgrind.812.1"
    if kind == "link":
        (tmp_path / "mine").write_text(SMALL)
        dump.symlink_to(tmp_path / "mine")
    elif kind == "pipe":
        os.mkfifo(dump)
    else:
        dump.write_text(SMALL)
        monkeypatch.setattr("runners.instructions.valgrind.LARGEST_DUMP_BYTES", 10)
    with pytest.raises(CountingFailed, match=r"callgrind\.812\.1"):
        Callgrind(tmp_path).take(812)
    dump.unlink()
    dump.write_text(SMALL)
    monkeypatch.undo()
    assert Callgrind(tmp_path).take(812) == parse_profile(SMALL)
