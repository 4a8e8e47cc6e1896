"""What the detector is told: the metrics, and how sure it has to be."""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import Field

from history.metrics import MetricRegistry, shipped_metrics
from history.settings import Setting

#: Part of the settings' digest; raised when the same settings give other findings.
ALGORITHM = 4


class DetectorSettings(Setting):
    """Thresholds of detection; the defaults are those that `docs/detector.md` reports figures for."""

    metrics: MetricRegistry = Field(default_factory=shipped_metrics)
    probability: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.62
    """P(a change) from which a test is taken to have changed at a release."""
    drift_pct: Annotated[float, Field(gt=0.0)] = 3.0
    """Accumulated change since the line's first release, beyond the steps found, that is worth a finding."""

    @property
    def digest(self) -> str:
        """16 hex digits that name the algorithm and all of these settings that a finding depends on."""
        metrics = [
            (
                metric.name, metric.kind, metric.resource, metric.evidence, metric.lane, metric.smallest_change_pct,
                metric.near_zero,
            )
            for metric in self.metrics
        ]  # fmt: skip
        text = f"{ALGORITHM}:{self.probability}:{self.drift_pct}:{metrics}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]
