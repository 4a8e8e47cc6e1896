"""What exporters share: rows out of series, and names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import NamedTuple

from history.model import MAJORS, BlockValue, Point, Series, SeriesKey
from history.versions import version_key


class Value(NamedTuple):
    """One block's value with everything that names it."""

    key: SeriesKey
    group: str
    unit: str
    better: str
    version: str
    position: int
    released: date | None
    block: BlockValue


def values(series: Iterable[Series]) -> Iterator[Value]:
    """Every block value. `majors` is left out: its values are those of the real lines."""
    for one in series:
        if one.key.line == MAJORS:
            continue
        for point in one.points:
            for block in point.values:
                yield Value(
                    one.key, one.group, one.unit, one.better, point.version, point.position, point.released, block
                )


class Newest(NamedTuple):
    """A series at one release."""

    series: Series
    point: Point


def at(series: Iterable[Series], version: str | None) -> Iterator[Newest]:
    """Each series of a real line at `version`, or at its newest release; series without it are left out."""
    for one in series:
        if one.key.line == MAJORS:
            continue
        points = [point for point in one.points if version in (None, point.version)]
        if points:
            yield Newest(one, max(points, key=lambda point: version_key(one.key.dbms, point.version)))


def address(key: SeriesKey, version: str) -> str:
    """`DBMS/VERSION/SERVER/CONFIG/BENCHMARK/TEST`, which importers take apart again; only the test may hold a slash.

    >>> address(SeriesKey.parse("mysql|8.0|small|z12c|sysbench|point-query|qps"), "8.0.30")
    'mysql/8.0.30/small/z12c/sysbench/point-query'
    """
    parts = (key.dbms, version, key.server, key.config, key.benchmark)
    return "/".join((*(part.replace("/", "_") for part in parts), key.test))


def day(released: date | None, position: int) -> datetime:
    """A moment for formats that need one: the release's day, else one second of 1970 a position, which keeps order."""
    if released is not None:
        return datetime(released.year, released.month, released.day, tzinfo=UTC)
    return datetime.fromtimestamp(position, UTC)
