"""A row's sparkline: the points of one SVG polyline, drawn as steps. Pure.

>>> spark([1.0, 1.0, None, 0.5])
'0,2 5,2 5,2 10,2 15,14 20,14'
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Pixels a release, and pixels of height; the drawing keeps a margin of 2 above and below.
STEP = 5
HEIGHT = 16
#: Smallest range of a sparkline, as a ratio: quiet series look flat instead of filling their box with noise.
MIN_SPAN = 0.10


def spark(ratios: Sequence[float | None]) -> str:
    """Points for `<polyline points>`; empty for fewer than two values. A release without a value is skipped."""
    finite = [(position, ratio) for position, ratio in enumerate(ratios) if ratio is not None and math.isfinite(ratio)]
    if len(finite) < 2:
        return ""
    low, high = min(ratio for _, ratio in finite), max(ratio for _, ratio in finite)
    span = max(high - low, MIN_SPAN * max(abs(high), abs(low)))
    middle = (high + low) / 2
    points = []
    for position, ratio in finite:
        y = round(HEIGHT / 2 - (ratio - middle) / span * (HEIGHT - 4))
        points += [f"{position * STEP},{y}", f"{(position + 1) * STEP},{y}"]
    return " ".join(points)
