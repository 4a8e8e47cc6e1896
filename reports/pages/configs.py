"""Configs of one server and benchmark side by side: the matrix, and the difference of differences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from history.model import Better
from presentation.number_format import plain
from presentation.relative import relative
from reports.matrix import config_matrix, difference_of_differences
from reports.views import VIEWS

ABSENT = "–"
SMALL_RATIO = 0.095


class Subject(NamedTuple):
    """One column of numbers: what can be compared."""

    dbms: str
    line: str
    version: str
    config: str

    @property
    def label(self) -> str:
        return f"{self.dbms} {self.version} {self.config}"


class Test(NamedTuple):
    """One row."""

    name: str
    group: str
    better: Better
    smallest: float


Numbers = dict[str, dict[Subject, dict[str, float]]]
"""By view id, subject, test."""


def ratio_text(ratio: float) -> str:
    """Two decimals, or two digits where fsync makes a config a hundred times slower."""
    return f"{ratio:.2f}" if ratio >= SMALL_RATIO or ratio == 0 else f"{ratio:.2g}"


def matrices(numbers: Numbers, tests: dict[str, list[Test]], subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """One matrix for each release that was measured with more than one config: throughput, absolute and relative."""
    found = []
    releases = dict.fromkeys((one.dbms, one.version) for one in subjects)
    view = VIEWS[0]
    for dbms, version in releases:
        here = [
            one for one in subjects if (one.dbms, one.version) == (dbms, version) and one in numbers.get(view.id, {})
        ]
        if len(here) < 2:
            continue
        names = [test.name for test in tests[view.id] if any(test.name in numbers[view.id][one] for one in here)]
        rows = config_matrix({one.config: numbers[view.id][one] for one in here}, names)
        found.append(
            {
                "release": f"{dbms} {version}",
                "tests": names,
                "base": rows[0].config,
                "absolute": [(row.config, [ABSENT if v is None else plain(v) for v in row.absolute]) for row in rows],
                "relative": [
                    (row.config, [ABSENT if v is None else ratio_text(v) for v in row.relative]) for row in rows
                ],
            }
        )
    return found


def differences(numbers: Numbers, tests: dict[str, list[Test]], subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """For each two configs that two releases share: what the switch brings on each, and the ratio of the two.

    The releases are the newest two of different DBMS or, within one DBMS, the newest two that share configs.
    """
    view = VIEWS[0]
    known = numbers.get(view.id, {})
    configs: dict[tuple[str, str], list[Subject]] = {}
    for one in subjects:
        if one in known:
            configs.setdefault((one.dbms, one.version), []).append(one)
    rich = [release for release, here in configs.items() if len(here) > 1]
    if len(rich) < 2:
        return []
    base, other = configs[rich[-2]], configs[rich[-1]]
    shared = [a.config for a in base if a.config in {b.config for b in other}]
    if len(shared) < 2:
        return []
    left, right = {one.config: one for one in base}, {one.config: one for one in other}
    found = []
    for config in shared[1:]:
        corners = [left[shared[0]], left[config], right[shared[0]], right[config]]
        rows = []
        for test in tests[view.id]:
            values = [known[one].get(test.name) for one in corners]
            if None not in values:
                a, b, c, d = (value for value in values if value is not None)
                rows.append(
                    (
                        test.name,
                        f"{relative(b, a):.2f}",
                        f"{relative(d, c):.2f}",
                        f"{difference_of_differences(a, b, c, d):.2f}",
                    )
                )
        found.append(
            {"from": shared[0], "to": config, "base": " ".join(rich[-2]), "other": " ".join(rich[-1]), "rows": rows}
        )
    return found
