"""Prepared data is reused only while everything it was made with is the same, the code included."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.engines import Engine, EngineError
from runners.engines.mariadb import MariaDB
from runners.engines.postgres import Postgres
from runners.sessions import prepared_data

CODE = ("point_select.lua", "prepared_data.py", "commands.py", "postgres.py", "base.py")


@pytest.fixture(autouse=True)
def forget() -> None:
    prepared_data.code_digest.cache_clear()


def test_the_same_code_has_the_same_digest_and_engines_differ() -> None:
    assert prepared_data.code_digest(Postgres) == prepared_data.code_digest(Postgres)
    assert prepared_data.code_digest(Postgres) != prepared_data.code_digest(MariaDB)


@pytest.mark.parametrize("name", CODE)
def test_a_change_of_any_code_that_prepares_is_other_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = prepared_data.code_digest(Postgres)
    prepared_data.code_digest.cache_clear()
    read = Path.read_bytes

    def edited(path: Path) -> bytes:
        return read(path) + (b"\n" if path.name == name else b"")

    monkeypatch.setattr(Path, "read_bytes", edited)
    assert prepared_data.code_digest(Postgres) != before


def test_code_of_another_engine_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prepared_data.code_digest(Postgres)
    prepared_data.code_digest.cache_clear()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"\n" if path.name == "mariadb.py" else b""))
    assert prepared_data.code_digest(Postgres) == before


def test_what_a_kill_leaves_of_pruned_data_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "postgres-17.2-0123"
    (target / "data").mkdir(parents=True)
    (target / "prepared.json").write_text("{}")
    (target / "data" / "table").write_text("rows")

    def killed(path: Path, **_: object) -> None:
        (path / "data" / "table").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(prepared_data, "PREPARED_SHARE", 0)
    monkeypatch.setattr("shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        prepared_data.prune(tmp_path)
    assert not (target / "prepared.json").exists()


class Stopping(Engine):
    """An engine whose server does nothing but stop, in one way or another."""

    def __init__(self, warnings: tuple[str, ...]) -> None:
        self.warnings = warnings
        self.saved = False

    def __getattribute__(self, name: str) -> object:
        if name in ("initialise", "start", "wait_ready"):
            return lambda *_, **__: None
        return object.__getattribute__(self, name)

    def stop(self, deadline_s: float = 0.0) -> tuple[str, ...]:
        return self.warnings

    def save(self, target: Path) -> None:
        target.mkdir(parents=True)
        self.saved = True


@pytest.mark.parametrize("warnings", [(), ("it was killed: it did not stop within 120 s",)])
def test_data_of_a_server_that_did_not_stop_cleanly_is_not_kept(
    warnings: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_data, "prepared_key", lambda engine, recipe: "key")
    monkeypatch.setattr(Stopping, "__abstractmethods__", frozenset())
    engine = Stopping(warnings)  # type: ignore[abstract] # which it no longer is
    recipe = prepared_data.DataRecipe(None)
    if not warnings:
        assert not prepared_data.prepare(engine, recipe, (), tmp_path, needed=0).reused
        assert prepared_data.prepare(engine, recipe, (), tmp_path, needed=0).reused
        return
    with pytest.raises(EngineError, match="did not stop"):
        prepared_data.prepare(engine, recipe, (), tmp_path, needed=0)
    assert not engine.saved
