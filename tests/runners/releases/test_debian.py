"""Debian's own tools, played: what they say of this machine, and what they say when they fail."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from runners.errors import SourceUnavailable, UnsafeArchive
from runners.releases.debian import _unpack_package, mirror_lines

#: Address, suite, component and origin, as `apt-get indextargets` has them.
DEBIAN = [
    ("https://mirror.example/debian/", "trixie", "main", "Debian"),
    ("https://mirror.example/debian/", "trixie", "contrib", "Debian"),
    ("https://mirror.example/security/", "trixie-security", "main", "Debian"),
]
OTHERS = [
    ("https://docker.example/linux/debian/", "trixie", "stable", "Docker"),
    ("https://ppa.example/ubuntu/", "noble", "main", "LP-PPA-somebody"),
    ("https://ubuntu.example/", "noble", "main", "Ubuntu"),
    ("https://nobody.example/", "trixie", "main", ""),
]


@pytest.fixture
def keyring(tmp_path: Path) -> str:
    (tmp_path / "keys.gpg").touch()
    return str(tmp_path / "keys.gpg")


def play(monkeypatch: pytest.MonkeyPatch, rows: list[tuple[str, str, str, str]]) -> None:
    def indextargets(command: list[str], *_: object, **__: object) -> str:
        text = command[command.index("--format") + 1]
        lines = []
        for row in rows:
            line = text
            for name, value in zip(("REPO_URI", "RELEASE", "COMPONENT", "ORIGIN"), row, strict=True):
                line = line.replace(f"$({name})", value)
            lines.append(line)
        return "\n".join(lines)

    monkeypatch.setattr("runners.releases.debian.run_client", indextargets)


def test_the_mirror_is_debians_whatever_else_has_a_suite_of_its_name(
    monkeypatch: pytest.MonkeyPatch, keyring: str
) -> None:
    play(monkeypatch, [*DEBIAN, *OTHERS])
    assert mirror_lines(["trixie", "trixie-security", "sid"], keyring) == [
        f"deb [signed-by={keyring}] https://mirror.example/debian/ trixie main",
        f"deb [signed-by={keyring}] https://mirror.example/security/ trixie-security main",
        f"deb [signed-by={keyring}] https://mirror.example/debian/ sid main",
    ]


def test_a_machine_of_another_distribution_has_no_mirror_of_debian(
    monkeypatch: pytest.MonkeyPatch, keyring: str
) -> None:
    play(monkeypatch, OTHERS)
    with pytest.raises(SourceUnavailable, match="no Debian package source"):
        mirror_lines(["trixie"], keyring)


@pytest.mark.parametrize("status", [0, 2])
def test_a_package_that_was_not_read_to_its_end_is_refused(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tar ends between two members, where nothing in it says that more was to come."""
    (tmp_path / "server").write_text("x" * 512)
    with tarfile.open(tmp_path / "whole.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(tmp_path / "server", "usr/sbin/server")
    (tmp_path / "begin.tar").write_bytes((tmp_path / "whole.tar").read_bytes()[:1024])
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "dpkg-deb"
    program.write_text(f"#!/bin/sh\n/bin/cat {tmp_path}/begin.tar\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    (tmp_path / "a.deb").write_bytes(b"!<arch>")
    if status:
        with pytest.raises(UnsafeArchive, match="dpkg-deb ended with status 2"):
            _unpack_package(tmp_path / "a.deb", tmp_path / "out", None)
    else:
        _unpack_package(tmp_path / "a.deb", tmp_path / "out", None)
        assert (tmp_path / "out" / "usr" / "sbin" / "server").exists()
