"""The script that runs a release of every era, on Postgres and MySQL; the room's own tests run the other DBMS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "all_releases.py"


LINES = {
    "postgres": ["9.6", "10", "12", "14", "16", "17", "18", "15", "17"],
    "mysql": ["5.5.9", "5.6.24", "5.7.19", "5.7.22", "8.0.12", "8.0.15", "8.0.31", "9.7"],
}


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(1200)  # with all its downloads
@pytest.mark.parametrize("dbms", LINES)
def test_every_release_starts_loads_answers_and_stops(download_state: Path, dbms: str) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, dbms, "--format", "json"],
        env={**os.environ, "POINTDROP_STATE": str(download_state)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == len(LINES[dbms])
    for row, line in zip(rows, LINES[dbms], strict=True):
        assert f"{row['version']}.".startswith(f"{line}.")
        assert row["error"] == ""
        assert row["queries"] > 0
        assert set(row["seconds"]) == {
            *("fetch", "initialise", "ready", "load", "query", "settle", "stop", "copy", "again", "kill")
        }
