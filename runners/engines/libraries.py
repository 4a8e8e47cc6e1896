"""Libraries that old archives ask for by a name the system gave up.

Debian 13 and Ubuntu 24.04 call libaio `libaio.so.1t64`, because the size of a time changed on 32-bit machines. On the
64-bit ones it is the library that was `libaio.so.1`; only the name keeps old MySQL and MariaDB servers from starting.

    /srv/b1/renamed/libaio.so.1 -> /usr/lib/x86_64-linux-gnu/libaio.so.1t64
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: Name an archive asks for: name the same library has now.
RENAMED = {"libaio.so.1": "libaio.so.1t64"}
SYSTEM_LIBRARIES = tuple(Path("/usr/lib").glob("*-linux-gnu"))


def provide_renamed(folder: Path, system: Sequence[Path] = SYSTEM_LIBRARIES) -> Path | None:
    """Put links with the old names into `folder`, which it makes; None when the system needs none."""
    for old, new in RENAMED.items():
        if any((place / old).exists() for place in system):
            continue
        target = next((place / new for place in system if (place / new).exists()), None)
        if target is None:
            continue
        folder.mkdir(mode=0o755, exist_ok=True)
        link = folder / old
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return folder if folder.is_dir() else None
