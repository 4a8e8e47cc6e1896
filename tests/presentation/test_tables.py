"""The writers: text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math

import pandas as pd

from presentation.tables import Table, escaped, rich_table, rows_text, tables_text


def test_foreign_text_cannot_leave_its_cell() -> None:
    names = pd.Index(["@all <img> [x](http://y) | \x1b[31m"], name="a")
    bad = Table("t|\n# x", pd.DataFrame({"b": [1.0], "@c": ["d|\n"]}, index=names))
    text = tables_text([bad], "markdown")
    assert text.count("\n") == 5
    assert "@all" not in text and "@c" not in text and "\x1b" not in text and "<img" not in text.replace("\\<img", "")
    assert "\x1b" not in tables_text([bad], "text")
    assert escaped("a|b") == "a\\|b"


def test_people_see_digits_and_programs_exact_numbers() -> None:
    values = pd.DataFrame({"x": [1 / 3, math.inf, math.nan]}, index=pd.Index(["a", "b", "c"], name="test"))
    table = Table("t", values, 3)
    assert table.rows == [["a", 1 / 3], ["b", math.inf], ["c", None]]
    assert tables_text([table], "text").splitlines()[3:] == ["a      0.333", "b        inf", "c          –"]
    assert list(csv.reader(io.StringIO(tables_text([table], "csv"))))[1:] == [
        ["a", repr(1 / 3)],
        ["b", "inf"],
        ["c", ""],
    ]
    (written,) = json.loads(tables_text([table], "json"))
    assert written == {"title": "t", "columns": ["test", "x"], "rows": [["a", 1 / 3], ["b", None], ["c", None]]}
    assert Table("t", values * 12345, None).text_rows()[0] == ["a", "4115"]


def test_several_tables_of_one_csv_have_their_title_first() -> None:
    table = Table("t", pd.DataFrame({"x": [1.0]}, index=pd.Index(["a"], name="test")), names_last=True)
    assert tables_text([table, table], "csv") == "table,x,test\nt,1.0,a\n" * 2


def test_what_is_worse_has_its_shape_and_in_colour_its_colour() -> None:
    index = pd.Index(["a"], name="test")
    table = Table("t", pd.DataFrame({"x": [0.5]}, index=index), styles=pd.DataFrame([["worse"]]))
    assert "▼ 0.50" in tables_text([table], "text") and "\x1b[" not in tables_text([table], "text")
    assert "\x1b[33m▼" in tables_text([table], "text", colour=True)
    assert "▼" not in tables_text([table], "markdown")


def test_rows_of_a_command_need_no_pandas() -> None:
    rows = [{"release": "18.2", "insn/o": 45000.5, "note": None}, {"release": "18|3", "insn/o": 1, "note": "a\nb"}]
    assert rows_text(rows, "csv") == "release,insn/o,note\n18.2,45000.5,\n18|3,1,a b\n"
    assert rows_text(rows, "text").splitlines() == [
        "release  insn/o   note",
        "18.2     45000.5",
        "18|3     1        a b",
    ]
    assert json.loads(rows_text(rows, "json")) == rows
    assert rows_text(rows, "markdown", ["release"]).splitlines()[-1] == "| 18\\|3 |"
    assert rows_text([], "csv") == "" and rows_text([], "json") == "[]\n" and rows_text([], "csv", ["a"]) == "a\n"
    assert rich_table(["a"], [["b"]]).row_count == 1
