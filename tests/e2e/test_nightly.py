"""The main job on real Postgres releases: killed, resumed, done, and then nothing left to do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from history.store import Store

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PLAN = """
name = "tiny"
servers = ["local"]

[[measure]]
dbms = "postgres"
versions = ["17.5", "17.6", "17.7", "17.8"]
lane = "instructions"
profile = "instructions"
tests = ["scan.range100", "point-query.range100"]
blocks = 1
"""
DEADLINE_S = 240


@pytest.fixture
def state(download_state: Path) -> Iterator[Path]:
    """A fresh state directory that servers may enter, with the downloads of earlier test runs."""
    folder = Path(tempfile.mkdtemp(prefix="pointdrop-nightly-"))
    folder.chmod(0o755)
    (download_state / "cache").mkdir(exist_ok=True)
    (folder / "cache").symlink_to(download_state / "cache")
    (folder / "tiny.toml").write_text(PLAN)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def command(state: Path, *more: str, job: str = "nightly") -> tuple[list[str], dict[str, str]]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("POINTDROP", "GITHUB"))
    } | {"POINTDROP_STATE": str(state)}
    pointdrop = str(Path(sys.executable).with_name("pointdrop"))
    return [pointdrop, job, "--plan", str(state / "tiny.toml"), *more], environment


def nightly(state: Path, *more: str, job: str = "nightly") -> subprocess.CompletedProcess[str]:
    argv, environment = command(state, *more, job=job)
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def servers_of(state: Path) -> list[psutil.Process]:
    """Processes that work below the state directory."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(state / "servers") in word for word in process.info["cmdline"] or ()):
            found.append(process)
    return found


def blocks_in(state: Path) -> set[str]:
    """Blocks in the history, read without opening it as a store, which would take part in what is tested."""
    path = state / "history.db"
    if not path.is_file():
        return set()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        try:
            return {row[0] for row in database.execute("SELECT id FROM block")}
        except sqlite3.OperationalError:  # not migrated yet
            return set()


def kill_after_first_block(state: Path) -> None:
    """Start the job, wait for a finished block, kill -9."""
    argv, environment = command(state)
    log = state / "killed.log"
    with log.open("w") as errors:
        job = subprocess.Popen(argv, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
    deadline = time.monotonic() + DEADLINE_S
    while not blocks_in(state):
        assert job.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    job.send_signal(signal.SIGKILL)
    job.wait()


def test_a_killed_night_is_resumed_and_finds_what_postgres_17_8_did(state: Path) -> None:
    dry = nightly(state, "--dry-run", "--format", "json")
    assert [row["releases"] for row in json.loads(dry.stdout)] == [["17.5", "17.6", "17.7", "17.8"]]
    assert (
        "4 releases: 17.5 17.6 17.7 17.8 (control 17.5)\n    4 blocks, "
        in nightly(state, "--dry-run", job="bench").stdout
    )
    assert blocks_in(state) == set()
    assert not (state / "issues").exists()

    kill_after_first_block(state)
    with Store.open(f"sqlite:///{state / 'history.db'}") as store:
        (session,) = store.sessions()
        finished = store.block_ids(session.id)
    assert 1 <= len(finished) < 4

    done = nightly(state, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert f"resuming the session {session.id}" in done.stderr
    summary = json.loads(done.stdout)
    assert summary["blocks"] == 4 - len(finished) + 2, "17.7 and 17.8 are counted again, side by side"
    assert summary["findings"] == {"confirmed regression": 1}
    assert servers_of(state) == []
    with Store.open(f"sqlite:///{state / 'history.db'}") as store:
        assert finished < store.block_ids(session.id)
        assert len(store.block_ids(session.id)) == 4
        (finding,) = store.findings()
        (blocks,) = finding.blocks
        assert set(blocks.discovered) < store.block_ids(session.id) and set(blocks.again).isdisjoint(finished)
        assert blocks.discovered_in == (session.id,) and len(blocks.again) == 2
        assert (finding.release, finding.previous, finding.cause) == ("17.8", "17.7", "product")
        assert [(move.key.test, round(move.change_pct)) for move in finding.moves] == [("scan.range100", 44)]
        assert "pg_mblen_with_len" in {change.function for change in finding.functions}
    (issue,) = (state / "issues").glob("*.md")
    text = issue.read_text()
    assert "postgres 17.8" in text
    assert "pg_mblen_with_len" in text
    assert "17.8" in (state / "site" / "index.html").read_text()

    again = nightly(state, "--format", "json")
    assert again.returncode == 0, again.stderr
    summary = json.loads(again.stdout)
    assert (summary["releases"], summary["blocks"], summary["issues"]) == ([], 0, {})
    assert summary["findings"] == {"confirmed regression": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('lane = "instructions"', "measure.0.profile"),
        ('versions = ["17.5", "17.6", "17.7", "17.8"]', "not a known, runnable release"),
    ],
)
def test_a_plan_that_cannot_be_used_stops_before_anything_runs(state: Path, change: str, message: str) -> None:
    replacement = 'lane = "time"' if "lane" in change else 'versions = ["17.99"]'
    (state / "tiny.toml").write_text(PLAN.replace(change, replacement))
    refused = nightly(state)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
