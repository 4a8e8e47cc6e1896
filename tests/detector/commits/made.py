"""Series made for the tests: a level, its steps, seeded noise."""

from __future__ import annotations

import numpy as np


def made(n: int = 120, *, steps: dict[int, float] | None = None, scale: float = 0.01, seed: int = 1) -> list[float]:
    """`n` values about 100 with normal noise of relative size `scale`; `steps` maps indices to relative changes."""
    level = np.zeros(n)
    for index, change in (steps or {}).items():
        level[index:] += np.log1p(change)
    noise = np.random.default_rng(seed).standard_normal(n)
    return (100.0 * np.exp(level + scale * noise)).tolist()
