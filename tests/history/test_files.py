"""A file that is written whole is the old one or the new one, whoever is killed or writes beside."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.files import replaced, write_atomically
from tests.killing import killed_at

CONTENTS = st.binary(max_size=200) | st.text(st.characters(exclude_categories=("Cs",)), max_size=200)


@given(st.lists(CONTENTS, min_size=1))
def test_the_last_write_is_what_is_there_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, writes: list[bytes | str]
) -> None:
    path = tmp_path_factory.mktemp("files") / "made" / "state.json"
    for data in writes:
        write_atomically(path, data)
        assert path.read_bytes() == (data if isinstance(data, bytes) else data.encode())
    assert list(path.parent.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_atomically(path, "old")
    with pytest.raises(ValueError, match="half way"), replaced(path) as draft:
        draft.write_text("ne")
        raise ValueError("half way")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_file_is_for_whoever_files_made_here_are_for(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_atomically(tmp_path / "atomic", "")
    assert (tmp_path / "plain").stat().st_mode == (tmp_path / "atomic").stat().st_mode


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("版" * 85)
    write_atomically(path, "whole")
    assert path.read_text() == "whole"


def test_writers_at_once_never_mix(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    texts = [letter * 50_000 for letter in "abcd"]
    seen = set()

    def write(text: str) -> None:
        for _ in range(20):
            write_atomically(path, text, durable=False)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            seen.add(path.read_text())
    assert seen <= set(texts)
    assert list(tmp_path.iterdir()) == [path]


WRITE = """
from pathlib import Path
from history.files import write_atomically
write_atomically(Path(arguments[0]), "new")
"""


def test_kill_9_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    contents = []
    died = True
    while died and len(contents) < 20:
        path.write_text("old")
        died = killed_at(len(contents), WRITE, str(path))
        contents.append(path.read_text())
    assert contents == ["old", "old", "old", *["new"] * (len(contents) - 3)]
    assert not died
