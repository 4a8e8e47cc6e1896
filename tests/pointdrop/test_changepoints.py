"""`pointdrop changepoints`: tables in, JSON Lines out; the server; what a bad table is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from detector.commits.methods import METHODS, RupturesMethod
from pointdrop.cli.main import app
from pointdrop.jobs.changepoints import answer_lines, is_release_series, judge
from pointdrop.jobs.tidy_csv import BadTable, read_tidy

POINTDROP = [sys.executable, "-c", "from pointdrop.cli.main import run; run()"]
KEYS = [
    "series_id",
    "position",
    "label",
    "previous",
    "direction",
    "change_pct",
    "low_pct",
    "high_pct",
    "probability",
    "q_value",
    "tier",
    "warnings",
]


def releases(*, tests: int = 6, changed: int = 3, releases: int = 14, blocks: int = 2) -> list[str]:
    """A table of releases; the first `changed` tests lose 6 % at release 9."""
    random = np.random.default_rng(4)
    lines = ["series_id,position,value,label,block,dbms,line,config,benchmark,test,metric,better"]
    for t in range(tests):
        for r in range(releases):
            for b in range(blocks):
                value = 1000 * np.exp(0.005 * random.standard_normal()) * (0.94 if r >= 9 and t < changed else 1.0)
                lines.append(f"r{t},{r},{value:.3f},8.0.{r + 20},{b},mysql,8.0,c,sysbench,t{t},qps,higher")
    return lines


def commits(n: int = 90, at: int = 60) -> list[str]:
    random = np.random.default_rng(5)
    values = 5 * np.exp(0.01 * random.standard_normal(n)) * np.where(np.arange(n) < at, 1.0, 1.1)
    return ["series_id,position,value,better", *(f"c,{10 * i},{v},lower" for i, v in enumerate(values))]


def rows(lines: Iterable[str], **how: bool) -> list[dict[str, object]]:
    return judge(read_tidy(lines), **how).rows


@pytest.mark.parametrize(("metric", "places"), [("insn/o", [60]), ("qps", []), ("mine", []), ("", [])])
def test_the_smallest_change_of_a_commit_series_is_that_of_its_metric_where_that_is_less(
    metric: str, places: list[int]
) -> None:
    """A step of 0.3 % at 0.03 % of noise: worth a word in counted instructions, and in nothing else."""
    random = np.random.default_rng(6)
    values = 40_000 * np.exp(0.0003 * random.standard_normal(90)) * np.where(np.arange(90) < 60, 1.0, 1.003)
    lines = ["series_id,position,value,metric", *(f"c,{i},{value},{metric}" for i, value in enumerate(values.tolist()))]
    assert [row["position"] for row in rows(lines)] == places


def test_releases_are_judged_together() -> None:
    found = rows(releases())
    assert [(row["series_id"], row["label"], row["previous"]) for row in found] == [
        (f"r{t}", "8.0.29", "8.0.28") for t in range(3)
    ]
    assert all(list(row) == KEYS for row in found)
    assert {row["direction"] for row in found} == {"regression"}
    assert {row["position"] for row in found} == {9}


def test_labels_that_are_no_versions_are_said() -> None:
    """What lies between two of them is unknown, and a change across eight releases is likelier than across one."""
    tagged = [line.replace("8.0.", "my80") for line in releases()]
    for pool in (True, False):
        (note,) = judge(read_tidy(tagged), pool=pool).notes
        assert note.startswith("6 series: No versions: my8020, my8021, my8022 and 11 more.")
    assert judge(read_tidy(releases())).notes == []


def test_a_newest_release_that_is_not_likely_enough_is_provisional_whatever_its_blocks() -> None:
    found = rows(releases(changed=6, releases=10))
    assert {(row["position"], row["tier"]) for row in found} == {(9, "confirmed")}
    random = np.random.default_rng(1)
    header, *body = releases(changed=0, releases=10, tests=12)
    tiers = set()
    for factor in 1.0 + 0.01 * random.random(12):
        weak = [
            ",".join([*cells[:2], f"{float(cells[2]) * 0.98 * factor:.3f}", *cells[3:]])
            if (cells := line.split(","))[0] == "r0" and cells[1] == "9"
            else line
            for line in body
        ]
        for row in rows([header, *weak]):
            tiers.add((row["tier"], row["probability"] < 0.62))
    assert tiers >= {("provisional", True)}
    assert ("confirmed", True) not in tiers


def test_releases_can_be_judged_one_by_one() -> None:
    assert {row["series_id"] for row in rows(releases(), pool=False)} <= {"r0", "r1", "r2"}


def test_a_commit_series_keeps_its_positions() -> None:
    (found,) = rows(commits())
    assert (found["position"], found["label"], found["direction"], found["tier"]) == (
        600,
        None,
        "regression",
        "confirmed",
    )
    assert list(found) == KEYS


def test_order_of_rows_does_not_matter() -> None:
    header, *body = releases()
    assert rows([header, *body[::-1]]) == sorted(
        rows([header, *body]), key=lambda row: str(row["series_id"]), reverse=True
    )


def test_the_engine_follows_labels_and_length() -> None:
    assert all(is_release_series(one) for one in read_tidy(releases()))
    assert not any(is_release_series(one) for one in read_tidy(commits()))
    long = ["series_id,position,value,label", *(f"s,{i},1,v{i}" for i in range(61))]
    assert not is_release_series(read_tidy(long)[0])
    assert is_release_series(read_tidy(long[:-1])[0])


def test_series_without_a_description_of_their_own_are_kept_apart() -> None:
    random = np.random.default_rng(6)
    lines = ["series_id,position,value,label"]
    for name, factor in (("a|b", 1.0), ("plain", 0.8)):
        values = 10 * np.exp(0.004 * random.standard_normal(12)) * np.where(np.arange(12) < 6, 1.0, factor)
        lines += [f"{name},{i},{value},v{i}" for i, value in enumerate(values)]
    assert [(row["series_id"], row["position"], row["direction"]) for row in rows(lines)] == [("plain", 6, "change")]


def test_gaps_are_gaps() -> None:
    lines = commits()
    lines[5] = "c,40,,lower"
    lines[6] = "c,50,NaN,lower"
    (found,) = rows(lines)
    assert found["position"] == 600
    assert found["warnings"] == ["2 of 90 values are missing or not finite and were left out"]


def test_blocks_of_a_commit_become_their_median() -> None:
    header, *body = commits()
    blocks = [f"{line},{b}" for line in body for b in ("1", "2", "3")]
    spoilt = [line if not line.endswith(",2") else line.replace(line.split(",")[2], "1e6") for line in blocks]
    assert [row["position"] for row in rows([header + ",block", *spoilt])] == [600]


@settings(max_examples=15, deadline=None)
@given(data=st.data(), copies=st.integers(1, 4))
def test_neither_the_order_of_rows_nor_repeated_blocks_change_a_byte(data: st.DataObject, copies: int) -> None:
    header, *body = commits()
    plain = rows([f"{header},block", *(f"{line},b" for line in body)])
    loaded = [f"{line},b{copy}" for line in body for copy in range(copies)]
    assert json.dumps(rows([f"{header},block", *data.draw(st.permutations(loaded))])) == json.dumps(plain)
    assert plain


def test_the_same_table_gives_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("\n".join(releases()))
    command = [sys.executable, "-c", "from pointdrop.cli.main import run; run()", "changepoints", str(table)]
    outputs = {
        subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
    assert outputs != {b""}


EXTREMES = st.sampled_from([1e-200, 5e-324, 0.0, -1e-200, 1.0, 1e200, 1e299, -1e299])


@settings(max_examples=60, deadline=None)
@given(before=EXTREMES, after=EXTREMES, odd=EXTREMES, labelled=st.booleans(), method=st.sampled_from(["", "pelt"]))
def test_every_number_is_finite_or_null(before: float, after: float, odd: float, labelled: bool, method: str) -> None:
    values = [before] * 15 + [odd] + [before] * 5 + [after] * 15
    lines = ["series_id,position,value,label,metric,better"]
    lines += [f"s,{i},{value!r},{f'v{i}' if labelled else ''},qps,higher" for i, value in enumerate(values)]
    judgement = judge(read_tidy(lines), method=RupturesMethod(method) if method else None)
    for row in judgement.rows:
        assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert "inf" not in " ".join(judgement.notes)


def test_a_level_of_almost_nothing_before_gives_a_bounded_percentage() -> None:
    values = [1e-200] * 20 + [5.0, 5.1] * 10
    (found,) = rows(["series_id,position,value", *(f"s,{i},{value!r}" for i, value in enumerate(values))])
    assert (found["position"], found["change_pct"]) == (20, 1e9)


def test_methods_of_ruptures_have_the_same_columns(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("\n".join(releases(tests=2, changed=1, releases=20)))
    for name in METHODS:
        result = CliRunner().invoke(app, ["changepoints", str(table), "--method", name], catch_exceptions=False)
        told = [row for row in map(json.loads, result.stdout.splitlines()) if row["series_id"] == "r0"]
        row = min(told, key=lambda row: row["change_pct"])
        assert list(row) == KEYS
        assert abs(row["position"] - 9) <= 1
        assert (row["label"], row["direction"]) == (f"8.0.{row['position'] + 20}", "regression")
        assert (row["probability"], row["q_value"], row["tier"]) == (None, None, None)
    arguments = [
        "changepoints",
        str(table),
        "--method",
        "pelt",
        "--model",
        "l1",
        "--penalty",
        "1000",
        "--format",
        "csv",
    ]
    assert CliRunner().invoke(app, arguments, catch_exceptions=False).stdout.splitlines() == [",".join(KEYS)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "l1"], "name one with --method"),
        (["--penalty", "3"], "name one with --method"),
        (["--method", "kernel", "--model", "l1"], "model of kernel must be one of rbf, l2"),
        (["--method", "pelt", "--penalty", "much"], "penalty must be bic, aic or a number above 0, got 'much'"),
        (["--method", "pelt", "--serve"], "answers with pointdrop only"),
        (["--method", "cusum"], "cusum"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["changepoints", *options, "-"], input="")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "line 1: column series_id is missing"),
        (["series_id,value"], "line 1: column position is missing"),
        (["series_id,position,value,value"], "line 1, column value: named twice"),
        (["series_id,position,value", "a,0,fast"], "line 2, column value: must be a number or empty, got 'fast'"),
        (["series_id,position,value", "a,0,1", "a,x,1"], "line 3, column position: must be an integer, got 'x'"),
        (["series_id,position,value", "a,0"], "line 2: 1 cells too few for the header"),
        (["series_id,position,value", "a,0,1,2"], "line 2: 1 cells too many for the header"),
        (["series_id,position,value", ",0,1"], "line 2, column series_id: empty"),
        (["series_id,position,value", "a,0,1", "a,0,2"], "line 3, column block: series a has position 0 twice"),
        (["series_id,position,value,better", "a,0,1,up"], "line 2, column better: must be higher or lower"),
        (["series_id,position,value,label", "a,0,1,x", "b,0,1,y", "a,1,1,z"], ""),
        (["series_id,position,value,block,label", "a,0,1,1,x", "a,0,1,2,y"], "line 3, column label: 'y', but 'x'"),
        (["series_id,position,value,metric", "a,0,1,qps", "a,1,1,ips"], "line 3, column metric: 'ips', but 'qps'"),
        (["series_id,position,value", 'a,0,"1'], "line 2: unexpected end of data"),
    ],
)
def test_a_bad_table_is_told_line_and_column(lines: list[str], message: str) -> None:
    if not message:
        assert len(read_tidy(lines)) == 2
        return
    with pytest.raises(BadTable) as caught:
        read_tidy(lines)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_the_command_reads_a_file_and_writes_lines(tmp_path: Path) -> None:
    table, out = tmp_path / "table.csv", tmp_path / "out.jsonl"
    table.write_text("\ufeff" + "\n".join(commits()), encoding="utf-8")
    result = CliRunner().invoke(app, ["changepoints", str(table)], catch_exceptions=False)
    assert [json.loads(line)["position"] for line in result.stdout.splitlines()] == [600]
    marked = ("\ufeff" + "\n".join(commits())).encode()
    result = CliRunner().invoke(app, ["changepoints", "--out", str(out), "-"], input=marked)
    assert (result.exit_code, result.stdout) == (0, "")
    assert [json.loads(line)["position"] for line in out.read_text().splitlines()] == [600]


def test_the_command_refuses_a_bad_table(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("series_id,position,value\na,0,x\n")
    command = [sys.executable, "-c", "from pointdrop.cli.main import run; run()", "changepoints", str(table)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "line 2, column value" in result.stderr
    assert "Traceback" not in result.stderr
    piped = subprocess.run(
        [*command[:-1], "-"], input=b"series_id,position,value\nw\xe9,0,1\n", capture_output=True, check=False,
        env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert (piped.returncode, b"must be UTF-8" in piped.stderr) == (2, True)


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_the_server_goes_on_after_a_line_that_is_no_utf_8(errors: str) -> None:
    lines = [
        b'{"values": "caf\xe9"}',
        b"",
        b"\xff\xff",
        json.dumps({"values": [5.0, 5.1] * 20 + [6.0, 6.1] * 20}).encode(),
    ]
    server = subprocess.run(
        [*POINTDROP, "changepoints", "--serve"], input=b"\n".join(lines), capture_output=True, check=True,
        env={**os.environ, "PYTHONIOENCODING": f"utf-8:{errors}"},
    )  # fmt: skip
    first, second, last = (json.loads(line) for line in server.stdout.splitlines())
    assert "a line must be UTF-8" in first["error"]
    assert "a line must be UTF-8" in second["error"]
    assert last == {"indices": [40]}


def test_the_server_answers_at_once_and_goes_on_after_a_bad_line() -> None:
    command = [sys.executable, "-c", "from pointdrop.cli.main import run; run()", "changepoints", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout

        def ask(line: str) -> dict[str, object]:
            print(line, file=server.stdin, flush=True)
            reply: dict[str, object] = json.loads(server.stdout.readline())  # type: ignore[union-attr]
            return reply

        assert ask(json.dumps({"values": [5.0, 5.1] * 20 + [6.0, 6.1] * 20})) == {"indices": [40]}
        assert list(ask("not JSON")) == ["error"]
        qps = 1000 * np.exp(0.004 * np.random.default_rng(7).standard_normal((1, 6, 12, 2)))
        qps[:, 2, 8:] *= 0.93
        assert ask(json.dumps({"type": "matrix", "qps": qps.tolist(), "cpu": None})) == {"changes": [[0, 2, 8]]}
        assert ask(json.dumps({"values": [5.0, 5.1] * 20})) == {"indices": []}
        server.stdin.close()
        assert server.wait(timeout=30) == 0


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({}, '"qps" must be an array'),
        ({"qps": [1, 2]}, "four dimensions"),
        ({"qps": [[[[1], [2, 3]]]]}, '"qps" must be an array'),
        ({"qps": [[[]]]}, "four dimensions"),
        ({"qps": [[[["fast"]]]]}, '"qps" must be an array'),
        ({"qps": [[[[1.0, 2.0]]]], "cpu": [[[[1.0]]]]}, "must be the same"),
    ],
)
def test_a_bad_matrix_is_told_why(question: dict[str, object], message: str) -> None:
    (reply,) = answer_lines([json.dumps({"type": "matrix", **question}).encode()])
    assert message in json.loads(reply)["error"]
