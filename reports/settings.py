"""What a report is told besides the history: titles, metrics, annotations, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from history.errors import BadSettings
from history.metrics import MetricRegistry, load_metrics, shipped_metrics
from history.settings import read_toml
from presentation.commands import Measurable
from reports.annotations import Annotation, load_annotations

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
    metrics: MetricRegistry = field(default_factory=shipped_metrics)
    measurable: Measurable | None = None
    """What can be measured where the site is made; everything if None."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """By DBMS, where the source of two releases is compared; patterns as in alerts.toml."""
    annotations: tuple[Annotation, ...] = ()
    tests: Mapping[str, TestInfo] = field(default_factory=dict)
    """By test."""

    @property
    def order(self) -> dict[str, int]:
        return {test: info.order for test, info in self.tests.items()}


def load_settings(configs: Path) -> ReportSettings:
    """Settings from the committed configuration: metrics, catalogues of tests, annotations. BadSettings when a file is
    wrong; annotations and catalogues may be absent."""
    tests: dict[str, TestInfo] = {}
    for path in sorted((configs / "benchmarks").glob("*.toml")):
        try:
            for entry in read_toml(path).get("test", []):
                tests.setdefault(entry["name"], TestInfo(len(tests), entry.get("sql", "")))
        except (KeyError, TypeError, AttributeError) as error:
            raise BadSettings(f"{path} is not of the form that docs/plans.md describes: {error!r}") from error
    annotations = load_annotations(configs / "annotations.toml")
    return ReportSettings(metrics=load_metrics(configs), tests=tests, annotations=annotations)
