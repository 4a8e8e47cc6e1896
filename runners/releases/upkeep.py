"""Looking after pins and what they stand for: write them into the manifest, and check the cache against them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from history.versions import line_of
from runners.releases.catalogue import Catalogue
from runners.releases.errors import ReleaseError
from runners.releases.manifest import Pin, add_pins, manifest_path
from runners.releases.sources import Offer, part_of

#: Changed files of a release that are named one by one.
SHOWN_FILES = 10


def pins_for(
    catalogue: Catalogue,
    dbms: str,
    versions: Iterable[str],
    *,
    source: str | None = None,
    withdrawn: str = "",
    not_runnable: str = "",
) -> list[Pin]:
    """Pins of these versions, fetched and verified; those that are marked need no bytes."""
    pins = []
    for version in versions:
        if withdrawn or not_runnable:
            pin = catalogue.pin_of(dbms, version, source)
            pin = pin or Pin(
                version=version, line=line_of(dbms, version), not_runnable=not_runnable, withdrawn=withdrawn
            )
            pins.append(pin.model_copy(update={"withdrawn": withdrawn, "not_runnable": not_runnable}))
        else:
            build = catalogue.fetch(dbms, version, source).release.build
            pin = catalogue.pin_of(dbms, version, build)
            assert pin is not None, "fetch pins what it returns"
            pins.append(pin)
    return pins


def commit_pins(configs: Path, dbms: str, pins: Sequence[Pin]) -> None:
    """Write pins into the manifest below `configs`, so that they hold for everybody."""
    add_pins(manifest_path(configs, dbms), dbms, pins)


def verify(catalogue: Catalogue, dbms: str, version: str, *, again: bool = False) -> list[str]:
    """What differs from the pin, as sentences: the archives kept, the unpacked files, with `again` the source."""
    pin = catalogue.pin_of(dbms, version)
    if pin is None or not pin.sha256:
        return [f"{dbms} {version} has no pin"]
    parts = catalogue.installer.parts(dbms, pin.sha256) or ()
    problems = [f"archive {part.name} is damaged" for part in parts if part_of(part.path).sha256 != part.sha256]
    source = catalogue.source_of(dbms, pin.source)
    if installed := catalogue.installer.installed(source, pin, dbms):
        changed = installed.changed_files()
        problems += [f"{name} was changed" for name in changed[:SHOWN_FILES]]
        problems += [f"and {len(changed) - SHOWN_FILES} more"] if len(changed) > SHOWN_FILES else []
    if again:
        with catalogue.cache.workspace() as work:
            try:
                served = source.download(Offer(pin.version, pin.locator, pin.released), work).sha256
            except ReleaseError as error:
                return [*problems, str(error)]
        if served != pin.sha256:
            problems.append(f"{pin.source} now serves {served}, the pin is {pin.sha256}")
    return problems
