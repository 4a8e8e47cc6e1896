"""By what name the history knows this machine, and where on it all accounts meet."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

#: The path of a Unix socket must stay below 108 bytes; ours add up to 33 to that of the folder for temporary files.
LONGEST_TMP = 74


def host_name() -> str:
    """POINTDROP_HOST, or what the machine calls itself: a runner that is made anew each night keeps its name so."""
    return os.environ.get("POINTDROP_HOST") or socket.gethostname()


def shared_tmp() -> Path:
    """The folder for temporary files, or /tmp when TMPDIR is one that only we may enter, or that is too deep for the
    socket of a server."""
    tmp = Path(tempfile.gettempdir()).resolve()
    enterable = all(folder.stat().st_mode & 0o001 for folder in (tmp, *tmp.parents))
    return tmp if enterable and len(os.fsencode(tmp)) <= LONGEST_TMP else Path("/tmp")
