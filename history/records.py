"""The canonical text of a value, its digest, and the packing of what is stored whole. Pure.

Two values are the same record exactly when their canonical texts are equal: keys are sorted, measurements stand in
the order of their names, numbers are written so that they read back exactly.

>>> from history.model import Release
>>> digest(Release(dbms="postgres", version="17.2", line="17"))[:16]
'6ceae3f18ec89693'
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import distribution
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from history.errors import InvalidRecord
from history.model import Block, Measurement, Row

#: Parts of a block that came after the first stores; a block without one has the same text as before.
LATER_PARTS = ("phases",)

#: Digits of a commit in a version.
COMMIT_DIGITS = 12

#: A list, since any other sequence would go back to Python for every value.
MEASUREMENTS: TypeAdapter[list[Measurement]] = TypeAdapter(list[Measurement])

#: Of zlib: small blocks, and speed matters more than the last percent.
COMPRESSION_LEVEL = 6


@cache
def tool_version() -> str:
    """The version of Pointdrop that runs, as rows carry it.

    `0.1.0+g3f2a9c1d44e0` from a checkout, with `.dirty` where its files differ from the commit, and when it was
    installed from a commit; `0.1.0` when from a package.
    """
    installed = distribution("pointdrop")
    commit = _checked_out(Path(__file__).resolve().parents[1])
    if not commit:
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        commit = origin.get("vcs_info", {}).get("commit_id", "")[:COMMIT_DIGITS]
    return f"{installed.version}+g{commit}" if commit else installed.version


def _checked_out(root: Path) -> str:
    """`3f2a9c1d44e0` or `3f2a9c1d44e0.dirty`; empty where `root` is no checkout, or git cannot tell."""
    if not (root / ".git").exists():
        return ""
    describe = ("describe", "--always", "--dirty=.dirty", "--exclude=*", f"--abbrev={COMMIT_DIGITS}")
    command = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}", *describe]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def writer() -> str:
    """What rows and files of this process name as their writer."""
    return f"pointdrop {tool_version()}"


def in_order(measurements: Sequence[Measurement]) -> list[Measurement]:
    """By test, then metric. InvalidRecord when one block has two values of one test and metric."""
    ordered = sorted(measurements, key=attrgetter("test", "metric"))
    for measurement, following in pairwise(ordered):
        if measurement.test == following.test and measurement.metric == following.metric:
            raise InvalidRecord(
                f"a block runs every test once, but {measurement.test} has two values of {measurement.metric}; "
                "give each repetition its own block"
            )
    return ordered


def text_of(value: Any) -> str:
    """JSON with sorted keys and no spaces; a number that is not finite is an error."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def shown(row: Row) -> dict[str, Any]:
    """`row` as plain JSON values."""
    return row.model_dump(mode="json")


def digest(row: Row) -> str:
    """sha256 of the canonical text, lower-case hex.

    InvalidRecord when a text holds a NUL, which PostgreSQL cannot store.
    """
    if isinstance(row, Block):  # the only record that is large: its measurements go through the compiled path
        # What a block of before could not have is not in its text, or old digests would be wrong.
        later = {name for name in LATER_PARTS if not getattr(row, name)}
        rest = text_of(row.model_dump(mode="json", exclude={"measurements", *later})).encode()
        content = rest + MEASUREMENTS.dump_json(in_order(row.measurements))
    else:
        content = text_of(shown(row)).encode()
    if b"\\u0000" in content:
        raise InvalidRecord(f"a text of this {type(row).__name__} holds a NUL character; remove it")
    return hashlib.sha256(content).hexdigest()


def pack(value: Any) -> bytes:
    """JSON, compressed. Numbers survive exactly."""
    return zlib.compress(text_of(value).encode(), COMPRESSION_LEVEL)


def unpack(content: bytes) -> Any:
    """The inverse of `pack`."""
    return json.loads(unpacked(content))


def unpacked(content: bytes) -> bytes:
    """The JSON text that was packed."""
    return zlib.decompress(content)
