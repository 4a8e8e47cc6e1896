"""The tables on the terminal, as Markdown, CSV and JSON. Golden files are named by scenario; to write them anew after
a wanted change: `GOLDEN=write pytest tests/reports/test_tables.py`, then read the difference."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from history.errors import BadSettings, UnknownSeries
from history.store import Store
from pointdrop.cli.main import app
from presentation.line_tables import Selection, line_tables
from presentation.tables import Table, tables_text
from reports.settings import ReportSettings, load_settings
from reports.snapshot import grouped_by_line

GOLDEN = Path(__file__).parent / "golden"
POSTGRES = {"dbms": "postgres", "line": "17", "view": "insn/o"}
MYSQL = {"dbms": "mysql", "line": "8.0"}
ACROSS = ("postgres 17.0", "postgres 17.5", "postgres 18.2")
SCENARIOS = {
    "relative-instructions-of-postgres-17.text": ("relative", POSTGRES, "text"),
    "groups-of-postgres-17.markdown": ("groups", POSTGRES, "markdown"),
    "per-operation-of-one-test.text": ("per-operation", {"dbms": "postgres", "line": "18", "test": "scan"}, "text"),
    "configs-of-postgres-18.text": ("configs", {"dbms": "postgres", "line": "18", "view": "instructions-op"}, "text"),
    "insert-with-sla-failure.text": ("insert", MYSQL, "text"),
    "insert-with-sla-failure.markdown": ("insert", MYSQL, "markdown"),
    "relative-of-mysql-8.0.csv": ("relative", MYSQL, "csv"),
    "insert-side-by-side.text": (
        "insert",
        {"releases": ("mysql 8.0.24 cy10a_bee", "mysql 8.0.30 cy10a_bee", "mysql 8.0.32 cy10a_bee")},
        "text",
    ),
    "relative-across-lines.text": ("relative", {"view": "insn/o", "releases": ACROSS}, "text"),
    "groups-across-lines.markdown": ("groups", {"view": "insn/o", "releases": ACROSS}, "markdown"),
}


def tables(history: Store, name: str, settings: ReportSettings, **wanted: Any) -> list[Table]:
    """The tables of a part of a history; `view`, `base` and `releases` say how it is looked at."""
    how = {key: wanted.pop(key) for key in ("view", "base", "releases") if key in wanted}
    selection = Selection(settings.metrics, settings.order, **how)
    return line_tables(name, grouped_by_line(history.series(**wanted)), selection)


@pytest.mark.parametrize("name", SCENARIOS)
def test_tables_are_as_in_the_golden_files(history: Store, settings: ReportSettings, name: str) -> None:
    kind, selection, format = SCENARIOS[name]
    text = tables_text(tables(history, kind, settings, **selection), format)
    path = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_csv_and_json_hold_the_numbers_unrounded(history: Store, settings: ReportSettings) -> None:
    found = tables(history, "relative", settings, **MYSQL)
    rows = list(csv.reader(io.StringIO(tables_text(found, "csv"))))
    objects = json.loads(tables_text(found, "json"))
    assert rows[0] == objects[0]["columns"] == ["test", *(f"8.0.{p}" for p in (24, 25, 26, 27, 28, 30, 31, 32))]
    assert [float(cell) for cell in rows[1][1:]] == objects[0]["rows"][0][1:]
    assert objects[0]["rows"][0][2] != round(objects[0]["rows"][0][2], 4)


def test_another_base(history: Store, settings: ReportSettings) -> None:
    found = tables(history, "relative", settings, dbms="mysql", base="8.0.28")
    assert all(row[5] == 1.0 for row in found[0].rows)
    with pytest.raises(UnknownSeries, match=r"no release '9\.9'.*8\.0\.24"):
        tables(history, "relative", settings, dbms="mysql", base="9.9")


def test_nothing_to_show_says_what_there_is(history: Store, settings: ReportSettings) -> None:
    words = ["report", "table", "relative", "--dbms", "oracle", "--history", str(history.url)]
    nothing = CliRunner().invoke(app, words)
    assert isinstance(nothing.exception, UnknownSeries)
    assert "mysql 8.0 ser4 cy10a_bee insert" in str(nothing.exception)
    with pytest.raises(UnknownSeries, match="no metric 'speed'; allowed are the views throughput"):
        tables(history, "relative", settings, view="speed")


def test_releases_side_by_side_must_have_been_measured(history: Store, settings: ReportSettings) -> None:
    with pytest.raises(
        UnknownSeries, match=r"all of postgres 17\.0, mysql 9\.9; measured are: .*postgres 17\.0 default"
    ):
        tables(history, "relative", settings, releases=("postgres 17.0", "mysql 9.9"))
    with pytest.raises(UnknownSeries, match="no server and benchmark has insert figures"):
        tables(history, "insert", settings, releases=("postgres 17.0", "postgres 18.0"))
    with pytest.raises(UnknownSeries, match="relative, groups, insert, not with configs"):
        tables(history, "configs", settings, releases=("postgres 17.0", "postgres 18.0"))
    with pytest.raises(UnknownSeries, match="leave --base out"):
        tables(history, "relative", settings, releases=("postgres 17.0", "postgres 17.1"), base="17.1")


def test_the_command_prints_and_writes(history: Store, tmp_path: Path) -> None:
    url = str(history.url)
    runner = CliRunner()
    shown = runner.invoke(app, ["report", "table", "insert", "--history", url, "--format", "markdown"])
    assert shown.exit_code == 0, shown.output
    assert "SLA 80" in shown.stdout
    out = tmp_path / "deep" / "table.csv"
    assert (
        runner.invoke(
            app, ["report", "table", "groups", "--history", url, "--format", "csv", "--out", str(out)]
        ).exit_code
        == 0
    )
    assert out.read_text(encoding="utf-8").startswith("table,")


def test_the_command_builds_and_says_what_it_did(history: Store, tmp_path: Path) -> None:
    runner = CliRunner()
    arguments = ["report", "build", "--history", str(history.url), "--out", str(tmp_path / "site"), "--format", "json"]
    planned = json.loads(runner.invoke(app, [*arguments, "--dry-run"]).stdout)
    assert not (tmp_path / "site").exists()
    done = json.loads(runner.invoke(app, arguments).stdout)
    assert done["written"] == planned["written"]
    assert set(done) == {
        "out", "written", "unchanged", "removed", "pages", "bytes", "largest", "largest_bytes", "findings", "lines",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["relative", "groups", "insert", "configs"])
def test_lines_without_the_base_are_left_out_and_no_line_at_all_is_an_error(
    history: Store, settings: ReportSettings, name: str
) -> None:
    base = "sync_off" if name == "configs" else "8.0.28"
    found = tables(history, name, settings, base=base)
    assert found and all(base in table.title or "absolute" in table.title or not table.decimals for table in found)
    assert name == "configs" or all("mysql 8.0" in table.title for table in found)
    with pytest.raises(UnknownSeries, match=r"no (release|config) '99.9' in this selection; it has "):
        tables(history, name, settings, base="99.9")


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("metrics.toml", '[qps]\nunit = "/s"\nbetter = "up"\n', r"qps\.better: Input should be 'higher' or 'lower'"),
        ("metrics.toml", "qps = 1\n", "a table .qps. is wanted"),
        ("metrics.toml", "x = [", "not TOML"),
        ("benchmarks/own.toml", "[[test]]\n", "own.toml is not of the form .*'name'"),
    ],
)
def test_a_file_of_the_configuration_that_is_wrong_is_named(tmp_path: Path, file: str, text: str, said: str) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / file).write_text(text)
    with pytest.raises(BadSettings, match=said) as caught:
        load_settings(tmp_path)
    assert caught.value.exit_code == 2
