"""The Insert Benchmark summary: throughput by step, relative to a base, with SLA marks. Pure.

A read-write step whose background inserts fell below `SLA_SHARE` of their target is void: its query rate was measured
on less work than it promises, so its cell says `SLA` with the share reached, and nothing is relative to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from history.model import Series
from presentation.ordering import step_order
from presentation.relative import levels, relative
from reports.heat import versions_of
from reports.views import VIEWS, pick

#: The cached benchmark; the same at another size is called `insert-SIZE`.
BENCHMARK = "insert"
#: Share of the target insert rate below which a step is void (the field's rule).
SLA_SHARE = 0.95
#: Metrics of a read-write step that say how its background inserts did: the rate reached and the rate promised.
REACHED = "ips"
TARGET = "target_ips"


def is_insert(benchmark: str) -> bool:
    """Whether a benchmark is the Insert Benchmark, of whatever size."""
    return benchmark.partition("-")[0] == BENCHMARK


@dataclass(frozen=True)
class StepCell:
    """One step of one release."""

    value: float | None
    ratio: float | None
    sla_share: float | None
    """Share of the target insert rate that was reached; None where it is not known."""

    @property
    def void(self) -> bool:
        return self.sla_share is not None and self.sla_share < SLA_SHARE


@dataclass(frozen=True)
class InsertSummary:
    """Rows are releases, columns steps."""

    steps: tuple[str, ...]
    metrics: tuple[str, ...]
    """Throughput metric of each step."""
    versions: tuple[str, ...]
    base: str
    rows: tuple[tuple[StepCell, ...], ...]


def sla_shares(series: Iterable[Series]) -> dict[str, dict[str, float]]:
    """By step, then version: share of the promised insert rate that was reached, for read-write steps."""
    by_step: dict[str, dict[str, Series]] = {}
    for one in series:
        by_step.setdefault(one.key.test, {})[one.key.metric] = one
    found: dict[str, dict[str, float]] = {}
    for step, metrics in by_step.items():
        if TARGET not in metrics or REACHED not in metrics:
            continue
        reached = levels(metrics[REACHED])
        promised = levels(metrics[TARGET])
        found[step] = {
            version: value / promised[version] for version, value in reached.items() if promised.get(version)
        }
    return found


def insert_summary(series: Sequence[Series], base: str | None = None) -> InsertSummary:
    """The summary of one line; `base` is by default its first release."""
    picked = sorted(pick(series, VIEWS[0]), key=lambda one: step_order(one.key.test))
    versions = versions_of(picked)
    known = [levels(one) for one in picked]
    first = base if base in versions else (versions[0] if versions else "")
    shares = sla_shares(series)
    rows = tuple(
        tuple(_cell(one.key.test, version, first, values, shares) for one, values in zip(picked, known, strict=True))
        for version in versions
    )
    steps = tuple(one.key.test for one in picked)
    return InsertSummary(steps, tuple(one.key.metric for one in picked), tuple(versions), first or "", rows)


def _cell(
    step: str, version: str, base: str | None, values: Mapping[str, float], shares: Mapping[str, Mapping[str, float]]
) -> StepCell:
    value, first = values.get(version), values.get(base or "")
    here = shares.get(step, {})
    share, base_share = here.get(version), here.get(base or "")
    void = any(one is not None and one < SLA_SHARE for one in (share, base_share))
    ratio = None if value is None or first is None or void else relative(value, first)
    return StepCell(value, ratio, share)
