"""What the detector is told: the metrics, and how sure it has to be."""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from history.metrics import MetricRegistry, shipped_metrics

#: Part of the settings' digest; raised when the same settings give other findings.
ALGORITHM = 2


class DetectorSettings(BaseModel):
    """Thresholds of detection; the defaults are those that `docs/detector.md` reports figures for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics: MetricRegistry = Field(default_factory=shipped_metrics)
    probability: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.62
    """P(a change) from which a test is taken to have changed at a release."""
    drift_pct: Annotated[float, Field(gt=0.0)] = 3.0
    """Accumulated change since the line's first release, beyond the steps found, that is worth a finding."""
    confirm_z: Annotated[float, Field(gt=0.0)] = 2.6
    """How many standard errors apart two releases must stand, measured side by side, to be different."""

    def smallest_change(self, metric: str) -> float | None:
        """Relative change of `metric` below which none counts; None where the metric is not configured."""
        return self.metrics[metric].smallest_change_pct / 100.0 if metric in self.metrics else None

    @property
    def smallest_changes(self) -> dict[str, float]:
        """The smallest relative change that counts, by metric."""
        return {metric.name: metric.smallest_change_pct / 100.0 for metric in self.metrics}

    @property
    def floors(self) -> dict[str, float]:
        """The smallest change that counts, in percent, by metric."""
        return {metric.name: metric.smallest_change_pct for metric in self.metrics}

    @property
    def digest(self) -> str:
        """16 hex digits that name these settings and the algorithm."""
        text = f"{ALGORITHM}:{self.model_dump_json()}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]
