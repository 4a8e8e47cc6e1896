"""Bounds on what a file from somebody else may hold, and their check. Pure.

A file is untrusted until it was read whole within these bounds: they keep a hostile or broken upload from taking the
memory, the disk or the time of the machine that imports it.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

from pydantic_core import from_json

from history.errors import InvalidRecord

MIB = 1024 * 1024

#: Of one file, after decompression.
MAX_FILE_BYTES = 1024 * MIB
#: Of one line; a block with per-second samples of an hour takes about 2 MiB.
MAX_LINE_BYTES = 16 * MIB
MAX_LINES = 1_000_000
#: Objects and arrays inside each other.
MAX_DEPTH = 12
#: Characters of one text (an option file, a plan).
MAX_TEXT = 512 * 1024
#: Entries of one object: facts, tests, functions of a bundle.
MAX_KEYS = 2_000
#: Entries of one array; per-second samples of a day are 86,400.
MAX_ITEMS = 100_000
#: Measurements of one block.
MAX_MEASUREMENTS = 20_000
#: Rejected lines that are told; the rest are counted.
MAX_REJECTIONS = 50


def checked_json(text: str | bytes) -> Any:
    """Parsed JSON within the bounds; ValueError when it is none, InvalidRecord when it is out of them."""
    value = from_json(text, allow_inf_nan=False)
    check_value(value)
    return value


def check_value(value: Any) -> None:
    """InvalidRecord when parsed JSON is deeper, longer or stranger than the bounds allow."""
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, str):
            if len(item) > MAX_TEXT:
                raise InvalidRecord(f"a text has {len(item)} characters, the limit is {MAX_TEXT}")
            if "\0" in item:
                raise InvalidRecord("a text holds a NUL character")
        elif isinstance(item, float) and not math.isfinite(item):
            raise InvalidRecord("a number is not finite")
        elif isinstance(item, dict | list):
            if depth > MAX_DEPTH:
                raise InvalidRecord(f"nested deeper than {MAX_DEPTH} levels")
            kind, most = ("object", MAX_KEYS) if isinstance(item, dict) else ("array", MAX_ITEMS)
            if len(item) > most:
                raise InvalidRecord(f"an {kind} has {len(item)} entries")
            inner = chain(item, item.values()) if isinstance(item, dict) else item
            waiting.extend((part, depth + 1) for part in inner)
