"""From the settings of a source to the source: the only place that knows every kind."""

from __future__ import annotations

from pathlib import Path

from runners.releases.debian import DebianSource
from runners.releases.maven import MavenSource
from runners.releases.npm import NpmSource
from runners.releases.sources import DebianSettings, MavenSettings, NpmSettings, Source, SourceSettings


def open_source(settings: SourceSettings, configs: Path, cache: Path) -> Source:
    """The source that `settings` describe; recipes and keys are below `configs`, private state below `cache`."""
    match settings:
        case MavenSettings():
            return MavenSource(settings, cache / "maven")
        case DebianSettings():
            return DebianSource(settings, cache / "apt")
        case NpmSettings():
            return NpmSource(settings)
