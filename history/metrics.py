"""The registry of metrics, `configs/metrics.toml`: the only place that knows what a metric is.

>>> metrics = shipped_metrics()
>>> metrics["insn/o"].kind, metrics["insn/o"].said(3.1), metrics["qps"].said(-5.6)
('instructions', 'more instructions', 'lower QPS')
>>> metrics["a foreign one"].noun, "a foreign one" in metrics
('a foreign one', False)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, RootModel, model_validator

from history.model import Better, Lane, Name, Row
from history.settings import read_toml, validate_named

MetricKind = Literal["throughput", "cpu", "instructions", "counts", "io", "memory", "latency"]
#: Kinds that a finding can be named for: rates and the cost of the processor. The others explain.
LEADING_KINDS: frozenset[MetricKind] = frozenset({"throughput", "cpu", "instructions"})
#: Smallest change of a metric that no file knows, in percent.
DEFAULT_SMALLEST_PCT = 2.0
#: The folder of settings that comes with Pointdrop.
SHIPPED = Path(__file__).resolve().parents[1] / "configs"


class Metric(Row):
    """One metric; the keys are explained at the head of the file."""

    name: Name
    title: str = ""
    column: str = ""
    unit: str = ""
    better: Better = "lower"
    kind: MetricKind = "counts"
    resource: str = ""
    evidence: bool = True
    smallest_change_pct: Annotated[float, Field(gt=0)] = DEFAULT_SMALLEST_PCT
    near_zero: Annotated[float, Field(ge=0)] = 0.0
    noun: str = ""
    more: str = ""
    less: str = ""
    view: str = ""
    lane: Lane = "time"
    compared: bool = False
    digits: Annotated[int, Field(ge=1, le=15)] = 4
    ratio_decimals: Annotated[int, Field(ge=0, le=6)] = 2

    @model_validator(mode="before")
    @classmethod
    def _named_after_itself(cls, data: dict[str, object]) -> dict[str, object]:
        """What is not given follows from the name."""
        name = data.get("name", "")
        noun = data.get("noun", name)
        named = {"title": name, "column": name, "resource": name, "noun": name}
        return {**named, "more": f"more {noun}", "less": f"less {noun}", **data}

    @property
    def leads(self) -> bool:
        """Whether a finding can be named for it."""
        return self.evidence and self.kind in LEADING_KINDS

    @property
    def verb(self) -> str:
        """What a test does with it: it `gets` throughput and `needs` the rest."""
        return "gets" if self.kind == "throughput" else "needs"

    def is_none(self, level: float) -> bool:
        """Whether a level is as good as none: a percentage of it, or down to it, says nothing."""
        return abs(level) <= self.near_zero

    def said(self, change_pct: float) -> str:
        """`more instructions` or `fewer instructions`."""
        return self.more if change_pct > 0 else self.less


class MetricRegistry(RootModel[dict[str, Metric]]):
    """Metrics by name, in the order of their rank. A metric that is not in it has what its name tells."""

    def __getitem__(self, name: str) -> Metric:
        return self.root.get(name) or Metric(name=name)

    def __contains__(self, name: object) -> bool:
        return name in self.root

    def __iter__(self) -> Iterator[Metric]:  # type: ignore[override]
        return iter(self.root.values())

    def first(self, kind: MetricKind) -> Metric:
        """The highest-ranked metric of a kind that is evidence; one named after the kind when there is none."""
        evident = (metric for metric in self if metric.evidence and metric.kind == kind)
        return next(evident, None) or Metric(name=kind, kind=kind)

    def named(self, header: str) -> str:
        """The metric of a column header, as published tables have it: `o/s` is `qps`. Any other text is its own."""
        return next((metric.name for metric in self if metric.column == header), header)

    def rank(self, name: str) -> tuple[int, str]:
        """Sort key: the order of the registry, then the metrics it does not have by name."""
        return list(self.root).index(name) if name in self.root else len(self.root), name

    def ranked(self, names: Iterable[str]) -> list[str]:
        """Each name once, by rank."""
        return sorted(set(names), key=self.rank)


def load_metrics(configs: Path) -> MetricRegistry:
    """The registry of a folder of settings, or the shipped one where it has none. BadSettings names file and key."""
    path = configs / "metrics.toml"
    if not path.is_file():
        return shipped_metrics()
    entries = {name: validate_named(path, Metric, name, entry) for name, entry in read_toml(path).items()}
    return MetricRegistry(entries)


@lru_cache(maxsize=1)
def shipped_metrics() -> MetricRegistry:
    """The registry that comes with Pointdrop, for what is read without a folder of settings."""
    return load_metrics(SHIPPED)
