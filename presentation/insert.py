"""The Insert Benchmark summary: throughput by step, relative to a base, with SLA marks. Pure.

A read-write step whose background inserts fell below `SLA_SHARE` of their target is void: its query rate was measured
on less work than it promises, so its cell says `SLA` with the share reached, and nothing is relative to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from history.metrics import MetricRegistry
from history.model import Series
from history.sla import PROMISED, SLA_SHARE, sla_shares
from presentation.operations import relative_frame, tests_frame
from presentation.ordering import step_order
from presentation.relative import versions_of
from presentation.views import preferred_series, throughput_metrics

if TYPE_CHECKING:
    from pandas import DataFrame

#: The cached benchmark; the same at another size is called `insert-SIZE`.
BENCHMARK = "insert"


def is_insert(benchmark: str) -> bool:
    """Whether a benchmark is the Insert Benchmark, of whatever size."""
    return benchmark.partition("-")[0] == BENCHMARK


@dataclass(frozen=True, eq=False)
class InsertSummary:
    """Index the releases in order, columns the steps in theirs, float64."""

    throughput: DataFrame
    shares: DataFrame
    """Share of the target insert rate that was reached; NaN where it is not known."""
    base: str

    @cached_property
    def void(self) -> DataFrame:
        return self.shares < SLA_SHARE

    @cached_property
    def ratios(self) -> DataFrame:
        """Relative to `base`; NaN where either side is void."""
        return relative_frame(self.throughput, self.base).mask(self.void | self.void.loc[self.base])

    def marked(self, values: DataFrame) -> DataFrame:
        """`values` as objects, with `SLA 80 %` in the place of a void step."""
        return values.astype(object).mask(self.void, self.shares.map(sla_text))


def sla_text(share: float) -> str:
    return f"SLA {100 * share:.0f} %"


def insert_series(series: Sequence[Series], metrics: MetricRegistry) -> list[Series]:
    """The throughput of each step, in the order of the steps."""
    shown = preferred_series(series, throughput_metrics(metrics))
    return sorted(shown, key=lambda member: step_order(member.key.test))


def insert_summary(series: Sequence[Series], metrics: MetricRegistry, base: str = "") -> InsertSummary | None:
    """The summary of one line; `base` is by default its first release. None without any throughput."""
    import pandas as pd

    shown = insert_series(series, metrics)
    throughput = tests_frame(shown, versions_of(shown))
    if throughput.empty:
        return None
    shares = {key.test: by_version for key, by_version in sla_shares(series).items()}
    return InsertSummary(
        throughput,
        pd.DataFrame(shares, index=throughput.index, columns=throughput.columns, dtype="float64"),
        base if base in throughput.index else str(throughput.index[0]),
    )


def together(rows: Sequence[tuple[str, str, InsertSummary]]) -> InsertSummary:
    """Releases of several lines as one summary, the base first: (name, version, the summary that has the version)."""
    import pandas as pd

    names = [name for name, *_ in rows]
    frames = [
        pd.concat(parts).set_axis(names)
        for parts in zip(
            *((part.throughput.loc[[version]], part.shares.loc[[version]]) for _, version, part in rows), strict=True
        )
    ]
    throughput, shares = (frame[sorted(map(str, frame.columns), key=step_order)] for frame in frames)
    return InsertSummary(throughput, shares, names[0])


def efficiency(series: Sequence[Series], metrics: MetricRegistry, versions: Sequence[str]) -> dict[str, DataFrame]:
    """By metric other than throughput, by rank: levels, index the releases, columns the steps that have it."""
    throughput = {member.key for member in insert_series(series, metrics)}
    by_metric: dict[str, list[Series]] = {}
    for member in sorted(series, key=lambda member: step_order(member.key.test)):
        if member.key not in throughput and member.key.metric != PROMISED:
            by_metric.setdefault(member.key.metric, []).append(member)
    return {name: tests_frame(by_metric[name], versions) for name in metrics.ranked(by_metric)}
