"""What a vendor says of its lines: which of them get point releases, and until when. Pure.

    [[line]]
    name = "8.4"                  # or a pattern, as of file names; the first that fits counts
    kind = "lts"
    end_of_life = 2032-04-30      # the last day on which the vendor promises fixes

    [[line]]
    name = "[2-9][0-9].*"
    kind = "innovation"

>>> entries = (Line(name="8.4", kind="lts", end_of_life=date(2032, 4, 30)), Line(name="9.[0-6]", kind="innovation"))
>>> calendar = LineCalendar(entries, date(2026, 1, 31))
>>> [calendar.is_supported(line, ["8.4", "9.5", "9.6"]) for line in ("8.4", "9.5", "9.6")]
[True, False, True]
>>> [calendar.has_point_releases(line) for line in ("8.4", "9.6")]
[True, False]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from history.settings import Setting

#: Kinds whose releases are each replaced by the next line's instead of by point releases of their own.
SHORT_LIVED = ("innovation", "rolling")


class Line(Setting):
    """One line, or all that the pattern fits, as its vendor describes it."""

    name: Annotated[str, Field(min_length=1)]
    kind: Literal["major", "lts", "innovation", "rolling"]
    """`major`: a vendor that keeps all its lines alike. `lts`: a line that outlives the `innovation` (MySQL) or
    `rolling` (MariaDB) ones between it and the next."""
    end_of_life: date | None = None
    """Absent where the vendor names none: an innovation or rolling line then ends when the next line begins."""


@dataclass(frozen=True)
class LineCalendar:
    """The lines of one DBMS as they stand on one day. A line that no entry fits is a `major` without an end."""

    entries: tuple[Line, ...] = ()
    today: date = date.min

    def _entry(self, line: str) -> Line:
        fitting = (entry for entry in self.entries if fnmatchcase(line, entry.name))
        return next(fitting, Line(name=line, kind="major"))

    def has_point_releases(self, line: str) -> bool:
        """Whether the line is worth a time axis of its own; else its releases stand on the line of majors alone."""
        return self._entry(line).kind not in SHORT_LIVED

    def is_supported(self, line: str, known: Sequence[str]) -> bool:
        """Whether fixes may still come today; `known` are the lines there are, oldest first."""
        entry = self._entry(line)
        if entry.end_of_life is not None:
            return self.today <= entry.end_of_life
        return entry.kind not in SHORT_LIVED or line == known[-1]
