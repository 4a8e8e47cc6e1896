"""Releases: discover, verify, pin, fetch, build.

`Catalogue` is the way in; `Installed` is what comes out. See docs/releases.md.
"""

from runners.releases.cache import parse_size
from runners.releases.catalogue import Catalogue, ReleaseState
from runners.releases.errors import (
    BuildFailed,
    DigestMismatch,
    InvalidManifest,
    NotRunnable,
    ReleaseError,
    SourceUnavailable,
    UnknownRelease,
    UnsafeArchive,
    Unverifiable,
)
from runners.releases.installed import Installed, Loader
from runners.releases.manifest import Pin
from runners.releases.upkeep import commit_pins, pins_for, verify

__all__ = [
    "BuildFailed",
    "Catalogue",
    "DigestMismatch",
    "Installed",
    "InvalidManifest",
    "Loader",
    "NotRunnable",
    "Pin",
    "ReleaseError",
    "ReleaseState",
    "SourceUnavailable",
    "UnknownRelease",
    "UnsafeArchive",
    "Unverifiable",
    "commit_pins",
    "parse_size",
    "pins_for",
    "verify",
]
