"""Archives that mean harm leave nothing behind; archives that do not come out as they are."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

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


def zip_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """The same members in a zip; of hard links and devices it knows nothing."""
    with zipfile.ZipFile(path, "w") as archive:
        for info, data in members:
            entry = zipfile.ZipInfo(info.name)
            entry.external_attr = (stat.S_IFLNK if info.issym() else stat.S_IFREG | info.mode) << 16
            archive.writestr(entry, info.linkname.encode() if info.issym() else data)
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
    "file through a link to a link out": [link("a/b", ".."), link("a/c", "b/.."), member("a/c/x", b"x")],
    "file through a link": [link("lib", "elsewhere"), member("lib/x/../../../x", b"x")],
    "hard link out": [link("x", "../outside", tarfile.LNKTYPE)],
    "hard link to nothing": [link("x", "y", tarfile.LNKTYPE)],
    "device": [member("null", type=tarfile.CHRTYPE)],
    "block device": [member("sda", type=tarfile.BLKTYPE)],
    "pipe": [member("pipe", type=tarfile.FIFOTYPE)],
}


#: What is left out of an archive, and its name in the log.
LEFT_OUT = {
    "link out": ([link("lib/x", "../../outside")], "lib/x"),
    "absolute link": ([link("lib/x", "/tmp/build.x/lib/x")], "lib/x"),
    "absolute link to the machine's own": ([link("lib/x", "/etc/passwd")], "lib/x"),
    "link to a link out": ([link("a/b", ".."), link("a/c", "b/../outside")], "a/c"),
    "link in a link's place": ([link("lib/x", "y"), link("lib/x", "/etc")], "lib/x"),
    "file in its place": ([link("lib/x", "/etc"), member("lib/x/passwd", b"of the archive")], "lib/x"),
    "nothing on the way": ([link("lib/x", "/etc/../../etc")], "lib/x"),
}


@pytest.mark.parametrize(("members", "name"), LEFT_OUT.values(), ids=LEFT_OUT)
@pytest.mark.parametrize("packed", ["tar", "zip"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_link_that_leads_out_is_left_out_and_named(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    members: list[tuple[tarfile.TarInfo, bytes]],
    name: str,
    packed: str,
) -> None:
    """As the two links into its builder's directory that an archive of MySQL 8.0.31 holds."""
    (tmp_path / "outside").mkdir()
    root = tmp_path / "deep" / "root"
    unpack(
        (tar_of if packed == "tar" else zip_of)(tmp_path / "archive", member("bin/mysqld", b"server"), *members), root
    )
    assert (root / "bin" / "mysqld").read_bytes() == b"server"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert repr(name) in caplog.text and "left out" in caplog.text
    assert all(end.is_relative_to(root) for end in ends(root)), "nothing that is left leads out"
    assert list((tmp_path / "outside").iterdir()) == []
    assert Path("/etc/passwd").read_bytes() != b"of the archive"


def ends(root: Path) -> list[Path]:
    """Where each name below `root` leads in the end; a circle of links leads nowhere, and that is inside."""
    return [Path(os.path.realpath(path)) for path in root.rglob("*")]


PARTS = st.sampled_from(["a", "b", "c", "..", ".", "/", "/etc", "a/b", "../..", "c/../a"])
MEMBERS = st.lists(
    st.tuples(st.sampled_from(["file", "link", "hard link"]), st.lists(PARTS, min_size=1, max_size=3),
              st.lists(PARTS, min_size=1, max_size=4)),
    max_size=8,
)  # fmt: skip


@given(MEMBERS)
def test_whatever_the_members_nothing_lands_or_leads_outside(
    members: list[tuple[str, list[str], list[str]]],
) -> None:
    kinds = {"link": tarfile.SYMTYPE, "hard link": tarfile.LNKTYPE}
    made = [
        link("/".join(name), "/".join(target), kinds[kind]) if kind in kinds else member("/".join(name), b"inside")
        for kind, name, target in members
    ]
    with TemporaryDirectory() as folder:
        outside = Path(folder, "outside")
        outside.mkdir()
        (outside / "a").write_bytes(b"outside")
        root = outside / "deep" / "root"
        with suppress(UnsafeArchive):
            unpack(tar_of(Path(folder, "archive"), *made), root)
            assert all(end.is_relative_to(root.resolve()) for end in ends(root))
        assert sorted(path.name for path in outside.iterdir()) in (["a"], ["a", "deep"])
        assert (outside / "a").read_bytes() == b"outside"
        assert (outside / "a").stat().st_nlink == 1
        assert not (outside / "deep").exists() or [path.name for path in (outside / "deep").iterdir()] == ["root"]


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
        jar.write(zip_of(tmp_path / "share.jar", member("share/errmsg.txt", b"text")), "share.jar")
    unpack(tmp_path / "a.jar", tmp_path / "postgres", inner="postgres.txz")
    assert (tmp_path / "postgres" / "bin" / "postgres").stat().st_mode & 0o111
    unpack(tmp_path / "a.jar", tmp_path / "mysql", subtree="*")
    assert (tmp_path / "mysql" / "bin" / "mysqld").stat().st_mode & 0o111, "known as a program by its first bytes"
    assert not (tmp_path / "mysql" / "share" / "errmsg.sys").stat().st_mode & 0o111
    unpack(tmp_path / "a.jar", tmp_path / "both", subtree="linux", beside=["share.jar"])
    assert sorted(path.name for path in (tmp_path / "both").rglob("*") if path.is_file()) == [
        "errmsg.sys", "errmsg.txt", "mysqld",
    ]  # fmt: skip
    for missing in ({"inner": "mysql.txz"}, {"beside": ["data.jar"]}):
        with pytest.raises(UnsafeArchive, match="cannot be unpacked"):
            unpack(tmp_path / "a.jar", tmp_path / "none", **missing)
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
