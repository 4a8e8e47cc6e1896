"""The fixed work: hashing in cache, walking memory, writing pages safely. About two seconds.

CPU and memory take the fastest of several repeats, since others can only make them slower; a flush takes the median,
since drives have good moments.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from runners.canary.verdicts import Times

REPEATS = 5
HASH_ROUNDS = 200_000
#: Eight bytes each, so 64 MiB: more than most caches.
CELLS = 8 << 20
STEPS = 1 << 20
PAGE, FLUSHES = 16 << 10, 32


def work(folder: Path) -> Times:
    """Do it once; `folder` is on the drive that holds the data directories."""
    generator = np.random.default_rng(1)
    cells = np.arange(CELLS)
    places = generator.integers(0, CELLS, STEPS)
    folder.mkdir(parents=True, exist_ok=True)
    return Times(
        cpu_ms=_fastest(lambda: hashlib.pbkdf2_hmac("sha256", b"pointdrop", b"canary", HASH_ROUNDS)),
        memory_ms=_fastest(lambda: int(cells[places].sum())),
        sync_ms=_flush(folder),
    )


def _fastest(once: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    return 1_000 * min(times)


def _flush(folder: Path) -> float:
    page, times = os.urandom(PAGE), []
    with tempfile.NamedTemporaryFile(dir=folder, prefix="canary-") as file:
        for _ in range(FLUSHES):
            began = time.perf_counter()
            file.write(page)
            file.flush()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return 1_000 * statistics.median(times)
