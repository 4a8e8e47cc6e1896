"""What people know and no measurement tells: `configs/annotations.toml`, shown on charts and pages.

```toml
[[annotation]]
dbms = "mysql"            # with release: on every chart of this DBMS's line that has the release or its neighbours
release = "8.0.29"
text = "withdrawn"
url = "https://dev.mysql.com/doc/relnotes/mysql/8.0/en/news-8-0-29.html"

[[annotation]]
host = "bee-1"            # with date: on charts with results of this host, at the first release measured after it
date = 2024-05-02
text = "kernel upgraded 6.5 -> 6.8"
```
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from history.settings import read_model
from history.versions import version_key

#: Characters of a remark.
MOST_TEXT = 120


class Annotation(BaseModel):
    """One remark; it has a `dbms` and `release`, or a `host` and `date`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=MOST_TEXT)
    url: str = Field(default="", pattern=r"^(https?://.*)?$")
    dbms: str = ""
    release: str = ""
    line: str = ""
    """Only on this line; empty for every line of the DBMS (a release is on its own line and on `majors`)."""
    test: str = ""
    """Only on this test."""
    host: str = ""
    date: datetime.date | None = None

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if bool(self.dbms and self.release) == bool(self.host and self.date):
            raise ValueError("an annotation needs dbms and release, or host and date")
        return self


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    annotation: tuple[Annotation, ...] = ()


def load_annotations(path: Path) -> tuple[Annotation, ...]:
    """The annotations of a file, in its order; none when there is no such file."""
    if not path.is_file():
        return ()
    return read_model(path, _File).annotation


def place(annotation: Annotation, dbms: str, line: str, versions: Sequence[str]) -> float | None:
    """Where a release annotation goes on a chart of `versions` (in order): a position from 0, halfway between two
    neighbours when the release itself was not measured, None when it is not of this chart.

    >>> place(Annotation(text="withdrawn", dbms="mysql", release="8.0.29"), "mysql", "8.0", ["8.0.28", "8.0.30"])
    0.5
    """
    if annotation.dbms != dbms or not annotation.release or annotation.line not in ("", line):
        return None
    if annotation.release in versions:
        return float(versions.index(annotation.release))
    keys = [version_key(dbms, version) for version in versions]
    after = sum(key < version_key(dbms, annotation.release) for key in keys)
    return after - 0.5 if 0 < after < len(keys) else None


def place_on_host(annotation: Annotation, measured: Sequence[tuple[str, datetime.date]]) -> float | None:
    """Where a host annotation goes on a chart whose releases were measured by `measured` (host, day), in order: before
    the first release that this host measured on or after the date, when it measured the release before it earlier.

    >>> kernel = Annotation(text="kernel 6.12", host="bee", date=datetime.date(2026, 11, 8))
    >>> place_on_host(kernel, [("bee", datetime.date(2026, 11, 1)), ("bee", datetime.date(2026, 11, 9))])
    0.5
    """
    if annotation.date is None:
        return None
    for at in range(1, len(measured)):
        (before_host, before), (host, day) = measured[at - 1], measured[at]
        if before_host == host == annotation.host and before < annotation.date <= day:
            return at - 0.5
    return None
