"""What the words of the project are made of: numbers, moments, names, and the immutable row."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

RUN_SCHEMA = "pointdrop.run/1"

#: The pseudo-line whose releases are the newest measured point release of every real line: its boundaries
#: are the steps between majors.
MAJORS = "majors"

#: In the name of a config whose server was given settings of another release: `default.held-3f2a9c1d`.
HELD_MARK = ".held-"

#: How values are measured, a fact of each fingerprint. It is changed when a test of the same name reports something
#: else than before; what another method measured stays in the history and does not count. 2: each counted test has a
#: server and data of its own.
METHOD = "2"

#: Functions kept of each test, the most expensive by their own cost; the rest is below a few tenths of a percent.
TOP_FUNCTIONS = 40
#: Calls from one function to another kept of each test: about 7 KB compressed.
TOP_CALLS = 300

Better = Literal["higher", "lower"]
Lane = Literal["time", "instructions"]
#: `ok` counts; `noisy` was measured but is out of bounds and never reaches the detector; `failed` has no values.
BlockStatus = Literal["ok", "noisy", "failed"]


def utc(moment: datetime) -> datetime:
    """`moment` in UTC; a naive time is an error, since hosts in two time zones append to one history."""
    if moment.tzinfo is None:
        raise ValueError("a time needs its time zone; use datetime.now(UTC)")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("in UTC this time lies outside the years 1 to 9999") from None


def finite(value: float) -> float:
    """A measured value is a finite number; an absent one is an absent row, never NaN and never zero.

    Minus zero becomes zero: databases do not all keep the sign.
    """
    if not math.isfinite(value):
        raise ValueError(f"a value must be finite, got {value}")
    return value + 0.0


Moment = Annotated[datetime, AfterValidator(utc)]
Value = Annotated[float, AfterValidator(finite)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
#: What a 64-bit column holds.
Count = Annotated[int, Field(ge=0, lt=2**63)]
Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class Row(BaseModel):
    """Base of every value: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
