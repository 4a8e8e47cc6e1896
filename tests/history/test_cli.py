"""`pointdrop history` on the command line: exit codes, what goes where, and a walk through a day."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import pytest

from history.exporters import FORMATS
from history.interchange import header_line, line_of_record
from history.listing import rows_of
from history.spool import Spool
from pointdrop.cli import main
from tests.builders import SESSION, block, run


class Done(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def pointdrop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in a state directory of its own, in this process, since a process takes a second to start."""
    monkeypatch.setenv("POINTDROP_STATE", str(tmp_path / "var"))
    monkeypatch.delenv("POINTDROP_HISTORY", raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: str = "", code: int = 0) -> Done:
        monkeypatch.setattr(sys, "argv", ["pointdrop", "history", *arguments])
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as left:
            main.run()
            raise SystemExit(0)
        done = Done(*capsys.readouterr())
        assert (left.value.code or 0) == code, done
        return done

    return call


def lines() -> str:
    return "\n".join([header_line(), *map(line_of_record, (SESSION, run("17.1"), block(run("17.1"), 1.5)))]) + "\n"


def test_a_day_with_a_history(pointdrop: Command, tmp_path: Path) -> None:
    assert "245" in pointdrop("load", "smalldatum").stdout
    rows = json.loads(pointdrop("query", "series", "--dbms", "mysql", "--metric", "ips", "--format", "json").stdout)
    assert {"series", "unit", "better", "releases", "values", "first", "last"} == set(rows[0])
    pointdrop("backup", "backup.db")
    exported = pointdrop("export", "--dbms", "mariadb").stdout
    (tmp_path / "mariadb.jsonl").write_text(exported)
    again = json.loads(pointdrop("import", "mariadb.jsonl", "--format", "json").stdout)
    assert again[0] | {"file": ""} == {
        "file": "",
        "stored": True,
        "new": 0,
        "known": 15,
        "rejected": 0,
        "records": {},
        "rejections": [],
    }
    assert json.loads(pointdrop("verify", "--format", "json").stdout)[0]["problems"] == 0
    other = f"sqlite:///{tmp_path}/other.db"
    pointdrop("restore", "backup.db", "--history", other)
    assert "new" in pointdrop("merge", "backup.db", "--history", other).stdout


def test_append_from_standard_input(pointdrop: Command) -> None:
    assert "True" in pointdrop("append", "-", stdin=lines()).stdout
    assert "s/17.1" in pointdrop("query", "runs", "--format", "csv").stdout
    pointdrop("append", "-", "--dry-run", stdin=lines())


def test_bad_input_is_exit_code_2_with_the_line(pointdrop: Command) -> None:
    done = pointdrop("append", "-", stdin=lines() + "{\n", code=2)
    assert "standard input: line 5: no JSON" in done.stderr
    assert "nothing was stored" in done.stderr
    assert pointdrop("query", "sessions", "--format", "json").stdout.strip() == "[]"


def test_a_dry_run_stores_nothing(pointdrop: Command) -> None:
    done = pointdrop("append", "-", "--dry-run", "--format", "json", stdin=lines())
    assert json.loads(done.stdout)[0]["new"] == 3
    assert pointdrop("query", "sessions", "--format", "json").stdout.strip() == "[]"


def test_import_of_a_foreign_file(pointdrop: Command) -> None:
    captured = str(Path(__file__).with_name("captured") / "sysbench.txt")
    told = ("--dbms", "postgres", "--release", "17.2", "--test", "point-query", "--date", "2026-01-05")
    pointdrop("import", captured, *told)
    assert "13663.56" in pointdrop("query", "values", "--metric", "qps", "--format", "markdown").stdout
    pointdrop("import", captured, "--dbms", "postgres", code=2)
    pointdrop("import", captured, *told, "--better", "qps", code=2)


def test_what_is_not_there_is_said(pointdrop: Command) -> None:
    """An empty answer is empty on standard output, and standard error says why."""
    for what, words in (("lines", "history load"), ("findings", "pointdrop detect"), ("links", "alerts sync")):
        done = pointdrop("query", what)
        assert done.stdout == "" and words in done.stderr
    pointdrop("append", "-", stdin=lines())
    assert "--dbms nobody" in pointdrop("query", "series", "--dbms", "nobody").stderr
    assert "nothing waits" in pointdrop("recover").stderr


def test_an_empty_export_says_what_there_is(pointdrop: Command) -> None:
    assert "history load" in pointdrop("export").stderr
    pointdrop("append", "-", stdin=lines())
    for told in (("--dbms", "nobody"), ("--line", "16"), ("--line", "majors")):
        for format in set(FORMATS) - {"parquet"}:
            done = pointdrop("export", "--format", format, *told)
            assert f"with {' '.join(told)} as {format}" in done.stderr
            assert "there is postgres 17; more with: pointdrop history query lines" in done.stderr
    done = pointdrop("export", "--dbms", "nobody", "--out", "none.jsonl")
    assert "nothing to export" in done.stderr
    assert json.loads(pointdrop("import", "none.jsonl", "--format", "json").stdout)[0]["stored"]
    pointdrop("export", "--dbms", "nobody", "--format", "parquet", "--out", "none.parquet")
    assert "query series" in pointdrop("export", "--format", "csv", "--test", "none").stderr
    done = pointdrop("export", "--format", "bmf", "--release", "17.9")
    assert json.loads(done.stdout) == {} and "query releases" in done.stderr
    done = pointdrop("export", "--format", "customSmallerIsBetter")  # qps is better when higher
    assert json.loads(done.stdout) == [] and "nothing to export as" in done.stderr
    for format in ("jsonl", "csv", "bmf", "customBiggerIsBetter"):
        done = pointdrop("export", "--format", format)
        assert done.stdout and not done.stderr


def test_a_choice_that_a_format_cannot_make_is_refused(pointdrop: Command) -> None:
    """Rather than everything in place of the part that was asked for."""
    assert "whole blocks" in pointdrop("export", "--test", "point-query", code=2).stderr
    assert "every release" in pointdrop("export", "--format", "csv", "--release", "17.1", code=2).stderr


def test_a_correction(pointdrop: Command) -> None:
    pointdrop("append", "-", stdin=lines())
    pointdrop("supersede", "block", "s/17.1/1", "--reason", "the fan was broken")
    assert json.loads(pointdrop("query", "values", "--format", "json").stdout) == []
    assert "the fan was broken" in pointdrop("query", "corrections").stdout
    assert "not in the export: 1;" in pointdrop("export").stderr
    assert "no block nobody" in pointdrop("supersede", "block", "nobody", "--reason", "x", code=2).stderr


def test_recover_brings_in_what_was_kept_and_says_what_it_could_not(pointdrop: Command, tmp_path: Path) -> None:
    folder = tmp_path / "var" / "spool"
    Spool([folder]).keep([SESSION, run("17.1"), block(run("17.1"), 1.0)])
    pointdrop("recover")
    assert list(folder.iterdir()) == []
    Spool([folder]).keep([block(run("17.9"), 1.0)])
    assert "not stored" in pointdrop("recover", code=4).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("query", "everything"), 2, "take one of lines"),
        (("load", "nothing"), 2, "smalldatum"),
        (("export", "--format", "excel"), 2, "jsonl"),
        (("verify", "--history", "sqlite:////dev/null/h.db"), 1, "cannot be made"),
        (("merge", "nothing.db"), 2, "no history"),
        (("restore", "nothing.db"), 2, "no backup"),
        (("restore", "notes.txt"), 2, "notes.txt is no backup of a history: the file is no SQLite database"),
        (("backup", "/dev/null/b.db"), 1, "the backup /dev/null/b.db cannot be written"),
        (("export", "--out", "/dev/null/x.csv"), 1, "nothing was written there"),
        (("query", "--history", "here.db"), 2, "sqlite:///PATH"),
        (("import", "empty"), 0, "no .jsonl file"),
        (("append", "nothing.jsonl"), 2, "1 problem"),
    ],
)
def test_errors_say_what_to_do(
    pointdrop: Command, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (tmp_path / "notes.txt").write_text("this is not a database, " * 100)
    (tmp_path / "empty").mkdir()
    done = pointdrop(*arguments, code=code)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "what",
    [
        "lines",
        "releases",
        "sessions",
        "runs",
        "blocks",
        "readings",
        "series",
        "values",
        "findings",
        "events",
        "links",
        "corrections",
    ],
)
def test_every_kind_of_row_can_be_looked_at(what: str, tmp_path: Path) -> None:
    from history.model import FindingEvent, IssueLink
    from history.store import Store
    from tests.builders import DAY, READING
    from tests.history.test_maintenance import FINDING

    with Store.open(f"sqlite:///{tmp_path}/h.db") as store:
        store.append_session(SESSION)
        store.append_run(run("17.1"))
        store.append_block(block(run("17.1"), 1.5))
        store.append_block(block(run("17.1"), 2.5, 2))
        store.supersede("block", "s/17.1/2", "why not")
        store.append_detection([FINDING], "s")
        store.append_event(FindingEvent(key=FINDING.key, event="filed", at=DAY))
        store.append_link(IssueLink(key=FINDING.key, tracker="files", number=1))
        store.append_reading(READING)
        rows = rows_of(store, what, {})
        assert rows
        assert json.loads(json.dumps(rows)) == rows, "plain values"
        of_no_dbms = ("sessions", "readings", "events", "links", "corrections")
        assert rows_of(store, what, {"dbms": "nobody"}) == [] or what in of_no_dbms
