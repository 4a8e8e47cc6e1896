"""From the settings of a source to the source: the only place that knows every kind."""

from __future__ import annotations

from pathlib import Path

from history.settings import read_model
from runners.releases.builds import Builder, BuildRecipe
from runners.releases.debian import DebianSource
from runners.releases.git import GitSource
from runners.releases.local import LocalSource
from runners.releases.maven import MavenSource
from runners.releases.npm import NpmSource
from runners.releases.sources import (
    DebianSettings,
    GitSettings,
    LocalSettings,
    MavenSettings,
    NpmSettings,
    Source,
    SourceSettings,
    TarballSettings,
)
from runners.releases.tarball import TarballSource
from runners.releases.web import Web


def open_source(
    settings: SourceSettings, folder: Path, cache: Path, patch: Path | None = None, sandbox: bool = False
) -> Source:
    """The source that `settings` describe; recipes and keys are below `folder`, private state below `cache`.

    `patch` and `sandbox` are for the sources that build.
    """
    match settings:
        case MavenSettings():
            return MavenSource(settings, cache / "maven")
        case DebianSettings():
            return DebianSource(settings, cache / "apt")
        case NpmSettings():
            return NpmSource(settings)
        case TarballSettings():
            builder = builder_for(settings.recipe, folder, cache, patch, sandbox) if settings.recipe else None
            return TarballSource(settings, folder, Web(cache / "partial"), builder)
        case GitSettings():
            return GitSource(settings, cache / "git", builder_for(settings.recipe, folder, cache, patch, sandbox))
        case LocalSettings():
            return LocalSource(settings)


def builder_for(recipe: str, folder: Path, cache: Path, patch: Path | None, sandbox: bool) -> Builder:
    """A builder by the recipe of this name."""
    return Builder(read_model(folder / "recipes" / f"{recipe}.toml", BuildRecipe), cache, patch, sandbox)
