"""Pins of this machine: releases that were checked against their vendor before the manifest held them.

They live in `state/releases/pins.json`, outlast the cache, and are never overwritten: the first pin wins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock

from history.files import write_atomically
from runners.releases.errors import DigestMismatch
from runners.releases.manifest import Pin


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
