"""`history sync`, `history import DIRECTORY` and `detect --suspects`: what the workflows hand from job to job."""

from __future__ import annotations

import gzip
import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from history.interchange import header_line, line_of_record
from history.model import Block, Fingerprint, Measurement, Release, Run, Session
from history.store import Store
from pointdrop.cli.main import app

START = datetime(2026, 11, 1, 2, 17, tzinfo=UTC)


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == exit_code, result.output
    return result.output


def night(number: int, version: str, slower: bool) -> str:
    """A session of one release as a file: eight tests, of which the first three may have become slower."""
    started = START + timedelta(days=number)
    release = Release(dbms="postgres", version=version, line="17", digest=f"{number:064x}")
    session = Session(
        id=f"night-{number}", host="bee", server="local", started=started, fingerprint=Fingerprint(facts={"cores": "8"})
    )
    name = f"{session.id}/run"
    row = Run(
        id=name, session_id=session.id, release=release, config="default", benchmark="sysbench", lane="instructions"
    )
    values = tuple(
        Measurement(
            test=f"t{n}",
            group="range",
            metric="insn/o",
            value=1e5 * (1 + 0.2 * (n + 1) * (slower and n < 3)),
            better="lower",
            operations=9,
        )
        for n in range(8)
    )
    block = Block(id=f"{name}/1", run_id=name, number=1, started=started, ended=started, measurements=values)
    return "\n".join([header_line(), *(line_of_record(one) for one in (session, row, block))]) + "\n"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results as jobs leave them: a directory an artifact, one of the files compressed."""
    folder = tmp_path / "results"
    for number in range(5):
        text = night(number, f"17.{number + 5}", number == 4)
        path = folder / f"results-{number}" / "run.jsonl"
        path.parent.mkdir(parents=True)
        if number % 2:
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
    (folder / "notes.txt").write_text("no result")
    return folder


def test_a_directory_of_results_is_imported(tmp_path: Path, results: Path) -> None:
    url = f"sqlite:///{tmp_path / 'h.db'}"
    rows = json.loads(run("history", "import", str(results), "--history", url, "--format", "json"))
    assert [row["new"] for row in rows] == [3] * 5
    (tmp_path / "empty").mkdir()
    nothing = run("history", "import", str(tmp_path / "empty"), "--history", url, "--format", "json").splitlines()
    assert "[]" in nothing and any("no .jsonl file" in line for line in nothing)


def test_a_history_goes_over_the_branch(tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = str(tmp_path / "remote.git")
    subprocess.run(("git", "init", "--quiet", "--bare", remote), check=True)
    monkeypatch.setenv("POINTDROP_HISTORY_GIT", remote)
    for machine in ("one", "other"):
        monkeypatch.setenv("POINTDROP_STATE", str(tmp_path / machine))
        if machine == "one":
            run("history", "import", str(results))
            assert json.loads(run("history", "sync", "--push", "--format", "json"))[0]["files_written"] == 6
        else:
            assert json.loads(run("history", "sync", "--pull", "--format", "json"))[0]["imported"] == 20, (
                "with five pins of releases"
            )
    with Store.open(f"sqlite:///{tmp_path / 'other' / 'history.db'}") as store:
        assert len(store.sessions()) == 5
    run("history", "sync", exit_code=2)
    run("history", "sync", "--pull", "--push", exit_code=2)


def test_a_database_server_needs_no_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTDROP_HISTORY", "postgresql+psycopg://nobody@127.0.0.1:1/none")
    monkeypatch.setenv("POINTDROP_HISTORY_GIT", "/nonexistent")
    assert "no branch is needed" in run("history", "sync", "--push")


def test_suspects_go_to_the_machine_that_saw_them(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch, download_state: Path
) -> None:
    monkeypatch.setenv("POINTDROP_STATE", str(download_state))
    url, output = f"sqlite:///{tmp_path / 'h.db'}", tmp_path / "output"
    run("history", "import", str(results), "--history", url)
    plan = tmp_path / "plan.toml"
    measure = '[[measure]]\ndbms = "postgres"\nlane = "instructions"\nprofile = "instructions"\nnewest_lines = 1\n'
    plan.write_text(f'name = "p"\ntitle = "p"\nservers = ["local"]\n{measure}')
    command = ("detect", "--suspects", "--history", url, "--plan", str(plan), "--github-output", str(output))
    run(*command)
    work, some = output.read_text().splitlines()
    (row,) = json.loads(work.removeprefix("work="))
    assert (row["server"], row["dbms"], some) == ("local", "postgres", "some=true")
    assert row["suspects"] == "local/postgres/default/sysbench/instructions/17.8..17.9"
    assert row["timeout_minutes"] >= 60
    with Store.open(url) as store:
        assert store.findings() == [], "suspects are not the newest detection"
    plan.write_text(plan.read_text().replace('"local"', '"small"'))
    run(*command)
    assert output.read_text().splitlines()[-2:] == ["work=[]", "some=false"], "no machine of this plan saw it"
