"""What can go wrong with a release, as one small tree below `runners.errors.RunnersError`.

ReleaseError
├── InvalidManifest      releases.toml cannot be used; names file, key, and what is allowed
├── UnknownRelease       no source offers it and no pin names it
├── NotRunnable          withdrawn by its vendor, or known not to run here; says why
├── DigestMismatch       the bytes differ from the pin; carries both values
├── Unverifiable         no upstream checksum or signature vouches for the bytes
├── UnsafeArchive        an archive that would write outside its directory, or a bomb
├── SourceUnavailable    the source cannot be reached, or no longer has this release
├── BuildFailed          a build step failed; names the log that was kept
└── BadSize              a size of the cache that cannot be read
"""

from __future__ import annotations

from runners.errors import RunnersError


class ReleaseError(RunnersError):
    """Base of everything this room raises."""


class InvalidManifest(ReleaseError):
    """A release manifest that cannot be used."""

    exit_code = 2


class UnknownRelease(ReleaseError):
    """Nothing of that name is offered or pinned."""

    exit_code = 2


class NotRunnable(ReleaseError):
    """The manifest says not to use this release, and why."""

    exit_code = 2


class DigestMismatch(ReleaseError):
    """The bytes are not the ones that were pinned."""

    exit_code = 2

    def __init__(self, what: str, pinned: str, actual: str) -> None:
        self.pinned, self.found = pinned, actual
        super().__init__(
            f"{what}: the digest differs from the pin\n  pinned {pinned}\n  found  {actual}\n"
            "Nothing was used. If the vendor replaced the file on purpose, remove the pin and run "
            "`pointdrop releases add` again; otherwise somebody is serving other bytes."
        )


class Unverifiable(ReleaseError):
    """Nothing upstream vouches for the bytes, so they were thrown away."""


class UnsafeArchive(ReleaseError):
    """An archive whose members would do harm; nothing of it was kept."""

    exit_code = 2


class SourceUnavailable(ReleaseError):
    """The source does not answer, or does not have what was asked for."""


class BuildFailed(ReleaseError):
    """A build from source did not finish; the message names the log."""


class BadSize(ReleaseError):
    """Not a size."""

    exit_code = 2
