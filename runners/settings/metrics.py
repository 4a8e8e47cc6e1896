"""Metrics: unit and direction of everything that is measured, `configs/metrics.toml`."""

from __future__ import annotations

from pathlib import Path

from history.model import Metric
from runners.settings.files import read_toml, validate_named


def load_metrics(configs: Path) -> dict[str, Metric]:
    """The metrics by name."""
    path = configs / "metrics.toml"
    return {name: validate_named(path, Metric, name, entry) for name, entry in read_toml(path).items()}
