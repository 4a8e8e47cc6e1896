"""What can be measured where the alerts are made: published figures, and servers that are gone, cannot. Pure.

>>> known = frozenset({("mysql", "default")})
>>> can = Measurable(servers=frozenset({"small"}), configs=known, tests={"insert": ("l.i0",)})
>>> can.has(SeriesKey.parse("mysql|8.0|small|default|insert|l.i0|cpu/o"))
True
>>> can.has(SeriesKey.parse("mysql|8.0|ser4|cy10a_bee|insert|l.i0|cpupq"))
False
"""

from __future__ import annotations

from collections.abc import Iterable

from history.model import Finding, Row, SeriesKey


class Measurable(Row):
    """The names that the configuration has."""

    servers: frozenset[str]
    configs: frozenset[tuple[str, str]]
    """(DBMS, config)."""
    tests: dict[str, tuple[str, ...]]
    """By benchmark."""

    def has(self, key: SeriesKey) -> bool:
        """Whether a series can be measured again just as it was."""
        there = key.server in self.servers and (key.dbms, key.config) in self.configs
        return there and key.test in self.tests.get(key.benchmark, ())

    def known(self, benchmark: str, tests: Iterable[str]) -> list[str]:
        """Those of the tests that the benchmark has by this name."""
        return [test for test in tests if test in self.tests.get(benchmark, ())]


def measured_here(finding: Finding, can: Measurable | None) -> bool:
    """Whether any of a finding's series can be measured again; without `can`, all can."""
    return can is None or any(can.has(move.key) for move in finding.moves)
