"""Programs that SIGKILL ends at one of their steps: a write, an fsync, a rename, a removal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def die_at(step: int) -> Callable[[Any], Any]:
    """From here on this process is killed before the step of that number, from 0. Returns what makes any other function
    a step as well."""
    left = iter(range(step, -1, -1))

    def dying(work: Any) -> Any:
        def killed_or_done(*values: Any, **options: Any) -> Any:
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*values, **options)

        return killed_or_done

    os.fsync = dying(os.fsync)
    for name in ("write_bytes", "replace", "unlink"):
        setattr(Path, name, dying(getattr(Path, name)))
    return dying


def killed_at(step: int, program: str, *arguments: str) -> bool:
    """Run `program`, which has its `arguments` and `dying` from `die_at`; False when it came to its end."""
    text = f"import sys\nfrom tests.killing import die_at\narguments, dying = sys.argv[1:], die_at({step})\n{program}"
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", text, *arguments]
    died = subprocess.run(command, cwd=root, env=os.environ | {"PYTHONPATH": "."}).returncode
    assert died in (-signal.SIGKILL, 0)
    return died != 0
