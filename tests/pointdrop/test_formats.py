"""What commands print for programs: the keys and columns that their help names, in every format they take."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from detector.bisect import Measure, begin, record_block, record_unusable, step
from detector.bisect_answers import Judge
from detector.explanation import Explanation
from history import datasets
from history.store import Store
from pointdrop.cli.bisect import answer_lines, candidate_rows
from pointdrop.cli.main import app, command_tree
from pointdrop.cli.rows import emit, rows_text
from pointdrop.jobs.bisect import Bisection
from pointdrop.jobs.compare import CompareReport
from pointdrop.jobs.summary import Summary

TIDY = "series_id,position,value,better\n" + "".join(f"c,{n},{1.0 if n < 30 else 1.2},lower\n" for n in range(60))


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state with a small history and its detection."""
    folder = tmp_path_factory.mktemp("formats")
    with Store.open(f"sqlite:///{folder}/history.db") as store:
        datasets.load(store, "smalldatum")
    (folder / "values.csv").write_text(TIDY)
    run(folder, "detect", "--format", "json")
    return folder


def run(state: Path, *words: str, code: int | None = 0) -> str:
    settings = {
        "POINTDROP_STATE": str(state), "POINTDROP_HISTORY": f"sqlite:///{state}/history.db",
        "GITHUB_TOKEN": None, "GITHUB_REPOSITORY": None, "POINTDROP_APP_ID": None,
    }  # fmt: skip
    result = CliRunner().invoke(app, list(words), env=settings)
    assert code is None or result.exit_code == code, result.output
    return result.stdout


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("detect", "--dry-run", "--dbms", "mysql", "--line", "8.0"),
    ("replay", "--dbms", "mysql", "--line", "8.0"),
    ("releases", "list", "mysql"),
    ("alerts", "list"),
    ("alerts", "preview", "--provisional"),
    ("doctor",),
    ("changepoints", "VALUES"),
)


def documented(words: tuple[str, ...], what: str) -> list[str]:
    """The names after `JSON keys` or `CSV columns` in the help of a command."""
    command: Any = command_tree()
    for word in words:
        command = command.commands[word] if hasattr(command, "commands") else command
    text = " ".join(command.help.split())
    found = re.search(rf"(?:{what}|JSON keys and CSV columns): ([^.]*)\.", text)
    assert found, f"the help of {' '.join(words)} names no {what}"
    return found[1].split(", ")


def asked(state: Path, words: tuple[str, ...], *more: str) -> str:
    return run(state, *(str(state / "values.csv") if word == "VALUES" else word for word in words), *more, code=None)


def test_an_answer_without_rows_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    out = tmp_path / "rows.txt"
    out.write_text("old")
    run(tmp_path, "alerts", "list", "--out", str(out))
    assert out.read_text() == "state  issue  key  title\n"
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_a_pipe_stays_a_pipe_and_a_link_a_link(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "latest", tmp_path / "rows.txt"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    emit("rows\n", pipe)
    assert (os.read(reader, 100), pipe.is_fifo()) == (b"rows\n", True)
    os.close(reader)
    target.write_text("old")
    link.symlink_to(target)
    emit("rows\n", link)
    assert (target.read_text(), link.is_symlink()) == ("rows\n", True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "pipe", "rows.txt"]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="this system has no disk in memory there")
def test_a_file_on_a_disk_in_memory_is_replaced() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        out = Path(folder) / "rows.txt"
        emit("old\n", out)
        emit("new\n", out)
        assert out.read_text() == "new\n"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_json_has_the_keys_that_the_help_names(words: tuple[str, ...], state: Path) -> None:
    told = json.loads(asked(state, words, "--format", "json"))
    assert told and all(sorted(row) == sorted(documented(words, "JSON keys")) for row in told), sorted(told[0])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_csv_and_markdown_have_a_row_for_each(words: tuple[str, ...], state: Path, tmp_path: Path) -> None:
    rows = list(csv.reader(io.StringIO(asked(state, words, "--format", "csv"))))
    assert len(rows) > 1 and len({len(row) for row in rows}) == 1
    names = documented(words, "CSV columns")
    if "and those of `detect`" in names:
        names = [*names[:-1], *(name for name in documented(("detect",), "CSV columns") if name != "dbms")]
    assert rows[0] == names
    out = tmp_path / "below" / "out.csv"
    assert asked(state, words, "--format", "csv", "--out", str(out)) == ""
    assert len(list(csv.reader(io.StringIO(out.read_text())))) == len(rows)
    if words[1:2] != ("preview",):  # which prints issues in full
        html = cmarkgfm.github_flavored_markdown_to_html(asked(state, words, "--format", "markdown"))
        assert html.count("<tr>") == len(rows)


def test_a_dry_sync_prints_what_the_preview_prints(state: Path) -> None:
    kept = json.loads(asked(state, ("alerts", "sync", "--dry-run", "--provisional", "--format", "json")))
    assert kept == json.loads(asked(state, ("alerts", "preview", "--provisional", "--format", "json")))
    done = json.loads(asked(state, ("alerts", "sync", "--format", "json", "--issues", str(state / "elsewhere"))))
    assert sorted(done) == sorted(documented(("alerts", "sync"), "JSON keys"))


@pytest.mark.parametrize(
    ("words", "of"), [(("nightly",), Summary), (("compare",), CompareReport), (("explain",), Explanation)]
)
def test_reports_have_the_keys_that_the_help_names(words: tuple[str, ...], of: Any) -> None:
    names = list(of.model_fields) if hasattr(of, "model_fields") else [one.name for one in dataclasses.fields(of)]
    assert documented(words, "JSON keys") == names


def test_a_query_goes_to_a_file_and_says_nothing_when_asked(state: Path, tmp_path: Path) -> None:
    out = tmp_path / "lines.csv"
    assert asked(state, ("history", "query", "lines", "--format", "csv", "--out", str(out))) == ""
    assert out.read_text().startswith("dbms,line,")
    nothing = ["history", "query", "lines", "--dbms", "oracle", "--history", f"sqlite:///{state}/history.db"]
    assert "no lines with --dbms oracle" in CliRunner().invoke(app, nothing).stderr
    assert CliRunner().invoke(app, [*nothing, "--quiet"]).stderr == ""


@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b"]), st.none() | st.text() | st.floats(), min_size=2), max_size=4)
)
def test_any_cell_stays_in_its_cell(rows: list[dict[str, Any]]) -> None:
    parsed = list(csv.DictReader(io.StringIO(rows_text(rows, "csv", ("a", "b")))))
    assert len(parsed) == len(rows)
    markdown = rows_text(rows, "markdown", ("a", "b"))
    assert len(markdown.splitlines()) == len(rows) + 2
    assert len(rows_text(rows, "text", ("a", "b")).splitlines()) == len(rows) + 1


def test_a_bisection_in_rows_and_in_words() -> None:
    machine = begin(("18.0", "18.1", "18.2"), 10, Judge(floor_pct=0.5, noise=0.0015))
    machine = record_unusable(machine, "18.1", "does not build")
    for value in (100.0, 102.0):
        machine = record_block(record_block(machine, "18.0", value), "18.2", 1.45 * value)
    held = Bisection(dbms="postgres", test="scan", metric="insn/o", config="default", machine=machine)
    assert candidate_rows(held) == [
        {"candidate": "18.0", "level": 101.0, "change_pct": 0.0, "side": "end", "blocks": 2, "note": ""},
        {
            "candidate": "18.1",
            "level": None,
            "change_pct": None,
            "side": "unusable",
            "blocks": 0,
            "note": "does not build",
        },
        {"candidate": "18.2", "level": 146.45, "change_pct": 45.0, "side": "end", "blocks": 2, "note": ""},
    ]
    answer = step(machine)
    assert not isinstance(answer, Measure)
    first, *_, last = answer_lines(held, answer)
    assert first == "The change came after 18.0, with one of 18.1, 18.2: 18.1 could not be measured."
    assert last == "  18.1: does not build"
