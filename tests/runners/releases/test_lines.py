"""What vendors say of their lines, as the committed catalogues tell it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from history.errors import BadSettings
from history.settings import read_model
from runners.releases.lines import Line, LineCalendar
from runners.releases.manifest import Manifest, manifest_path

MYSQL = ["5.7", "8.0", "8.1", "8.4", "9.5", "9.6", "9.7", "26.7"]


def calendar(configs: Path, dbms: str, today: str) -> LineCalendar:
    return LineCalendar(read_model(manifest_path(configs, dbms), Manifest).line, date.fromisoformat(today))


@pytest.mark.parametrize(
    ("dbms", "known", "today", "supported"),
    [
        ("mysql", MYSQL[:1], "2023-10-31", ["5.7"]),
        ("mysql", MYSQL[:1], "2023-11-01", []),
        ("mysql", MYSQL[:5], "2025-12-01", ["8.0", "8.4", "9.5"]),
        ("mysql", MYSQL[:7], "2026-05-01", ["8.4", "9.7"]),
        ("mysql", MYSQL, "2026-11-22", ["8.4", "9.7", "26.7"]),
        ("mysql", [*MYSQL, "26.10"], "2026-11-22", ["8.4", "9.7", "26.10"]),
        ("mysql", [*MYSQL, "26.10"], "2032-05-01", ["9.7", "26.10"]),
        ("mariadb", ["10.6", "10.11", "11.3", "11.4", "11.8", "12.2"], "2026-07-06", [
            "10.6", "10.11", "11.4", "11.8", "12.2",
        ]),
        ("mariadb", ["10.6", "10.11", "11.3", "11.4", "11.8", "12.2", "12.3"], "2026-07-07", [
            "10.11", "11.4", "11.8", "12.3",
        ]),
        ("mariadb", ["10.10", "11.8", "12.3", "13.0"], "2028-06-05", ["12.3", "13.0"]),
        ("postgres", ["9.6", "13", "14", "18", "19"], "2025-11-13", ["13", "14", "18", "19"]),
        ("myrocks", ["10.11"], "2028-02-17", []),
    ],
)  # fmt: skip
def test_which_lines_are_supported(
    configs: Path, dbms: str, known: list[str], today: str, supported: list[str]
) -> None:
    on_the_day = calendar(configs, dbms, today)
    assert [line for line in known if on_the_day.is_supported(line, known)] == supported


@pytest.mark.parametrize(
    ("dbms", "lines", "lasting"),
    [
        ("mysql", [*MYSQL, "9.0", "8.3", "27.1"], ["5.7", "8.0", "8.4", "9.7"]),
        ("mariadb", ["10.1", "10.6", "10.9", "10.10", "10.11", "11.0", "11.8", "12.0", "12.3", "13.1"], [
            "10.1", "10.6", "10.11", "11.8", "12.3",
        ]),
        ("postgres", ["9.6", "10", "19"], ["9.6", "10", "19"]),
    ],
)  # fmt: skip
def test_which_lines_get_point_releases(configs: Path, dbms: str, lines: list[str], lasting: list[str]) -> None:
    assert [line for line in lines if calendar(configs, dbms, "2026-11-22").has_point_releases(line)] == lasting


def test_a_dbms_without_entries_has_lines_alike_and_without_end() -> None:
    nothing = LineCalendar((), date(2099, 1, 1))
    assert nothing.is_supported("1.0", ["1.0", "2.0"]) and nothing.has_point_releases("1.0")


def test_the_first_entry_that_fits_counts() -> None:
    entries = (Line(name="26.10", kind="lts"), Line(name="26.*", kind="innovation"))
    told = LineCalendar(entries, date(2027, 1, 1))
    assert told.has_point_releases("26.10") and not told.has_point_releases("26.7")


def test_a_line_of_no_known_kind_is_refused_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "releases.toml").write_text('[[line]]\nname = "8.0"\nkind = "stable"\n')
    with pytest.raises(BadSettings, match=r"line\.0\.kind.*'lts'"):
        read_model(tmp_path / "releases.toml", Manifest)
