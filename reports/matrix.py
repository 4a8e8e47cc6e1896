"""Configurations side by side, and the difference of their differences. Pure.

>>> rows = config_matrix({"z12b": {"insert": 100.0}, "z12c": {"insert": 105.0}}, ["insert"])
>>> [(row.config, row.relative) for row in rows]
[('z12b', (1.0,)), ('z12c', (1.05,))]
>>> difference_of_differences(100.0, 105.0, 90.0, 108.0)
1.1428571428571428
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from presentation.relative import relative


@dataclass(frozen=True)
class ConfigRow:
    """One config over the tests: absolute and relative to the first config; None where it was not measured."""

    config: str
    absolute: tuple[float | None, ...]
    relative: tuple[float | None, ...]


def config_matrix(
    values: Mapping[str, Mapping[str, float]], tests: Sequence[str], base: str | None = None
) -> list[ConfigRow]:
    """A row a config, in the order given; `base` is the config the others are relative to, by default the first."""
    if not values:
        return []
    first = values[base if base is not None and base in values else next(iter(values))]
    rows = []
    for config, known in values.items():
        absolute = tuple(known.get(test) for test in tests)
        ratios = tuple(
            relative(value, first[test]) if value is not None and test in first else None
            for test, value in zip(tests, absolute, strict=True)
        )
        rows.append(ConfigRow(config, absolute, ratios))
    return rows


def difference_of_differences(base_a: float, base_b: float, other_a: float, other_b: float) -> float:
    """(other_b / other_a) / (base_b / base_a): how much more switching a -> b brings on `other` than on `base`.

    1 means the switch brings the same on both; ratios, since effects of configs multiply.
    """
    return relative(relative(other_b, other_a), relative(base_b, base_a))
