"""Libraries that old archives ask for by a name the system gave up.

Debian 13 and Ubuntu 24.04 call libaio `libaio.so.1t64`, because the size of a time changed on 32-bit machines. On the
64-bit ones it is the library that was `libaio.so.1`; only the name keeps old MySQL and MariaDB servers from starting.

    <state>/renamed/libaio.so.1 -> /usr/lib/x86_64-linux-gnu/libaio.so.1t64

The folder is the harness's, for all servers; none may write there, since root makes the links.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Name an archive asks for: name the same library has now.
RENAMED = {"libaio.so.1": "libaio.so.1t64"}
SYSTEM_LIBRARIES = tuple(Path("/usr/lib").glob("*-linux-gnu"))


def renamed_libraries(system: Sequence[Path] = SYSTEM_LIBRARIES) -> dict[str, Path]:
    """Old names that the system lacks, each with the library that had it."""
    links: dict[str, Path] = {}
    for old, new in RENAMED.items():
        candidates = [place / new for place in system if (place / new).exists()]
        if candidates and not any((place / old).exists() for place in system):
            links[old] = candidates[0]
    return links


def link_libraries(links: Mapping[str, Path], folder: Path) -> None:
    """Make the links in `folder`, which exists; other processes may do the same, and servers use them, meanwhile."""
    folder.chmod(0o755)
    for name, library in links.items():
        link = folder / name
        if link.is_symlink() and link.readlink() == library:
            continue
        draft = folder / f".{uuid.uuid4().hex}"
        draft.symlink_to(library)
        draft.replace(link)
