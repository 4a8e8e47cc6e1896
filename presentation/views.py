"""Views: what a line is looked at through, one tab of its page each. Pure.

Metrics with the same `view` in the registry share a tab, since they answer one question; where a test has several, the
one with the better rank is shown.

>>> from history.metrics import shipped_metrics
>>> [view.id for view in views(shipped_metrics())]
['throughput', 'instructions-op', 'server-cpu-op', 'cpu-query', 'machine-cpu-op']
>>> views(shipped_metrics())[1].note
'relative instructions per operation: above 1 is slower'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from history.errors import UnknownSeries
from history.metrics import Metric, MetricRegistry
from history.model import Better, Row, Series


class View(Row):
    """One tab."""

    id: str
    """For addresses and options."""
    title: str
    metrics: tuple[str, ...]
    """In order of preference, where a test has more than one."""
    noun: str
    better: Better
    decimals: int
    """Of relative values."""

    @property
    def relative(self) -> str:
        """`relative server CPU per operation`."""
        return f"relative {self.noun}"

    @property
    def note(self) -> str:
        return f"{self.relative}: above 1 is {'faster' if self.better == 'higher' else 'slower'}"


def view_of(title: str, metrics: Sequence[Metric]) -> View:
    """A view of at least one metric; of several with different nouns it is named by its title."""
    first = metrics[0]
    return View(
        id=view_id(title),
        title=title,
        metrics=tuple(metric.name for metric in metrics),
        noun=first.noun if len({metric.noun for metric in metrics}) == 1 else title.lower(),
        better=first.better,
        decimals=first.ratio_decimals,
    )


def view_id(title: str) -> str:
    """`Instructions/op` is `instructions-op`."""
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-")


def views(metrics: MetricRegistry) -> list[View]:
    """All views of the registry, by the rank of their first metric."""
    members: dict[str, list[Metric]] = {}
    for metric in metrics:
        if metric.view:
            members.setdefault(view_id(metric.view), []).append(metric)
    return [view_of(shared[0].view, shared) for shared in members.values()]


def throughput_metrics(metrics: MetricRegistry) -> tuple[str, ...]:
    """Rates by rank: each step of the Insert Benchmark has its own."""
    return tuple(metric.name for metric in metrics if metric.kind == "throughput" and metric.evidence)


def preferred_series(series: Iterable[Series], names: Sequence[str]) -> list[Series]:
    """At most one series a test: that of the metric that comes first in `names`; tests keep the order they came in."""
    ranks = {name: rank for rank, name in enumerate(names)}
    preferred: dict[str, Series] = {}
    for member in series:
        rank, held = ranks.get(member.key.metric), preferred.get(member.key.test)
        if rank is not None and (held is None or rank < ranks[held.key.metric]):
            preferred[member.key.test] = member
    return list(preferred.values())


def offered_views(series: Sequence[Series], views: Iterable[View]) -> list[View]:
    """Those of the views that have data, the one that covers most (test, release) pairs first, else in their order.

    A nightly back-fills in one lane only, so the fullest table is the one a newcomer should see.
    """
    cover = {
        view: sum(bool(point.values) for member in preferred_series(series, view.metrics) for point in member.points)
        for view in views
    }
    return sorted((view for view, pairs in cover.items() if pairs), key=lambda view: -cover[view])


def named_view(name: str, metrics: MetricRegistry) -> View:
    """The view with this id, or of the one metric with this name. UnknownSeries lists what is allowed."""
    by_id = {view.id: view for view in views(metrics)}
    by_metric = {metric.name: view_of(metric.title, [metric]) for metric in metrics}
    by_metric |= {view.metrics[0]: view for view in by_id.values() if len(view.metrics) == 1}
    if name not in by_id | by_metric:
        allowed = f"the views {', '.join(by_id)} and the metrics {', '.join(by_metric)}"
        raise UnknownSeries(f"no metric {name!r}; allowed are {allowed}")
    return by_id.get(name) or by_metric[name]
