"""Pins of this machine: releases that were checked against their vendor before the manifest held them. How pins are
made, and how what they stand for is checked.

They live in `state/releases/pins.json`, outlast the cache, and are never overwritten: the first pin wins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from history.files import write_atomically
from history.versions import line_of
from runners.errors import DigestMismatch, ReleaseError
from runners.releases.manifest import Pin
from runners.releases.sources import part_of

if TYPE_CHECKING:
    from runners.releases.catalogue import Catalogue

#: Changed files of a release that are named one by one.
SHOWN_FILES = 10


class LocalPins:
    """Safe with several processes at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, dbms: str) -> list[Pin]:
        """The pins of one DBMS, oldest first."""
        if not self._path.is_file():
            return []
        return [Pin.model_validate(row) for row in json.loads(self._path.read_text()).get(dbms, [])]

    def add(self, dbms: str, pins: Iterable[Pin]) -> None:
        """Pin; DigestMismatch when the same build of the same source is pinned with other bytes."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self._path}.lock"):
            rows = json.loads(self._path.read_text()) if self._path.is_file() else {}
            held = {(row["version"], row["source"], row["locator"]): row for row in rows.get(dbms, [])}
            for pin in pins:
                key = (pin.version, pin.source, pin.locator)
                row = held.setdefault(key, pin.model_dump(mode="json", exclude_defaults=True))
                if row.get("sha256") != pin.sha256:
                    raise DigestMismatch(f"{dbms} {pin.version} from {pin.source}", row["sha256"], pin.sha256 or "none")
            rows[dbms] = list(held.values())
            write_atomically(self._path, json.dumps(rows, indent=1))


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
                served = source.download(pin.offer(), work).sha256
            except ReleaseError as error:
                return [*problems, str(error)]
        if served != pin.sha256:
            problems.append(f"{pin.source} now serves {served}, the pin is {pin.sha256}")
    return problems
