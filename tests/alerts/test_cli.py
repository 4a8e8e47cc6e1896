"""`pointdrop alerts` on a real history."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from history.store import Store
from pointdrop.cli.main import app
from tests.builders import detect, finding

KEY = "postgres/17/17.5/regression"


@pytest.fixture
def run(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    detect(store, finding(), finding("17.2", "17.1", tier="provisional", changes={"insert": 1.0}))
    monkeypatch.setenv("POINTDROP_STATE", str(tmp_path))
    monkeypatch.setenv("POINTDROP_HISTORY", str(store.url))
    for name in ("GITHUB_TOKEN", "GITHUB_REPOSITORY", "POINTDROP_APP_ID"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, ["alerts", *words])
        assert result.exit_code == code, result.output
        return result

    return call


def test_preview_files_nothing_and_sync_files_it(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert f"file      {KEY}: postgres 17.5: hot-points needs 4.9 % more instructions" in run("preview").stdout
    assert "**Evidence**" in run("preview", "--format", "markdown").stdout
    planned = json.loads(run("preview", "--format", "json").stdout)
    assert {change["action"] for change in planned} == {"file", "record"}
    assert not (tmp_path / "issues").exists()
    assert run("sync", "--dry-run").stdout == run("preview").stdout
    assert run("sync").stdout.splitlines()[-1] == "files: 2 changes, 1 open issues."
    assert [path.name for path in (tmp_path / "issues").glob("*.md")] == ["0001-postgres-17-17.5-regression.md"]
    report = json.loads(run("sync", "--format", "json").stdout)
    assert report["done"] == [] and report["open"] == 1
    assert "Nothing to file" in run("preview").stderr


def test_list_and_show(run, store: Store, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run("sync", "--issues", str(tmp_path / "elsewhere"))
    lines = json.loads(run("list", "--format", "json", "--issues", str(tmp_path / "elsewhere")).stdout)
    assert [(line["key"], line["state"], line["number"]) for line in lines] == [
        (KEY, "filed", 1),
        ("postgres/17/17.2/regression", "new", None),
    ]
    assert "--issues" in str(run("list", code=1).exception), "not there is not deleted"
    assert [event.event for event in store.events(KEY)] == ["detected", "confirmed", "filed"]
    elsewhere = ("--issues", str(tmp_path / "elsewhere"))
    assert "filed" in run("list", *elsewhere).stdout
    shown = run("show", KEY, *elsewhere).stdout
    assert "confirmed" in shown and "**See it again**" in shown
    values = json.loads(run("show", KEY, "--format", "json", *elsewhere).stdout)
    assert [event["event"] for event in values["events"]] == ["detected", "confirmed", "filed"]
    assert "prints the keys" in str(run("show", "nothing", *elsewhere, code=1).exception)


def test_ack(run) -> None:  # type: ignore[no-untyped-def]
    run("sync")
    assert run("ack", KEY, "--reason", "known").stdout == f"{KEY} is acknowledged now.\n"
    assert json.loads(run("list", "--format", "json").stdout)[0]["state"] == "acknowledged"
    assert "prints the keys" in str(run("ack", "nothing", code=1).exception)


def test_an_account_without_a_name_can_acknowledge(run, store: Store, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    run("sync")
    monkeypatch.setattr("getpass.getuser", nameless)
    run("ack", KEY)
    assert store.events(KEY)[-1].actor == str(os.getuid())


def test_provisional_findings_on_request(run) -> None:  # type: ignore[no-untyped-def]
    assert len(json.loads(run("preview", "--provisional", "--format", "json").stdout)) == 2
    assert run("sync", "--provisional").stdout.count("file ") == 2


def test_what_could_not_be_written_is_exit_code_4(run, store: Store) -> None:  # type: ignore[no-untyped-def]
    detect(store, finding().model_copy(update={"evidence": ()}))
    assert "no value for evidence" in run("sync", code=4).stderr


def test_a_finding_is_known_by_its_own_key_too(run, store: Store) -> None:  # type: ignore[no-untyped-def]
    """`detect` and the pages print the finding's key, the issue of a drift has one of its own."""
    drift = finding("17.6", "17.0", kind="drift")
    detect(store, drift)
    run("sync")
    assert run("show", drift.key).stdout == run("show", "postgres/17/drift").stdout
    assert run("ack", drift.key).stdout == "postgres/17/drift is acknowledged now.\n"


def test_preview_says_what_becomes_of_suspected_findings(run, store: Store) -> None:  # type: ignore[no-untyped-def]
    assert "1 suspected: filed once" in run("preview").stderr
    detect(store)
    assert "No findings" in run("list").stderr
