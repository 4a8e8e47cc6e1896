"""JSON formats that hold one release: Bencher Metric Format and github-action-benchmark's custom tools.

The value is the level of the release, its bounds the smallest and largest block. Names are addresses
(`DBMS/VERSION/SERVER/CONFIG/BENCHMARK/TEST`), so that `history import` finds the series again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from history.model import Better, Point, Series, SeriesKey
from history.versions import version_key


def at(all_series: Iterable[Series], version: str | None) -> Iterator[tuple[Series, Point]]:
    """Each series with its point at `version`, or at its newest release; series without it are left out."""
    for series in all_series:
        points = [point for point in series.points if version in (None, point.version)]
        if points:
            yield series, max(points, key=lambda point: version_key(series.key.dbms, point.version))


def address(key: SeriesKey, version: str) -> str:
    """`DBMS/VERSION/SERVER/CONFIG/BENCHMARK/TEST`, which importers take apart again; only the test may hold a slash.

    >>> address(SeriesKey.parse("mysql|8.0|small|z12c|sysbench|point-query|qps"), "8.0.30")
    'mysql/8.0.30/small/z12c/sysbench/point-query'
    """
    parts = (key.dbms, version, key.server, key.config, key.benchmark)
    return "/".join((*(part.replace("/", "_") for part in parts), key.test))


def bmf(all_series: Iterable[Series], version: str | None = None) -> dict[str, Any]:
    """Benchmark to measure to value; each series at `version`, or at its newest release."""
    benchmarks: dict[str, dict[str, Any]] = defaultdict(dict)
    for series, point in at(all_series, version):
        value = {"value": point.level}
        if len(point.numbers) > 1:
            value |= {"lower_value": min(point.numbers), "upper_value": max(point.numbers)}
        benchmarks[address(series.key, point.version)][series.key.metric] = value
    return dict(benchmarks)


def custom(all_series: Iterable[Series], better: Better, version: str | None = None) -> list[dict[str, Any]]:
    """`customBiggerIsBetter` (`better="higher"`) or `customSmallerIsBetter`: only series of that direction.

    The metric stands as the unit, as the tool shows it and `history import` reads it.
    """
    rows = []
    for series, point in at(all_series, version):
        if series.better != better:
            continue
        blocks, name = point.numbers, address(series.key, point.version)
        row: dict[str, Any] = {"name": name, "unit": series.key.metric, "value": point.level}
        if len(blocks) > 1:
            row["range"] = f"{min(blocks)!r} - {max(blocks)!r}"
        row["extra"] = ", ".join(part for part in (f"blocks: {len(blocks)}", series.unit) if part)
        rows.append(row)
    return rows
