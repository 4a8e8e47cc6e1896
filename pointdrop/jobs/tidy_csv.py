"""Anybody's values as a table: tidy CSV, one row a value, to series with their points in order.

    series_id,position,value,label,metric,better
    startup,0,12.1,v1.0,seconds,lower
    startup,1,12.3,v1.1,seconds,lower

`series_id`, `position` (an integer) and `value` (a number; empty, NaN or null is a gap) have to be there, the columns
of `DESCRIPTIONS` and `label`, `block` may be; others are left alone. Rows come in any order.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

REQUIRED = ("series_id", "position", "value")
#: What a series is of; the same in all its rows.
DESCRIPTIONS = ("dbms", "line", "server", "config", "benchmark", "group", "test", "metric", "unit", "better")
BETTER = ("", "higher", "lower")
GAPS = ("", "nan", "na", "null", "none")


class BadTable(Exception):
    """A table that cannot be read: the message names the line and the column."""

    exit_code: ClassVar[int] = 2


@dataclass
class TidyPoint:
    """All blocks of one position."""

    label: str | None
    blocks: dict[str, float] = field(default_factory=dict)
    """By the name of the block; a gap is NaN."""


@dataclass
class TidySeries:
    """One series; the points by position, ascending."""

    id: str
    description: dict[str, str]
    points: dict[int, TidyPoint]

    @property
    def labels(self) -> tuple[str | None, ...]:
        return tuple(point.label for point in self.points.values())


def read_tidy(lines: Iterable[str]) -> list[TidySeries]:
    """The series of a table, in the order of their first rows. Raises BadTable."""
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header)
        series: dict[str, TidySeries] = {}
        for cells in reader:
            if cells:
                _add(series, dict(zip(header, cells, strict=False)), len(cells) - len(header), reader.line_num)
    except csv.Error as error:
        raise BadTable(f"line {reader.line_num}: {error}") from error
    except UnicodeDecodeError as error:
        raise BadTable(f"line {reader.line_num + 1}: the table must be UTF-8: {error.reason}") from error
    for member in series.values():
        member.points = dict(sorted(member.points.items()))
    return list(series.values())


def _check_header(header: list[str]) -> None:
    for name in REQUIRED:
        if name not in header:
            needed = f"the first line must name the columns {', '.join(REQUIRED)}"
            raise BadTable(f"line 1: column {name} is missing; {needed}")
    for name in header:
        if name and header.count(name) > 1:
            raise BadTable(f"line 1, column {name}: named twice")


def _add(series: dict[str, TidySeries], row: dict[str, str], surplus: int, line: int) -> None:
    if surplus:
        raise BadTable(f"line {line}: {abs(surplus)} cells too {'many' if surplus > 0 else 'few'} for the header")
    name = row["series_id"]
    if not name:
        raise BadTable(f"line {line}, column series_id: empty")
    position, value = _position(row["position"], line), _value(row["value"], line)
    description = {key: row.get(key, "") for key in DESCRIPTIONS}
    if description["better"] not in BETTER:
        raise BadTable(f"line {line}, column better: must be higher or lower, got {description['better']!r}")
    member = series.setdefault(name, TidySeries(name, description, {}))
    for key, text in description.items():
        if text != member.description[key]:
            before = member.description[key]
            raise BadTable(f"line {line}, column {key}: {text!r}, but {before!r} in earlier rows of series {name}")
    label = row.get("label") or None
    point = member.points.setdefault(position, TidyPoint(label))
    if point.label != label:
        raise BadTable(
            f"line {line}, column label: {label!r}, but {point.label!r} in an earlier row of position {position}"
        )
    block = row.get("block", "")
    if block in point.blocks:
        advice = "name it once" if block else "tell the values of a position apart in a column `block`"
        raise BadTable(f"line {line}, column block: series {name} has position {position} twice; {advice}")
    point.blocks[block] = value


def _position(text: str, line: int) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadTable(f"line {line}, column position: must be an integer, got {text!r}") from None


def _value(text: str, line: int) -> float:
    try:
        return math.nan if text.strip().lower() in GAPS else float(text)
    except ValueError:
        raise BadTable(f"line {line}, column value: must be a number or empty, got {text!r}") from None
