"""From the settings of a source to the source: the only place that knows every kind."""

from __future__ import annotations

from pathlib import Path

from runners.releases.maven import MavenSource
from runners.releases.sources import Source, SourceSettings


def open_source(settings: SourceSettings, configs: Path, cache: Path) -> Source:
    """The source that `settings` describe; recipes and keys are below `configs`, private state below `cache`."""
    return MavenSource(settings, cache / "maven")
