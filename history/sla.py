"""The service level of the Insert Benchmark: a step that queries while rows are inserted promises a rate of inserts.

Below `SLA_SHARE` of that rate the step is void: what it measured is of another workload.
"""

from __future__ import annotations

from collections.abc import Iterable

from history.model import Series, SeriesKey

#: The metrics that say which rate was reached, and which was promised.
REACHED, PROMISED = "ips", "target_ips"
#: Share of the promised rate that must be reached (the field's rule).
SLA_SHARE = 0.95


def sla_shares(series: Iterable[Series]) -> dict[SeriesKey, dict[str, float]]:
    """By key of the rate reached, then version: the share of the promised rate, where both were measured."""
    by_key = {member.key: member for member in series if member.key.metric in (REACHED, PROMISED)}
    shares = {}
    for key, reached in by_key.items():
        promise = by_key.get(key.model_copy(update={"metric": PROMISED}))
        if key.metric == REACHED and promise:
            promised = {point.version: point.level for point in promise.points}
            shares[key] = {
                point.version: point.level / promised[point.version]
                for point in reached.points
                if promised.get(point.version, 0.0) > 0.0
            }
    return shares
