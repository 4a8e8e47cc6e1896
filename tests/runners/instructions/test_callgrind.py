"""Callgrind profiles: names compressed or not, calls left out, and nothing that does not add up."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.errors import CountingFailed
from runners.instructions.callgrind import Call, CallCount, ProfiledFunction, parse_profile
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
* 785
cob=(3) /lib/libc.so.6
cfi=(2) memcpy.S
cfn=(8) memcpy
calls=5 0
fi=(4) inlined.h
-2 15
-2 5

fn=(40)
0 700
cob=(3)
cfi=(2)
cfn=(8)
calls=20 0
+3 70
cfn=(12)
calls=3 0
+3 15

ob=(3)
fl=(2)
fn=(8)
120 85
jump=3 +7
120

totals: 2000
"""


def function(name: str, obj: str = "postgres") -> ProfiledFunction:
    return ProfiledFunction(name, obj)


def test_self_costs_and_calls_of_functions() -> None:
    profile = parse_profile(SMALL)
    run, portal, memcpy = function("ExecutorRun"), function("PortalRun"), function("memcpy", "libc.so.6")
    assert profile.total == 2000
    assert profile.functions == {run: 1215, portal: 700, memcpy: 85}
    assert profile.calls == {
        Call(run, portal): CallCount(1000, 785),
        Call(run, memcpy): CallCount(5, 15),
        Call(portal, memcpy): CallCount(20, 70),
        Call(portal, run): CallCount(3, 15),
    }, "the callee is in the caller's object unless the file says otherwise"
    assert profile.inclusive == {run: 2015, portal: 785, memcpy: 85}


def test_an_instruction_is_inclusive_once_however_deep_a_function_recurs() -> None:
    """main -> walk -> step -> walk -> step -> walk, ten instructions of walk each and one of step."""
    profile = parse_profile(
        """events: Ir
ob=(1) /bin/tree
fn=(1) main
0 5
cfn=(2) walk
calls=1 0
0 32
fn=(2)
0 10
cfn=(3) step
calls=1 0
0 22
fn=(3)
0 1
cfn=(4) walk'2
calls=1 0
0 21
fn=(4)
0 20
cfn=(5) step'2
calls=1 0
0 11
fn=(5)
0 1
cfn=(4)
calls=1 0
0 10
totals: 37
"""
    )
    main, walk, step = (function(name, "tree") for name in ("main", "walk", "step"))
    assert profile.functions == {main: 5, walk: 30, step: 2}
    assert profile.inclusive == {main: 37, walk: 32, step: 22}
    assert profile.calls == {
        Call(main, walk): CallCount(1, 32),
        Call(walk, step): CallCount(2, 22),
        Call(step, walk): CallCount(2, 21),
    }


def test_a_function_that_was_active_when_counting_began_has_its_cost() -> None:
    text = "events: Ir\nfn=(1) loop'2\n0 5\ncfn=(2) work\ncalls=4 0\n0 20\nfn=(2)\n0 20\ntotals: 25\n"
    profile = parse_profile(text)
    assert profile.inclusive == {function("loop", ""): 25, function("work", ""): 20}


Tree = list["Tree"]


@given(st.recursive(st.just([]), lambda children: st.lists(children, max_size=4), max_leaves=30), st.data())
def test_inclusive_costs_are_those_of_the_call_tree(tree: Tree, data: st.DataObject) -> None:
    """A tree of calls, written as callgrind would write it, against what a walk over the tree counts."""
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    frames: Counter[str] = Counter()
    edges: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])

    def walk(node: Tree, active: tuple[str, ...]) -> tuple[str, int]:
        name = data.draw(st.sampled_from("abcd"))
        frame = f"{name}'2" if name in active else name
        cost = 1 + data.draw(st.integers(0, 9))
        own[name] += cost
        frames[frame] += cost
        for child in node:
            callee, inside = walk(child, (*active, name))
            edges[frame, callee][0] += 1
            edges[frame, callee][1] += inside
            cost += inside
        if name not in active:
            within[name] += cost
        return frame, cost

    _, total = walk(tree, ())
    numbers = {name: number for number, name in enumerate(frames)}
    lines = ["events: Ir", "ob=(1) /bin/tree"]
    for name, cost in frames.items():
        lines += [f"fn=({numbers[name]}) {name}", f"0 {cost}"]
        for (caller, callee), (count, inside) in edges.items():
            if caller == name:
                lines += [f"cfn=({numbers[callee]}) {callee}", f"calls={count} 0", f"0 {inside}"]
    profile = parse_profile("\n".join([*lines, f"totals: {total}", ""]))
    assert {key.name: cost for key, cost in profile.functions.items()} == own
    assert {key.name: cost for key, cost in profile.inclusive.items()} == within
    assert max(profile.inclusive.values()) == total
    assert sum(count.calls for count in profile.calls.values()) == sum(count for count, _ in edges.values())
    assert all(count.instructions <= total for count in profile.calls.values())


RECURSION = "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)); else echo $1; fi; }; f 6; f 3 > /dev/null"


def test_inclusive_costs_are_those_of_callgrind_annotate(tmp_path: Path) -> None:
    """Of a real program with recursion; the tool counts recursive functions more than once, so those are left out."""
    dump = tmp_path / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", "--dump-line=no", f"--callgrind-out-file={dump}", "--quiet"]
    subprocess.run([*command, "bash", "--norc", "-c", RECURSION], check=True, capture_output=True, timeout=120)
    profile = parse_profile(dump.read_text())
    tool = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--show-percs=no", str(dump)]
    text = subprocess.run(tool, capture_output=True, text=True, check=True).stdout
    row = re.compile(r"^ *([\d,]+) +[^:]*:(\S+) \[(.*)\]$", re.MULTILINE)
    theirs: dict[ProfiledFunction, list[int]] = defaultdict(list)
    recursive = set()
    for cost, name, obj in row.findall(text):
        key = ProfiledFunction(name.partition("'")[0], obj.rpartition("/")[2])
        theirs[key].append(int(cost.replace(",", "")))
        if "'" in name:
            recursive.add(key)
    alike = [key for key in theirs.keys() & profile.inclusive.keys() if len(theirs[key]) == 1]
    assert recursive and len(alike) > 300
    same = [key for key in alike if profile.inclusive[key] == theirs[key][0]]
    assert len(same) >= 0.98 * len(alike), "some are active when the program ends, and the tool leaves out their own"
    assert all(profile.inclusive[key] <= profile.total for key in recursive)
    assert max(profile.inclusive.values()) == pytest.approx(profile.total, rel=0.01)


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
    assert {key.name: cost for key, cost in profile.functions.items()} == costs


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
