"""The CSV that Apache Otava reads: a row a block, a column a test and metric (`TEST|METRIC`); see `importers.otava`.

Otava wants one file a line, server, config and benchmark: name them, or `lines` says which there are. `time` is the
day of the release, or a second of 1970 a release where no day is known: Otava only needs the order.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator
from io import StringIO

from history.errors import UnknownSeries
from history.exporters.points import day, values
from history.model import Series

HEAD = ("time", "dbms", "line", "version", "server", "config", "benchmark")


def csv_lines(series: Iterable[Series]) -> Iterator[str]:
    """CSV with a header. UnknownSeries when the series are of more than one line, server, config or benchmark."""
    columns: dict[str, None] = {}
    cells: dict[tuple[int, str, int], dict[str, str]] = defaultdict(dict)
    days: dict[tuple[int, str], str] = {}
    place: tuple[str, ...] | None = None
    for one in values(series):
        key = one.key
        here = (key.dbms, key.line, key.server, key.config, key.benchmark)
        if place is not None and place != here:
            raise UnknownSeries(
                f"Otava takes one file a line: choose {'|'.join(place)} or {'|'.join(here)} with --dbms, --line, "
                "--server, --config and --benchmark"
            )
        place = here
        column = f"{key.test}|{key.metric}"
        columns.setdefault(column)
        index = 0
        while column in cells[one.position, one.version, index]:
            index += 1
        cells[one.position, one.version, index][column] = repr(one.block.value)
        days[one.position, one.version] = day(one.released, one.position).isoformat()
    if place is None:
        return
    yield _line([*HEAD, *columns])
    for (position, version, _), row in sorted(cells.items()):
        yield _line(
            [days[position, version], place[0], place[1], version, *place[2:], *(row.get(name, "") for name in columns)]
        )


def _line(cells: list[str]) -> str:
    buffer = StringIO()
    csv.writer(buffer, lineterminator="").writerow(cells)
    return buffer.getvalue()
