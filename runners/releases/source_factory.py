"""From the settings of a source to the source: the only place that knows every kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from history.settings import read_model
from runners.releases.builds import Builder, BuildRecipe
from runners.releases.debian import DebianSource
from runners.releases.git import GitSource
from runners.releases.local import LocalSource
from runners.releases.maven import MavenSource
from runners.releases.npm import NpmSource
from runners.releases.sources import GitSettings, Source, SourceSettings, TarballSettings
from runners.releases.tarball import TarballSource

SOURCES: Mapping[str, type[Source[Any]]] = {
    "maven": MavenSource,
    "debian": DebianSource,
    "npm": NpmSource,
    "tarball": TarballSource,
    "git": GitSource,
    "local": LocalSource,
}


def open_source(
    settings: SourceSettings,
    folder: Path,
    cache: Path,
    patch: Path | None = None,
    sandbox: bool = False,
    offline: bool = False,
) -> Source[Any]:
    """The source that `settings` describe; recipes and keys are below `folder`, private state below `cache`.

    `patch`, `sandbox` and `offline` are for the sources that build.
    """
    recipe = settings.recipe if isinstance(settings, TarballSettings | GitSettings) else ""
    builder = builder_for(recipe, folder, cache, patch, sandbox, offline) if recipe else None
    return SOURCES[settings.kind](settings, folder, cache, builder)


def builder_for(
    recipe: str, folder: Path, cache: Path, patch: Path | None, sandbox: bool, offline: bool = False
) -> Builder:
    """A builder by the recipe of this name."""
    settings = read_model(folder / "recipes" / f"{recipe}.toml", BuildRecipe)
    return Builder(settings, cache, patch, sandbox, offline=offline)
