"""What is too large to read for every page: samples of a block, functions of a release. Read when a page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from history.function_costs import function_changes
from history.metrics import MetricRegistry
from history.model import FunctionChange, FunctionCost, Series
from presentation.addresses import LineKey
from presentation.views import preferred_series, throughput_metrics

if TYPE_CHECKING:
    from history.store import Store

#: Blocks kept in memory: the tests of a line come one after another and share their blocks.
CACHED_BLOCKS = 8
#: Points of one per-second line in a page; longer ones are folded.
MAX_POINTS = 300
#: The distribution of response times: values, and how often; a step of several roles has more of them, with prefixes.
HISTOGRAM = ("histogram_ms", "histogram_count")

Samples = dict[str, dict[str, tuple[float, ...]]]


class Details:
    """Reads from a store, with a small cache."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._samples = lru_cache(maxsize=CACHED_BLOCKS)(store.samples)

    def samples(self, block_id: str) -> Samples:
        samples: Samples = self._samples(block_id)
        return samples

    def functions(self, key: LineKey, version: str, test: str) -> tuple[FunctionCost, ...]:
        return self._store.functions(
            key.dbms, version, test, server=key.server, config=key.config, benchmark=key.benchmark
        )

    def function_changes(self, key: LineKey, test: str, before: str, after: str) -> list[FunctionChange]:
        """Every function of which both releases say something; empty when one of them has no counts."""
        return function_changes(test, self.functions(key, before, test), self.functions(key, after, test))


def fold(values: Sequence[float], name: str) -> tuple[list[float], int]:
    """At most `MAX_POINTS` values, and the seconds that each stands for: means, but maxima for latencies, because the
    stall is what one looks for."""
    width = -(-len(values) // MAX_POINTS)
    if width <= 1:
        return list(values), 1
    bins = [values[at : at + width] for at in range(0, len(values), width)]
    if name.endswith("_ms"):
        return [max(values) for values in bins], width
    return [sum(values) / len(values) for values in bins], width


def first_blocks(series: Sequence[Series], versions: Sequence[str], metrics: MetricRegistry) -> dict[str, str]:
    """First counted block of each version, from the throughput series: only timed blocks have samples."""
    return {
        point.version: point.values[0].block_id
        for member in preferred_series(series, throughput_metrics(metrics))
        for point in member.points
        if point.version in versions and point.values
    }


def seconds(
    details: Details | None, series: Sequence[Series], test: str, versions: Sequence[str], metrics: MetricRegistry
) -> list[dict[str, Any]]:
    """`versions` second by second: one entry a sample name, with a line a version. Empty without samples."""
    if details is None:
        return []
    entries: dict[str, dict[str, Any]] = {}
    for version, block in first_blocks(series, versions, metrics).items():
        for name, values in details.samples(block).get(test, {}).items():
            if name.endswith(HISTOGRAM) or len(values) < 2:
                continue
            folded, width = fold(values, name)
            entry = entries.setdefault(name, {"name": name, "lines": []})
            entry["lines"].append({"v": version, "step": width, "y": [round(value, 4) for value in folded]})
    for entry in entries.values():
        entry["lines"].sort(key=lambda line: versions.index(line["v"]))
    return list(entries.values())


def latency(
    details: Details | None, series: Sequence[Series], test: str, versions: Sequence[str], metrics: MetricRegistry
) -> list[dict[str, Any]]:
    """Latency distribution of `versions`: share of operations at most as slow as `ms`. Empty without histograms."""
    if details is None:
        return []
    rows = []
    blocks = first_blocks(series, versions, metrics)
    for version in versions:
        samples = details.samples(blocks[version]).get(test, {}) if version in blocks else {}
        if not all(name in samples for name in HISTOGRAM):
            continue
        counts = samples["histogram_count"]
        total, seen = sum(counts), 0.0
        for ms, count in zip(samples["histogram_ms"], counts, strict=False):
            seen += count
            if total and ms > 0:
                rows.append({"v": version, "ms": ms, "share": round(100 * seen / total, 4)})
    return rows
