"""Series release by release, and block by block: what test pages, their files and those of line pages are drawn from.
Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from history.model import Series
from presentation.findings import frame
from presentation.heat import Marks
from presentation.relative import levels, relative
from presentation.tables import rows_of

if TYPE_CHECKING:
    from pandas import DataFrame

#: Columns of a release in a series, in its unit: `median` is its level, `least` and `greatest` are of its `blocks`;
#: `changepoint` is the key of the finding that begins there, or empty; the change is from the release before.
RELEASE_COLUMNS = {
    "dbms": "str", "line": "str", "server": "str", "config": "str", "benchmark": "str", "test": "str", "group": "str",
    "metric": "str", "unit": "str", "better": "str", "version": "str", "released": "str", "median": "float64",
    "relative_to_first": "float64", "changepoint": "str", "blocks": "int64", "least": "float64", "greatest": "float64",
    "change_pct": "float64",
}  # fmt: skip
#: What a file has of a release, and then of a block; without blocks these are empty.
SERIES_COLUMNS = [*list(RELEASE_COLUMNS)[:15], "block", "session", "host", "epoch", "value"]


def releases_frame(series: Iterable[Series], marks: Marks) -> DataFrame:
    """RELEASE_COLUMNS, a row a release of each series that has blocks, in the order of the series."""
    rows: list[dict[str, Any]] = []
    for member in series:
        own = {**member.key.model_dump(), "group": member.group, "unit": member.unit, "better": member.better}
        by_version = levels(member)
        first = previous = next(iter(by_version.values()), math.nan)
        changepoints = marks.get(member.key.id, {})
        for point in member.points:
            if not point.values:
                continue
            level = by_version[point.version]
            mark = changepoints.get(point.version)
            rows.append(
                {
                    **own,
                    "version": point.version,
                    "released": point.released.isoformat() if point.released else "",
                    "median": level,
                    "relative_to_first": relative(level, first),
                    "changepoint": mark.finding if mark else "",
                    "blocks": len(point.values),
                    "least": min(point.numbers),
                    "greatest": max(point.numbers),
                    "change_pct": 100 * (relative(level, previous) - 1),
                }
            )
            previous = level
    return frame(RELEASE_COLUMNS, rows)


def block_rows(series: Iterable[Series], releases: DataFrame) -> Iterator[list[Any]]:
    """SERIES_COLUMNS, a row a block, of the series that `releases` were made of."""
    heads = iter(rows_of(releases[SERIES_COLUMNS[:15]]))
    for member in series:
        for point in member.points:
            head = next(heads) if point.values else []
            for block in point.values:
                yield [*head, block.block_id, block.session_id, block.host, block.epoch, block.value]
