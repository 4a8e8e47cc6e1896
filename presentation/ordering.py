"""The order of tests: as their benchmark runs them. Pure.

>>> sorted(["qr1000", "qp100", "l.i2", "qr100", "l.x", "l.i0"], key=step_order)
['l.i0', 'l.x', 'l.i2', 'qr100', 'qp100', 'qr1000']
>>> sorted(["scan", "read-only.range100", "read-only.range10"], key=by_catalogue({"scan": 7}))
['scan', 'read-only.range10', 'read-only.range100']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Natural = tuple[tuple[int, int, str], ...]
StepKey = tuple[int, int, int, Natural]

#: The write steps of the Insert Benchmark in their order; read-write steps follow by rate, ranges before points.
WRITE_STEPS = ("l.i0", "l.x", "l.i1", "l.i2")

_DIGITS = re.compile(r"([0-9]{1,18})")
_READ_STEP = re.compile(r"q(?P<kind>[rp]?)(?P<rate>[0-9]{1,9})(?![0-9])")


def natural(text: str) -> Natural:
    """Sort key in which `qr100` comes before `qr1000` and after `qr50`."""
    return tuple((0, int(bit), "") if at % 2 else (1, 0, bit) for at, bit in enumerate(_DIGITS.split(text)) if bit)


def step_order(step: str) -> StepKey:
    """Sort key: the order in which the Insert Benchmark runs its steps; other tests follow by name."""
    if step in WRITE_STEPS:
        return 0, WRITE_STEPS.index(step), 0, ()
    match = _READ_STEP.match(step)
    if match:
        return 1, int(match["rate"]), "rp".find(match["kind"]), natural(step)
    return 2, 0, 0, natural(step)


def by_catalogue(order: Mapping[str, int]) -> Callable[[str], tuple[bool, int, StepKey]]:
    """Sort key of tests: the catalogue's order where it has them, then `step_order`."""
    return lambda test: (test not in order, order.get(test, 0), step_order(test))
