"""What a report is told besides the history: titles, metrics, annotations, limits."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from history.model import Metric
from reports.annotations import Annotation, load_annotations
from reports.errors import BadSettings
from reports.relative import DEFAULT_SMALLEST_PCT

#: No page passes this, so that every browser and every reader can load it.
MAX_PAGE_BYTES = 1_000_000
#: Heat-table cells of all views of one line page; about 45 bytes of HTML and 10 of data each.
MAX_HEAT_CELLS = 14_000


@dataclass(frozen=True)
class TestInfo:
    """What the benchmark's catalogue says of a test."""

    order: int
    sql: str = ""


@dataclass(frozen=True)
class ReportSettings:
    """Defaults make a site from any history."""

    title: str = "Pointdrop"
    site_url: str = ""
    """Where the site will be served, for the feed's links; empty makes them relative."""
    source_url: str = ""
    """Of the repository, for the footer."""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    annotations: tuple[Annotation, ...] = ()
    tests: Mapping[str, TestInfo] = field(default_factory=dict)
    """By test."""

    def smallest_pct(self, metric: str) -> float:
        """Smallest change of a metric that gets a colour."""
        known = self.metrics.get(metric)
        return known.smallest_change_pct if known else DEFAULT_SMALLEST_PCT

    def title_of(self, metric: str) -> str:
        known = self.metrics.get(metric)
        return known.title if known and known.title else metric

    @property
    def order(self) -> dict[str, int]:
        return {test: info.order for test, info in self.tests.items()}


def load_settings(configs: Path) -> ReportSettings:
    """Settings from the committed configuration: metrics, catalogues of tests, annotations. Files may be absent;
    BadSettings or BadAnnotations when one is wrong."""
    path, name = configs / "metrics.toml", ""
    metrics: dict[str, Metric] = {}
    tests: dict[str, TestInfo] = {}
    try:
        for name, table in _table(path).items():
            metrics[name] = Metric.model_validate({"name": name, **table})
        for path in sorted((configs / "benchmarks").glob("*.toml")):
            for entry in _table(path).get("test", []):
                tests.setdefault(entry["name"], TestInfo(len(tests), entry.get("sql", "")))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, (name, *one['loc'])))}: {one['msg']}" for one in error.errors())
        raise BadSettings(f"{path}: {problems}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise BadSettings(f"{path} is not of the form that docs/plans.md describes: {error!r}") from error
    annotations = load_annotations(configs / "annotations.toml")
    return ReportSettings(metrics=metrics, tests=tests, annotations=annotations)


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path} is no TOML: {error}") from error
