"""Block values of two sides measured side by side, and of the arm between them, with the verdicts on them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, field
from functools import partial

from detector.compare import Comparison, judge
from detector.settings_split import Steps, steps_of
from history.metrics import MetricRegistry
from history.model import Block, FunctionCost, Measurement


@dataclass
class ArmValues:
    """Block values of both sides, and of the arm between them, by (test, metric)."""

    sides: tuple[dict[tuple[str, str], list[float]], ...] = field(
        default_factory=lambda: (defaultdict(list), defaultdict(list), defaultdict(list))
    )
    newest: dict[tuple[str, str], Measurement] = field(default_factory=dict)
    functions: tuple[dict[str, tuple[FunctionCost, ...]], ...] = field(default_factory=lambda: ({}, {}, {}))
    """By test, of the newest block."""
    blocks: int = 0
    unusable: str = ""
    """Why the newest block that does not count does not."""

    def add(self, side: int, block: Block, judged: Set[str]) -> None:
        if block.status != "ok":
            self.unusable = block.reason or block.status
            return
        self.blocks += 1
        for measurement in block.measurements:
            if measurement.metric in judged:
                key = measurement.test, measurement.metric
                self.sides[side][key].append(measurement.value)
                self.newest[key] = measurement
        self.functions[side].update(block.functions)

    def shared(self) -> dict[tuple[str, str], list[float]]:
        """Values of the base that have some of the candidate beside them."""
        return {key: values for key, values in self.sides[0].items() if key in self.sides[1]}

    def nothing(self) -> str:
        """In words, why there is nothing to judge; empty when there is something."""
        if self.shared():
            return ""
        return f"no block of both sides counts: {self.unusable or 'none has a value to judge by'}"

    def comparisons(self, metrics: MetricRegistry) -> dict[tuple[str, str], Comparison]:
        """The verdict on each test and metric that both sides have."""
        return {key: judge(before, self.sides[1][key], *key, metrics) for key, before in self.shared().items()}

    def steps(self, metrics: MetricRegistry) -> dict[tuple[str, str], Steps]:
        """The whole step, that of the settings and that of the code, where all three arms have values. Without an arm
        between the sides the candidate itself stands there."""
        middle = self.sides[2] or self.sides[1]
        return {
            key: steps_of(
                before, middle[key], self.sides[1][key], partial(judge, test=key[0], metric=key[1], metrics=metrics)
            )
            for key, before in self.shared().items()
            if key in middle
        }

    def unclear(self, metrics: MetricRegistry, *, split: bool) -> set[str]:
        """Tests of which a comparison is UNKNOWN; with `split` those with the middle arm count too."""
        if split:
            return {test for (test, _), of in self.steps(metrics).items() if any(map(_unknown, of))}
        return {test for (test, _), comparison in self.comparisons(metrics).items() if _unknown(comparison)}

    def alone(self) -> list[str]:
        """In words, what only one side has: a step of the Insert Benchmark is void where its inserts fell behind."""
        lost = sorted(self.sides[0].keys() ^ self.sides[1].keys())
        return [f"{test}: only one side has {metric}, so it is not compared" for test, metric in lost]


def _unknown(comparison: Comparison) -> bool:
    return comparison.verdict == "UNKNOWN"
