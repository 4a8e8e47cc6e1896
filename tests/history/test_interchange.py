"""`pointdrop.run/1`: what is in a file from somebody else is believed only after it was checked."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from history import limits
from history.importing import ImportReport, import_file, read_lines
from history.interchange import KINDS, SCHEMA_FILE, header_line, json_schema, line_of_record
from history.model import Block, CanaryReading, Run, Session
from history.store import Store
from tests.builders import READING, SESSION, block, run
from tests.history.values import BLOCKS, READINGS, RUNS, SESSIONS

RECORDS = [SESSION, run("17.1"), block(run("17.1"), 1.5), run("17.2"), block(run("17.2"), 2.5)]
SCHEMA = Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))


def lines(*changed: str) -> list[str]:
    return [header_line(), *map(line_of_record, RECORDS), *changed]


def imported(store: Store, folder: Path, text: str | bytes) -> ImportReport:
    path = folder / "in.jsonl"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return import_file(store, path)


def changed(record: Session | Run | Block | CanaryReading, **values: Any) -> str:
    return json.dumps({KINDS[type(record)]: record.model_dump(mode="json") | values})


def test_the_committed_schema_is_that_of_the_models() -> None:
    assert json.loads(SCHEMA_FILE.read_text()) == json_schema(), "run: python -m history.interchange"
    Draft202012Validator.check_schema(json_schema())


@settings(deadline=None)
@given(st.one_of(SESSIONS, RUNS, BLOCKS, READINGS))
def test_every_line_we_write_is_valid_by_the_schema(record: Session | Run | Block | CanaryReading) -> None:
    SCHEMA.validate(json.loads(line_of_record(record)))
    SCHEMA.validate(json.loads(header_line()))


def test_the_schema_refuses_what_the_import_refuses() -> None:
    for bad in ({"sesion": {}}, {"schema": "pointdrop.run/2"}, {"block": {"id": ""}}):
        assert not SCHEMA.is_valid(bad)


def test_an_import_is_idempotent(store: Store, tmp_path: Path) -> None:
    text = "\n".join(lines())
    first = imported(store, tmp_path, text)
    assert (first.stored, first.new, first.unchanged) == (True, {"session": 1, "run": 2, "block": 2}, 0)
    again = imported(store, tmp_path, gzip.compress(text.encode()))
    assert (again.stored, again.new, again.unchanged) == (True, {}, 5)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "no JSON"),
        ("[]", "one key"),
        ('{"session": {}, "run": {}}', "one key"),
        ('{"finding": {}}', "one key"),
        (changed(SESSION, id=""), "id"),
        (changed(SESSION, id="x" * 201), "id"),
        (changed(SESSION, surprise=1), "surprise"),
        (changed(SESSION, id="t", started="2026-01-05T00:00:00"), "time zone"),
        (changed(SESSION, id="t", started="0001-01-01T00:00:00+23:00"), "years 1 to 9999"),
        (changed(SESSION, id="t", seed="7"), "seed"),
        (changed(SESSION, id="t", seed=2**64), "seed"),
        (changed(SESSION, id="t", plan="a\0b"), "NUL"),
        (changed(SESSION, plan="another"), "other contents"),
        (changed(run("17.1"), id="r", session_id="nobody"), "session nobody"),
        (changed(run("17.1"), id="r", options="x" * (limits.MAX_TEXT + 1)), "characters"),
        (changed(run("17.1"), id="r", bundle={str(n): n for n in range(limits.MAX_KEYS + 1)}), "entries"),
        (changed(RECORDS[2], id="c", run_id="nobody"), "run nobody"),
        (changed(RECORDS[2], id="c", status="fine"), "status"),
        (changed(RECORDS[2], id="c", ended="2020-01-01T00:00:00Z"), "ended before"),
        (changed(RECORDS[2], id="c", samples={"t": {"qps": [1e400]}}), "no JSON"),
        (changed(RECORDS[2], id="c", number=-1), "number"),
        (changed(READING, host=""), "host"),
        (changed(READING, cpu_ms=-1.0), "cpu_ms"),
        (changed(READING, cpu_ms="1"), "cpu_ms"),
        (changed(READING, verdict="fine"), "verdict"),
        (changed(READING, phase="during"), "phase"),
        (changed(READING, session_id="x" * 201), "session_id"),
        (changed(READING, reasons=["x"] * 11), "reasons"),
        (changed(READING, reasons=["x" * 301]), "reasons"),
        (changed(READING, at="2026-01-05T00:00:00"), "time zone"),
        (changed(READING, surprise=1), "surprise"),
        ('{"block": ' * 40 + "1" + "}" * 40, "nested"),
        ('{"run": {"bundle": {"x": 1e999}}}', "not finite"),
        ('{"session": {"id": "\\ud800"}}', "no JSON"),
    ],
)  # fmt: skip
def test_a_bad_line_is_told_and_nothing_of_the_file_is_stored(
    store: Store, tmp_path: Path, line: str, reason: str
) -> None:
    report = imported(store, tmp_path, "\n".join(lines(line)))
    assert [(one.line, reason in one.reason) for one in report.rejected] == [(7, True)], report
    assert not report.stored
    assert store.sessions() == []


def test_a_reading_is_taken_without_its_session_and_once(store: Store, tmp_path: Path) -> None:
    text = "\n".join([header_line(), line_of_record(READING)])
    assert [imported(store, tmp_path, text).new for _ in range(2)] == [{"reading": 1}, {}]
    assert store.readings() == [READING] and store.sessions() == []


def test_every_bad_line_is_told_not_only_the_first(store: Store, tmp_path: Path) -> None:
    report = imported(store, tmp_path, "\n".join([header_line(), "{", line_of_record(SESSION), "[", "7"]))
    assert [one.line for one in report.rejected] == [2, 4, 5]
    many = imported(store, tmp_path, "\n".join([header_line(), *["{"] * 200]))
    assert (len(many.rejected), many.rejections) == (limits.MAX_REJECTIONS, 200)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b'{"schema":"pointdrop.run/2"}', "first line"),
        (b"qps: 7", "first line"),
        (gzip.compress(header_line().encode())[:-9], "damaged"),
        (gzip.compress(b"x")[:4] + b"rubbish", "damaged"),
        (b"\xff\xfe\x00", "first line"),
    ],
    ids=["empty", "another version", "another format", "cut gzip", "no gzip", "binary"],
)
def test_a_file_that_is_none(store: Store, tmp_path: Path, content: bytes, reason: str) -> None:
    report = imported(store, tmp_path, content)
    assert not report.stored
    assert reason in report.rejected[0].reason


def test_a_bomb_is_left_where_it_is(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that unpacks to a large one stops at the bound."""
    monkeypatch.setattr("history.importing.MAX_LINE_BYTES", 1 << 20)
    bomb = gzip.compress(header_line().encode() + b"\n" + b" " * (1 << 24))
    assert len(bomb) < 1 << 16
    report = imported(store, tmp_path, bomb)
    assert "longer than" in report.rejected[0].reason


def test_a_missing_file_is_told(store: Store, tmp_path: Path) -> None:
    report = import_file(store, tmp_path / "nothing.jsonl")
    assert "cannot be read" in report.rejected[0].reason


VALID = "\n".join(lines()).encode()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(VALID) - 1), st.binary(min_size=1, max_size=8), st.integers(0, 6))
@example(len(VALID) - 1, b"\n", 0)
def test_no_change_to_a_file_breaks_the_import(at: int, put: bytes, cut: int) -> None:
    """Any bytes give records or reasons, and never another error."""
    content = VALID[:at] + put + VALID[at + cut :]
    for one in read_lines([content]):
        assert one.record is not None or (one.reason and one.number >= 0)
