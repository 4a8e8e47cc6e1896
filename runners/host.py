"""By what name the history knows this machine."""

from __future__ import annotations

import os
import socket


def host_name() -> str:
    """POINTDROP_HOST, or what the machine calls itself: a runner that is made anew each night keeps its name so."""
    return os.environ.get("POINTDROP_HOST") or socket.gethostname()
