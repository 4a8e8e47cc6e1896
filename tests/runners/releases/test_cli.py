"""`pointdrop releases`: data on standard output, exit codes, and JSON with the documented keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result as ClickResult
from typer.testing import CliRunner

from pointdrop.cli.main import app
from runners.errors import DigestMismatch, NotRunnable
from runners.releases import UnknownRelease
from tests.runners.releases.vendorsite import Site


@pytest.fixture
def run(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("POINTDROP_CONFIGS", str(project))
    monkeypatch.setenv("POINTDROP_STATE", str(tmp_path / "state"))

    def command(*arguments: str) -> ClickResult:
        return CliRunner().invoke(app, ["releases", *arguments])

    return command


def rows(result: ClickResult) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_way_of_a_release_from_new_to_pinned_for_everybody(run: Any, project: Path) -> None:
    assert rows(run("list", "--format", "json")) == []
    discovered = run("discover")
    assert "# new, not pinned: mariadb 10.11.9 (tarball 10.11.9)" in discovered.stdout
    [fetched] = rows(run("fetch", "mariadb", "10.11.9", "--format", "json"))
    assert set(fetched) == {
        "dbms", "version", "line", "source", "digest", "prefix", "loader", "files", "parts",
    }  # fmt: skip
    assert Path(fetched["prefix"], "bin", "mariadbd").is_file()
    manifest = project / "dbms" / "mariadb" / "releases.toml"
    before = manifest.read_text()
    patch = run("discover", "--format", "text").stdout
    assert patch.startswith("# append to configs/dbms/mariadb/releases.toml\n") and fetched["digest"] in patch
    assert run("add", "mariadb", "10.11.9", "--dry-run").stdout and manifest.read_text() == before
    run("add", "mariadb", "10.11.9")
    assert manifest.read_text() == before + "\n" + run("add", "mariadb", "10.11.9").stdout
    assert fetched["digest"] not in run("discover").stdout
    [row] = rows(run("list", "mariadb", "--state", "cached", "--format", "json"))
    assert set(row) == {
        "dbms", "version", "line", "released", "state", "cached", "source", "locator", "digest", "reason", "toolchain",
    }  # fmt: skip
    assert row["toolchain"] == {}, "its server is a script, which says nothing"
    assert (row["state"], row["cached"], row["released"]) == ("pinned", True, "2024-08-08")
    assert rows(run("list", "--line", "11.4", "--format", "json"))[0]["version"] == "11.4.3"


def test_discover_can_pin_what_is_new_and_writes_a_patch_that_can_be_appended(
    run: Any, project: Path, tmp_path: Path
) -> None:
    run("discover", "--pin", "--out", str(tmp_path / "patch.toml"))
    manifest = project / "dbms" / "mariadb" / "releases.toml"
    manifest.write_text(manifest.read_text() + (tmp_path / "patch.toml").read_text())
    listed = rows(run("list", "--format", "json"))
    assert [(row["version"], row["state"]) for row in listed] == [
        ("10.11.5", "pinned"), ("10.11.9", "pinned"), ("11.4.3", "pinned"),
    ]  # fmt: skip
    discovered = json.loads(run("discover", "--format", "json").stdout)
    assert discovered == {"new": [], "pins": {"mariadb": []}}


def test_a_source_that_does_not_answer_makes_it_incomplete(run: Any, site: Site) -> None:
    run("discover")
    site.routes.clear()
    result = run("discover")
    assert result.exit_code == 4
    assert "404" in result.stderr and "# new, not pinned: mariadb 10.11.9" in result.stdout


def test_errors_say_what_to_do_and_have_the_exit_code_of_bad_input(run: Any) -> None:
    for arguments, error in (
        (("fetch", "mariadb", "9.9"), UnknownRelease),
        (("fetch", "oracle", "1"), UnknownRelease),
        (("build", "mariadb"), UnknownRelease),
        (("build", "mariadb", "--prefix", "/usr", "--patch", "a.patch"), UnknownRelease),
    ):
        result = run(*arguments)
        assert isinstance(result.exception, error)
        assert result.exception.exit_code == 2
    run("discover")
    run("add", "mariadb", "10.11.5", "--withdrawn", "loses rows")
    assert isinstance(run("fetch", "mariadb", "10.11.5").exception, NotRunnable)
    assert DigestMismatch.exit_code == 2


def test_verify_says_when_there_is_nothing_it_looked_at(run: Any) -> None:
    assert isinstance(run("verify", "mariadb", "99.9").exception, UnknownRelease)
    nothing = run("verify", "mariadb")
    assert (nothing.exit_code, "nothing to verify" in nothing.stderr) == (0, True)


def test_verify_finds_what_was_changed(run: Any) -> None:
    [fetched] = rows(run("fetch", "mariadb", "10.11.9", "--format", "json"))
    assert run("verify").stdout == "ok       mariadb 10.11.9\n"
    program = Path(fetched["prefix"], "bin", "mariadbd")
    program.chmod(0o755)
    program.write_text("#!/bin/sh\n")
    result = run("verify", "mariadb", "10.11.9", "--format", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {"release": "mariadb 10.11.9", "ok": False, "problems": ["bin/mariadbd was changed"]}
    ]


def test_prune_keeps_what_is_asked_for(run: Any) -> None:
    run("fetch", "mariadb", "10.11.9", "10.11.5")
    assert rows(run("prune", "--keep", "1GiB", "--format", "json"))["removed"] == []
    assert run("prune", "--keep", "0").stdout.endswith("0.0 GiB left\n")
    assert run("prune", "--keep", "lots").exception.exit_code == 2  # type: ignore[union-attr]
    assert all(row["state"] in ("pinned", "new") and not row["cached"] for row in rows(run("list", "--format", "json")))
