"""Mirrors of releases where servers can reach them."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from history.model import Release
from runners.engines import Installed, server_account
from runners.engines.mirrors import reachable_release


def test_blocks_that_begin_at_once_share_one_mirror(place: Path) -> None:
    """Also while mirrors of releases that are gone are being removed."""
    if os.geteuid() != 0:
        pytest.skip("only root has folders that its servers cannot enter")
    private, mirrors = place / "private", place / "mirrors"
    private.mkdir(mode=0o700)
    account = server_account()

    def reach(name: str) -> Path:
        release = Release(dbms="postgres", version="17.2", line="17")
        return reachable_release(Installed(release, private / name), account, mirrors).prefix

    for turn in range(5):
        old = [f"old-{turn}-{number}" for number in range(20)]
        for name in (*old, f"new-{turn}"):
            (private / name / "bin").mkdir(parents=True)
            (private / name / "bin" / "postgres").write_text(name)
        gone = [reach(name) for name in old]
        for name in old:
            shutil.rmtree(private / name)
        with ThreadPoolExecutor(8) as pool:
            reached = set(pool.map(reach, [f"new-{turn}"] * 8))
        (mirror,) = reached
        assert (mirror / "bin" / "postgres").read_text() == f"new-{turn}"
        assert not [path for path in gone if path.exists()]
