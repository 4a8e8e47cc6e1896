"""Servers: named hardware classes, `configs/servers/NAME.toml`.

A server says how much of everything a benchmark uses on it, so that every host of the class does the same work:

    name = "small"
    threads = 1
    tables = 1
    rows = 50_000_000
    pool_mib = 20_480
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from history.settings import Setting, find, read_model
from runners.doctor.checks import BUSY_LIMIT, STEAL_LIMIT

#: A test that stood still for this share of its time has lost about as much throughput.
STALL_LIMIT = 0.02


class Server(Setting):
    """One class of hosts and the scale of the data on it."""

    name: str = Field(min_length=1, pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str = ""
    labels: tuple[str, ...] = ()
    """Labels of the workflow runners that belong to this class."""
    threads: int = Field(ge=1, le=4096)
    """Client connections of the time lane."""
    tables: int = Field(ge=1, le=10_000)
    rows: int = Field(ge=1_000)
    """Rows in each table."""
    cores: int | None = Field(default=None, ge=1)
    """Cores of a host of this class; None takes what is there."""
    memory_gib: int | None = Field(default=None, ge=1)
    pool_mib: int = Field(ge=32)
    """Memory for the DBMS's own cache of pages (buffer pool, shared buffers, block cache)."""
    log_mib: int = Field(ge=32)
    """Redo log or WAL the DBMS may keep, so that no checkpoint falls into a short test."""
    canary: bool = False
    """Time a fixed piece of work before and after each session of the time lane, and keep a host out that no longer
    takes as long as it used to."""
    steal_limit: float = Field(default=STEAL_LIMIT, ge=0, le=1)
    """Share of all CPU time taken by other guests above which a block of the time lane is `noisy`."""
    foreign_limit: float = Field(default=BUSY_LIMIT, ge=0, le=1)
    """The same for processes that are neither server, client nor harness. 1 lets any block pass: for a look at a
    machine that is busy with other work, never for a history that a detector reads."""
    stall_limit: float = Field(default=STALL_LIMIT, ge=0, le=1)
    """Share of the measured time in which the server or its client stood still, above which a block of the time lane is
    `noisy`. Waiting for a CPU is foreign load, and waiting for storage is the product's own."""


def load_server(name_or_path: str | Path, configs: Path) -> Server:
    """The server of that name below `configs/servers`, or the file itself."""
    return read_model(find(name_or_path, configs / "servers"), Server)
