"""The cache: atomic, bounded, and never pulled away from under what runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runners.releases import ReleaseError, parse_size
from runners.releases.cache import Cache
from runners.releases.sources import part_of

SIZE = 1000


def blob(cache: Cache, text: str, age: float = 0) -> str:
    with cache.workspace() as work:
        (work / "f").write_text(text * SIZE)
        part = part_of(work / "f")
        cached = cache.adopt(part.path, part.sha256)
    os.utime(cached, (time.time() - age,) * 2)
    return part.sha256


def tree(cache: Cache, key: str, age: float = 0, program: Path | None = None) -> Path:
    with cache.workspace() as work:
        (work / "tree" / "bin").mkdir(parents=True)
        shutil.copy(program or "/bin/true", work / "tree" / "bin" / "server")
        prefix = cache.install(key, work / "tree", {"installed_bytes": SIZE, "files": {}})
    os.utime(f"{prefix}.json", (time.time() - age,) * 2)
    return prefix


def test_what_was_unused_for_longest_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    oldest, middle, newest = (blob(cache, text, age) for text, age in (("a", 30), ("b", 20), ("c", 10)))
    cache.blob(oldest)  # a use
    assert [removed.name for removed in cache.prune(2 * SIZE)] == [middle]
    assert cache.blob(oldest) and cache.blob(newest) and not cache.blob(middle)
    assert cache.size() == 2 * SIZE


def test_a_leased_tree_survives_and_goes_when_it_is_given_back(tmp_path: Path) -> None:
    holder, other = Cache(tmp_path), Cache(tmp_path)
    prefix = tree(holder, "one", age=100)
    assert other.prune(0) == []
    assert holder.installed("one") is not None
    holder.close()
    assert [removed.name for removed in other.prune(0)] == ["one"]
    assert not prefix.exists() and other.installed("one") is None


def test_a_tree_that_a_program_runs_from_survives_its_starter(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    prefix = tree(cache, "one", program=Path("/bin/sleep"))
    cache.close()
    with subprocess.Popen([str(prefix / "bin" / "server"), "60"]) as process:
        assert Cache(tmp_path).prune(0) == []
        process.kill()
    assert [removed.name for removed in Cache(tmp_path).prune(0)] == ["one"]


def test_installed_trees_are_read_only_and_replaced_whole(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    prefix = tree(cache, "one")
    assert prefix.stat().st_mode & 0o777 == 0o555
    assert (prefix / "bin" / "server").stat().st_mode & 0o777 == 0o555
    assert tree(cache, "one", program=Path("/bin/sleep")) == prefix
    assert (prefix / "bin" / "server").read_bytes() == Path("/bin/sleep").read_bytes()


def test_leftovers_of_a_killed_process_are_removed_and_live_work_is_not(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    (tmp_path / "tmp" / "left" / "sealed").mkdir(parents=True)
    (tmp_path / "tmp" / "left" / "sealed" / "f").write_text("half")
    (tmp_path / "tmp" / "left" / "sealed").chmod(0o555)
    with cache.workspace() as work:
        assert [removed.name for removed in Cache(tmp_path).prune()] == ["left"]
        assert work.is_dir()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_tree_without_a_record_is_rubbish(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    prefix = tree(cache, "one")
    Path(f"{prefix}.json").unlink()  # as if the process had been killed between the two
    assert Cache(tmp_path).installed("one") is None
    assert tree(cache, "one") == prefix


def test_a_tree_without_a_record_is_removed_by_the_next_prune(tmp_path: Path) -> None:
    cache, other = Cache(tmp_path), Cache(tmp_path)
    prefix = tree(cache, "one")
    Path(f"{prefix}.json").unlink()
    assert other.prune() == [], "the record is yet to come: its maker lives"
    cache.close()
    assert [removed.name for removed in other.prune()] == ["one"]
    assert not prefix.exists()


def test_what_was_just_fetched_is_no_older_than_the_rest_whatever_its_vendor_says(tmp_path: Path) -> None:
    """apt-get gives a package the time it was made."""
    cache = Cache(tmp_path)
    before = blob(cache, "a", age=30)
    with cache.workspace() as work:
        (work / "f").write_text("b" * SIZE)
        os.utime(work / "f", (0, 0))
        part = part_of(work / "f")
        cache.adopt(part.path, part.sha256)
    assert [removed.name for removed in cache.prune(SIZE)] == [before]


FETCHES = """
import sys
from pathlib import Path
from runners.releases.cache import Cache
from runners.releases.sources import part_of
cache = Cache(Path(sys.argv[1]))
for number in range(60):
    with cache.workspace() as work:
        for name in range(20):
            (work / "tree" / str(name)).mkdir(parents=True)
        (work / "f").write_text(f"{sys.argv[2]}-{number}")
        part = part_of(work / "f")
        assert cache.adopt(part.path, part.sha256)
        (work / "tree").chmod(0o555)
    cache.prune(0)
"""


def test_processes_that_fetch_and_prune_at_once_do_not_meet(tmp_path: Path) -> None:
    several = [
        subprocess.Popen([sys.executable, "-c", FETCHES, tmp_path, name], stderr=subprocess.PIPE, text=True)
        for name in "abc"
    ]
    assert [process.communicate()[1] for process in several] == [""] * len(several)


@pytest.mark.parametrize("text", ["", "ten", "10 PiB", "-1", "1e9"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(ReleaseError, match="such as 10GiB"):
        parse_size(text)
