"""JSON formats that hold one release: Bencher Metric Format and github-action-benchmark's custom tools.

The value is the level of the release, its bounds the smallest and largest block. Names are addresses
(`DBMS/VERSION/SERVER/CONFIG/BENCHMARK/TEST`), so that `history import` finds the series again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from history.exporters.points import address, at
from history.model import Better, Series


def bmf(series: Iterable[Series], version: str | None = None) -> dict[str, Any]:
    """Benchmark to measure to value; each series at `version`, or at its newest release."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for one, point in at(series, version):
        blocks = [block.value for block in point.values]
        value = {"value": point.level}
        if len(blocks) > 1:
            value |= {"lower_value": min(blocks), "upper_value": max(blocks)}
        found[address(one.key, point.version)][one.key.metric] = value
    return dict(found)


def custom(series: Iterable[Series], better: Better, version: str | None = None) -> list[dict[str, Any]]:
    """`customBiggerIsBetter` (`better="higher"`) or `customSmallerIsBetter`: only series of that direction.

    The metric stands as the unit, as the tool shows it and `history import` reads it.
    """
    found = []
    for one, point in at(series, version):
        if one.better != better:
            continue
        blocks = [block.value for block in point.values]
        row: dict[str, Any] = {"name": address(one.key, point.version), "unit": one.key.metric, "value": point.level}
        if len(blocks) > 1:
            row["range"] = f"{min(blocks)!r} - {max(blocks)!r}"
        row["extra"] = ", ".join(part for part in (f"blocks: {len(blocks)}", one.unit) if part)
        found.append(row)
    return found
