"""How long something will take, in words. Pure.

>>> for low_s, high_s in ((3, 4), (12, 18), (20, 70), (185, 290), (170, 175), (4_000, 9_000), (9_000, 40_000)):
...     print(duration_range(low_s, high_s))
under 5 seconds
10 to 20 seconds
up to 2 minutes
3 to 5 minutes
2 to 3 minutes
1.1 to 2.5 hours
2.5 to 11.2 hours
"""

from __future__ import annotations

import math

SECONDS_A_MINUTE = 60.0
SECONDS_AN_HOUR = 3600.0
#: From so many minutes on they are hours.
MOST_MINUTES = 120
#: Seconds are told in steps of so many.
STEP_S = 5.0


def duration_range(low_s: float, high_s: float) -> str:
    """`3 to 5 minutes`: both ends rounded outwards, so that the range in words holds the range in numbers."""
    if high_s <= SECONDS_A_MINUTE - STEP_S:
        low, high = math.floor(low_s / STEP_S) * STEP_S, max(1, math.ceil(high_s / STEP_S)) * STEP_S
        return f"{low:.0f} to {high:.0f} seconds" if low else f"under {high:.0f} seconds"
    if high_s <= MOST_MINUTES * SECONDS_A_MINUTE:
        first, last = math.floor(low_s / SECONDS_A_MINUTE), math.ceil(high_s / SECONDS_A_MINUTE)
        if first == last:
            return f"{last} minute{'s' if last > 1 else ''}"
        until = f"{last} minutes" if last > 1 else "a minute"
        return f"{first} to {until}" if first else f"up to {until}"
    begin, end = math.floor(low_s / SECONDS_AN_HOUR * 10) / 10, math.ceil(high_s / SECONDS_AN_HOUR * 10) / 10
    return f"{begin:g} to {end:g} hours" if begin else f"up to {end:g} hours"
