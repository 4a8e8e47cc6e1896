"""The script that runs a release of every era, on every Postgres; the room's own tests run the other DBMS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "all_releases.py"


@pytest.mark.e2e
@pytest.mark.slow
def test_every_postgres_starts_loads_answers_and_stops(download_state: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "postgres", "--format", "json"],
        env={**os.environ, "POINTDROP_STATE": str(download_state)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["version"].split(".")[0] for row in rows] == ["9", "10", "12", "14", "16", "17", "18"]
    for row in rows:
        assert row["error"] == ""
        assert row["queries"] > 0
        assert set(row["seconds"]) == {
            *("fetch", "initialise", "ready", "load", "query", "settle", "stop", "copy", "again", "kill")
        }
