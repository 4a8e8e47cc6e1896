"""Series as pandas data frames, for exports and for people: a row a block and metric, or a row a release and metric.

BLOCK_DTYPES and RELEASE_DTYPES are the columns with their dtypes. `Store.frame` and `Store.release_frame` make them
from the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from history.model import Series

if TYPE_CHECKING:
    from pandas import DataFrame

#: Rows that are Python objects at a time, on their way into a frame.
ROWS = 50_000
#: Of the columns, by the type of the field.
DTYPES: dict[Any, str] = {str: "str", int: "int64", float: "float64", date | None: "datetime64[s]"}


class BlockRow(NamedTuple):
    """One value of one block, with everything that names it."""

    dbms: str
    line: str
    version: str
    position: int
    """Of the release in its line, from 0 in version order."""
    released: date | None
    server: str
    config: str
    benchmark: str
    test: str
    group: str
    metric: str
    value: float
    """In `unit`."""
    unit: str
    better: str
    """`higher` or `lower`."""
    session: str
    block: str
    host: str
    epoch: str
    """Digest of the host's fingerprint when the block ran."""


BLOCK_DTYPES = {name: DTYPES[kind] for name, kind in get_type_hints(BlockRow).items()}
#: `level` is the median of the release's blocks in `unit`, between `lowest` and `highest` of `blocks`; `relative` is
#: the level divided by that of the first release of the series, NaN where that one is 0.
RELEASE_DTYPES = {name: BLOCK_DTYPES[name] for name in BlockRow._fields[: BlockRow._fields.index("value")]} | {
    "level": "float64",
    "lowest": "float64",
    "highest": "float64",
    "blocks": "int64",
    "relative": "float64",
    "unit": "str",
    "better": "str",
}


def block_rows(all_series: Iterable[Series]) -> Iterator[BlockRow]:
    """Series by series, release by release, in the order of sessions and starts."""
    for series in all_series:
        key = series.key
        for point in series.points:
            release = (key.dbms, key.line, point.version, point.position, point.released)
            test = (key.server, key.config, key.benchmark, key.test, series.group, key.metric)
            for block in point.values:
                run = (block.session_id, block.block_id, block.host, block.epoch)
                yield BlockRow(*release, *test, block.value, series.unit, series.better, *run)


def release_rows(all_series: Iterable[Series]) -> Iterator[tuple[Any, ...]]:
    """The columns of RELEASE_DTYPES, series by series, release by release."""
    for series in all_series:
        key = series.key
        first = series.points[0].level
        for point in series.points:
            release = (key.dbms, key.line, point.version, point.position, point.released)
            test = (key.server, key.config, key.benchmark, key.test, series.group, key.metric)
            numbers, level = point.numbers, point.level
            bounds = (min(numbers), max(numbers), len(numbers))
            relative = level / first if first else float("nan")
            yield (*release, *test, level, *bounds, relative, series.unit, series.better)


def _frames(rows: Iterable[tuple[Any, ...]], dtypes: dict[str, str]) -> Iterator[DataFrame]:
    """Rows in frames of at most ROWS; without any, one empty frame."""
    from pandas import DataFrame

    waiting = iter(rows)
    chunk = list(islice(waiting, ROWS))
    while True:
        yield DataFrame.from_records(chunk, columns=list(dtypes)).astype(dtypes)
        if not (chunk := list(islice(waiting, ROWS))):
            return


def block_frames(all_series: Iterable[Series]) -> Iterator[DataFrame]:
    """Frames of BLOCK_DTYPES, ROWS at a time in memory; at least one."""
    return _frames(block_rows(all_series), BLOCK_DTYPES)


def block_frame(all_series: Iterable[Series]) -> DataFrame:
    """All block values as one frame, its rows numbered from 0."""
    from pandas import concat

    return concat(list(block_frames(all_series)), ignore_index=True)


def release_frame(all_series: Iterable[Series]) -> DataFrame:
    """All releases as one frame, its rows numbered from 0."""
    from pandas import concat

    return concat(list(_frames(release_rows(all_series), RELEASE_DTYPES)), ignore_index=True)
