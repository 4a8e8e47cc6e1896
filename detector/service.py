"""Which steps missed the rate they promise, read from the series that say so.

A step that queries while rows are inserted promises a rate of inserts (`target_ips`) beside the one it reached (`ips`).
Below `SLA_SHARE` of it, what the step measured is of another workload: nobody's regression, and told as such.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from history.model import Finding, Series

REACHED, PROMISED = "ips", "target_ips"
#: The Insert Benchmark's rule.
SLA_SHARE = 0.95


def missed(finding: Finding, series: Iterable[Series]) -> dict[str, str]:
    """By test of `finding`: what share of its promise the release reached, where that was too little.

    A test is looked at where it moved: same line, server, config and benchmark.
    """
    places = {(m.key.server, m.key.config, m.key.benchmark, m.key.test) for m in finding.moves}
    rates: dict[tuple[str, str, str, str], dict[str, float]] = {}
    for one in series:
        key = one.key
        place = (key.server, key.config, key.benchmark, key.test)
        if (key.dbms, key.line) != (finding.dbms, finding.line) or place not in places:
            continue
        if key.metric in (REACHED, PROMISED):
            for point in one.points:
                if point.version == finding.release:
                    level = float(np.median(point.numbers))
                    rates.setdefault(place, {})[key.metric] = level
    found = {}
    for (server, config, _, test), known in sorted(rates.items()):
        promised = known.get(PROMISED, 0.0)
        if promised > 0.0 and REACHED in known and known[REACHED] < SLA_SHARE * promised:
            share = known[REACHED] / promised
            found[test] = f"{test} on {server} with {config} reached {share:.0%} of its inserts in {finding.release}"
    return found
