"""The shortest way in: arrays of throughput and CPU per operation in, (server, test, release) of every change out.

>>> import numpy as np
>>> noise = np.random.default_rng(7).normal(0.0, 0.004, (1, 6, 12, 2))
>>> qps = 1000 * np.exp(noise)
>>> qps[:, 2, 8:] *= 0.93
>>> release_changes(qps, None)
[(0, 2, 8)]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detector.releases.boundaries import THRESHOLD, boundaries, segments, step
from detector.releases.panel import panel_of_blocks
from detector.releases.scan import scan
from detector.releases.trend import is_slope
from history.metrics import shipped_metrics

Floats = NDArray[np.float64]


def release_changes(qps: Floats, cpu: Floats | None = None, gaps: Floats | None = None) -> list[tuple[int, int, int]]:
    """Changes as (server, test, index of the first release at the new level), ascending.

    `qps` and `cpu` (per operation) are [servers, tests, releases, blocks], NaN where absent; `gaps`
    [releases] says how many releases lie between a release and the measured one before it (1 where none does).
    Raises InvalidSeries for shapes that do not fit.
    """
    metrics = shipped_metrics()
    arrays = {metrics.first("throughput"): qps}
    if cpu is not None:
        arrays[metrics.first("cpu")] = cpu
    panel = panel_of_blocks(arrays, gaps=gaps)
    found = scan(panel)
    changes = []
    for s, t in zip(*np.nonzero(found.hit.max(axis=-1) > 0.25), strict=True):
        places = boundaries(found.hit[s, t], max(THRESHOLD, found.least))
        parts = segments(places, len(panel.releases))
        steps = []
        for place, left, right in zip(places, parts[:-1], parts[1:], strict=True):
            size = [abs(step(found.values[m, s, t], left, right)) for m in range(len(arrays))]
            if np.nanmax(np.array(size) / found.floor, initial=0.0) >= 1.0:
                steps.append((place, step(panel.values[0, s, t], left, right)))
        if not is_slope(panel.values[0, s, t], steps):
            changes += [(int(s), int(t), place) for place, _ in steps]
    return changes
