"""Prepared data is reused only while everything it was made with is the same, the code included."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.engines.mariadb import MariaDB
from runners.engines.postgres import Postgres
from runners.sessions import data

CODE = ("point_select.lua", "data.py", "command.py", "postgres.py", "base.py")


@pytest.fixture(autouse=True)
def forget() -> None:
    data.code_digest.cache_clear()


def test_the_same_code_has_the_same_digest_and_engines_differ() -> None:
    assert data.code_digest(Postgres) == data.code_digest(Postgres)
    assert data.code_digest(Postgres) != data.code_digest(MariaDB)


@pytest.mark.parametrize("name", CODE)
def test_a_change_of_any_code_that_prepares_is_other_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = data.code_digest(Postgres)
    data.code_digest.cache_clear()
    read = Path.read_bytes

    def edited(path: Path) -> bytes:
        return read(path) + (b"\n" if path.name == name else b"")

    monkeypatch.setattr(Path, "read_bytes", edited)
    assert data.code_digest(Postgres) != before


def test_code_of_another_engine_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = data.code_digest(Postgres)
    data.code_digest.cache_clear()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"\n" if path.name == "mariadb.py" else b""))
    assert data.code_digest(Postgres) == before
