"""The CSV that Apache Otava reads: a row a block, a column a test and metric (`TEST|METRIC`); see `importers.otava`.

Otava wants one file a line, server, config and benchmark: name them, or `lines` says which there are. `time` is the
day of the release, or a second of 1970 a release where no day is known: Otava only needs the order.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from io import StringIO

from history.errors import UnknownSeries
from history.frames import block_rows
from history.model import Series

HEAD = ("time", "dbms", "line", "version", "server", "config", "benchmark")


def csv_lines(series: Iterable[Series]) -> Iterator[str]:
    """CSV with a header. UnknownSeries when the series are of more than one line, server, config or benchmark."""
    columns: dict[str, None] = {}
    cells: dict[tuple[int, str, int], dict[str, str]] = defaultdict(dict)
    days: dict[tuple[int, str], str] = {}
    place: tuple[str, ...] = ()
    for row in block_rows(series):
        row_place = (row.dbms, row.line, row.server, row.config, row.benchmark)
        if place and place != row_place:
            raise UnknownSeries(
                f"Otava takes one file a line: choose {'|'.join(place)} or {'|'.join(row_place)} with --dbms, --line, "
                "--server, --config and --benchmark"
            )
        place = row_place
        column = f"{row.test}|{row.metric}"
        columns.setdefault(column)
        index = 0
        while column in cells[row.position, row.version, index]:
            index += 1
        cells[row.position, row.version, index][column] = repr(row.value)
        days[row.position, row.version] = _time(row.released, row.position).isoformat()
    if not place:
        return
    yield _line([*HEAD, *columns])
    for (position, version, _), values in sorted(cells.items()):
        release = [days[position, version], place[0], place[1], version, *place[2:]]
        yield _line([*release, *(values.get(name, "") for name in columns)])


def _time(released: date | None, position: int) -> datetime:
    """The release's day, else one second of 1970 a position, which keeps the order."""
    if released is not None:
        return datetime(released.year, released.month, released.day, tzinfo=UTC)
    return datetime.fromtimestamp(position, UTC)


def _line(cells: list[str]) -> str:
    buffer = StringIO()
    csv.writer(buffer, lineterminator="").writerow(cells)
    return buffer.getvalue()
