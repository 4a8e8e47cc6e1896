"""Archives that mean harm leave nothing behind; archives that do not come out as they are."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.errors import UnsafeArchive
from runners.releases import archives
from runners.releases.archives import relative_name, remove_tree, seal, unpack


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def member(name: str, data: bytes = b"", **settings: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.mode = 0o644
    for key, value in settings.items():
        setattr(info, key, value)
    return info, data


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=kind, linkname=target)


HARMFUL = {
    "absolute": [member("/etc/cron.d/x", b"x")],
    "parent": [member("a/../../x", b"x")],
    "parent inside": [member("a/../b", b"x")],
    "link out": [link("lib", "../outside")],
    "absolute link": [link("lib", "/etc")],
    "link to a link out": [link("a/b", ".."), link("a/c", "b/.."), member("a/c/x", b"x")],
    "file through a link": [link("lib", "elsewhere"), member("lib/x/../../../x", b"x")],
    "hard link out": [link("x", "../outside", tarfile.LNKTYPE)],
    "hard link to nothing": [link("x", "y", tarfile.LNKTYPE)],
    "device": [member("null", type=tarfile.CHRTYPE)],
    "block device": [member("sda", type=tarfile.BLKTYPE)],
    "pipe": [member("pipe", type=tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("members", HARMFUL.values(), ids=HARMFUL)
def test_harmful_members_are_refused_and_nothing_is_written_outside(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    (tmp_path / "outside").mkdir()
    archive = tar_of(tmp_path / "a.tar.gz", *members)
    with pytest.raises(UnsafeArchive):
        unpack(archive, tmp_path / "deep" / "root")
    assert list((tmp_path / "outside").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "deep", "outside"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["root"]


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [("BYTES_LIMIT", 1_000_000, "bomb"), ("MEMBERS_LIMIT", 10, "more than 10 members"), ("RATIO_LIMIT", 2, "bomb")],
)
def test_a_bomb_is_stopped_by_size_count_and_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, message: str
) -> None:
    archive = tar_of(tmp_path / "a.tar.gz", *(member(f"f{n}", b"\0" * 100_000) for n in range(30)))
    monkeypatch.setattr(archives, limit, value)
    with pytest.raises(UnsafeArchive, match=message):
        unpack(archive, tmp_path / "root")


def test_a_truncated_archive_and_what_is_none_are_refused(tmp_path: Path) -> None:
    whole = tar_of(tmp_path / "a.tar.gz", member("f", bytes(range(256)) * 2000)).read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "page.tar.gz").write_bytes(b"<html>Not here</html>")
    for name in ("cut.tar.gz", "page.tar.gz"):
        with pytest.raises(UnsafeArchive, match="cannot be unpacked"):
            unpack(tmp_path / name, tmp_path / "root")


def test_ordinary_archives_come_out_whole(tmp_path: Path) -> None:
    archive = tar_of(
        tmp_path / "a.tar.gz",
        member("top/lib/libpq.so.5.17", b"library", mode=0o4777, mtime=1_000_000_000),
        link("top/lib/libpq.so.5", "libpq.so.5.17"),
        link("top/bin/psql", "../lib/libpq.so.5"),
        link("top/hard", "top/lib/libpq.so.5.17", tarfile.LNKTYPE),
        member("other/x", b"not wanted"),
    )
    unpack(archive, tmp_path / "root", subtree="top")
    root = tmp_path / "root"
    assert (root / "bin" / "psql").read_bytes() == (root / "hard").read_bytes() == b"library"
    library = root / "lib" / "libpq.so.5.17"
    assert library.stat().st_mode & 0o7777 == 0o755, "no set-user-id, not writable by others"
    assert library.stat().st_mtime == 1_000_000_000
    assert not (root / "x").exists()
    seal(root)
    assert library.stat().st_mode & 0o7777 == 0o555
    remove_tree(root)
    assert not root.exists()


def test_an_archive_in_a_jar_is_unpacked_in_its_place(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as tar:
        info, data = member("bin/postgres", b"\x7fELF", mode=0o755)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "x")
        jar.writestr("postgres.txz", inner.getvalue())
        jar.writestr("linux/bin/mysqld", b"\x7fELFserver")
        jar.writestr("linux/share/errmsg.sys", b"text")
    unpack(tmp_path / "a.jar", tmp_path / "postgres", inner="postgres.txz")
    assert (tmp_path / "postgres" / "bin" / "postgres").stat().st_mode & 0o111
    unpack(tmp_path / "a.jar", tmp_path / "mysql", subtree="*")
    assert (tmp_path / "mysql" / "bin" / "mysqld").stat().st_mode & 0o111, "known as a program by its first bytes"
    assert not (tmp_path / "mysql" / "share" / "errmsg.sys").stat().st_mode & 0o111
    with pytest.raises(UnsafeArchive, match="cannot be unpacked"):
        unpack(tmp_path / "a.jar", tmp_path / "none", inner="mysql.txz")
    with pytest.raises(UnsafeArchive, match="is it the right archive"):
        unpack(tmp_path / "a.jar", tmp_path / "empty", subtree="no/such/place")


@given(st.lists(st.sampled_from(["a", "..", ".", "", "b c", "...", "-x"]), min_size=1, max_size=6))
def test_a_name_that_is_accepted_stays_inside(parts: list[str]) -> None:
    name = "/".join(parts)
    try:
        clean = relative_name(name)
    except UnsafeArchive:
        return
    assert not clean.startswith("/")
    assert ".." not in clean.split("/")
    assert Path("/root/inside", clean).resolve().is_relative_to("/root/inside")
