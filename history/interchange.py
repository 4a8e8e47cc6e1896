"""The interchange format `pointdrop.run/1`: JSON Lines that runners upload and `history import` takes.

The first line names the format and who wrote it; every other line is one record under the name of its kind:

```
{"schema":"pointdrop.run/1","writer":"pointdrop 0.1.0+g3f2a9c1d44e0"}
{"session":{"id":"s1","host":"bee","server":"small","fingerprint":{"facts":{}},"started":"2026-01-05T00:00:00Z"}}
{"run":{"id":"r1","session_id":"s1","release":{"dbms":"mysql","version":"8.0.30","line":"8.0"},...}}
{"block":{"id":"b1","run_id":"r1","number":1,"started":"2026-01-05T00:01:00Z","measurements":[...],...}}
{"reading":{"host":"bee","at":"2026-01-05T00:00:00Z","session_id":"s1","phase":"before","verdict":"usual",...}}
```

A session stands before its runs, a run before its blocks; a reading of the machine canary stands anywhere. Numbers
are written so that they read back exactly, and none is NaN or infinite. `pointdrop.run-1.schema.json` beside this
file is the JSON Schema of one line, made from the models of `history.model` by `python -m history.interchange`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from history.errors import InvalidRecord
from history.limits import MAX_MEASUREMENTS, checked_json
from history.model import RUN_SCHEMA, Block, CanaryReading, Run, Session
from history.records import writer

Record = Session | Run | Block | CanaryReading
#: The name of a record's kind, in a line and in reports.
KINDS: dict[type[Record], str] = {Session: "session", Run: "run", Block: "block", CanaryReading: "reading"}

SCHEMA_FILE = Path(__file__).with_name("pointdrop.run-1.schema.json")
SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"


class HeaderLine(BaseModel):
    """The first line."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["pointdrop.run/1"] = Field(alias="schema")
    writer: str = Field("", max_length=200)


def _line(kind: str, record_type: type[Record], meaning: str) -> type[BaseModel]:
    """The model of a line: an object whose one key is the kind of its record."""
    field: Any = (record_type, ...)
    return create_model(
        f"{kind.capitalize()}Line", __config__=HeaderLine.model_config, __doc__=meaning, **{kind: field}
    )


LINES = {
    "session": _line("session", Session, "Runs made together on one host."),
    "run": _line("run", Run, "All blocks of one release, config and benchmark in one session."),
    "block": _line("block", Block, "One server start, with every test once."),
    "reading": _line("reading", CanaryReading, "One reading of the machine canary."),
}


def header_line() -> str:
    """The first line of a file that this process writes."""
    return json.dumps({"schema": RUN_SCHEMA, "writer": writer()}, separators=(",", ":"))


def line_of_record(record: Record) -> str:
    """One line, without its newline.

    >>> from datetime import UTC, datetime
    >>> from history.model import Fingerprint
    >>> day = datetime(2026, 1, 5, tzinfo=UTC)
    >>> line_of_record(Session(id="s", host="h", server="small", fingerprint=Fingerprint(facts={}), started=day))[:40]
    '{"session":{"id":"s","host":"h","server"'
    """
    return f'{{"{KINDS[type(record)]}":{record.model_dump_json()}}}'


def read_header(line: bytes) -> HeaderLine:
    """The first line. InvalidRecord when the file is of another format or a newer version."""
    try:
        return HeaderLine.model_validate_json(line, strict=True)
    except ValidationError:
        raise InvalidRecord(
            f'the first line of a {RUN_SCHEMA} file is {{"schema":"{RUN_SCHEMA}","writer":...}}'
        ) from None


def read_record(line: bytes) -> Record:
    """One record out of an untrusted line. InvalidRecord says what is wrong with it.

    >>> read_record(b'{"block": {"id": NaN}}')
    Traceback (most recent call last):
    ...
    history.errors.InvalidRecord: no JSON: expected value at line 1 column 18
    """
    try:
        value = checked_json(line)
    except ValueError as error:
        raise InvalidRecord(f"no JSON: {error}") from None
    kind = next(iter(value), None) if isinstance(value, dict) and len(value) == 1 else None
    if kind not in LINES:
        raise InvalidRecord(f"a line is an object with one key, {', '.join(LINES)}")
    try:
        parsed = LINES[kind].model_validate_json(line, strict=True)
    except ValidationError as error:
        raise InvalidRecord(_explained(error)) from None
    record: Record = getattr(parsed, kind)
    if isinstance(record, Block):
        _check_block(record)
    return record


def _check_block(block: Block) -> None:
    if len(block.measurements) > MAX_MEASUREMENTS:
        raise InvalidRecord(f"{len(block.measurements)} measurements in one block, the limit is {MAX_MEASUREMENTS}")
    if block.ended < block.started:
        raise InvalidRecord("the block ended before it started")


def _explained(error: ValidationError) -> str:
    """The first problems, each with its place."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}" for problem in problems[:3]]
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    return "; ".join(shown) + more


def json_schema() -> dict[str, Any]:
    """The JSON Schema of one line."""
    any_line: Any = Union[HeaderLine, *LINES.values()]
    schema = TypeAdapter(any_line).json_schema(by_alias=True)
    return {"$schema": SCHEMA_ID, "title": RUN_SCHEMA} | schema


if __name__ == "__main__":
    SCHEMA_FILE.write_text(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n", encoding="utf-8")
