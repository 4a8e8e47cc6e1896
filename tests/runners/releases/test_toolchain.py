"""What the files of a release say of its compiler, read once and kept beside the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from history.model import Release
from runners.releases.installed import Installed
from runners.releases.toolchain import (
    asked_toolchain,
    compiler_of,
    file_toolchain,
    keep_asked,
    kept_toolchain,
    program_toolchain,
    toolchain_path,
)


def gcc(*arguments: str) -> str:
    return subprocess.run(["gcc", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    """A release with a server that was compiled a moment ago."""
    source = tmp_path / "server.c"
    source.write_text("int main(void) { return 0; }\n")
    (tmp_path / "tree" / "bin").mkdir(parents=True)
    gcc("-O1", "-g", "-fno-plt", "-Wl,--build-id=0xabcdef01", str(source), "-o", f"{tmp_path}/tree/bin/postgres")
    return Installed(Release(dbms="postgres", version="17.2", line="17", build="maven"), tmp_path / "tree")


def test_a_program_says_its_compiler_flags_and_build_id(installed: Installed) -> None:
    facts = file_toolchain(installed)
    assert (facts["compiler"], facts["compiler_version"]) == ("GCC", gcc("-dumpfullversion"))
    assert {"-O1", "-fno-plt"} <= set(facts["flags"].split())
    assert facts["build_id"] == "abcdef01"
    assert Path(facts["loader"]).name.startswith("ld-linux")


def test_it_is_read_once_and_again_when_the_record_is_missing_or_damaged(installed: Installed) -> None:
    first, path = file_toolchain(installed), toolchain_path(installed.prefix)
    program = installed.program("postgres")
    content = program.read_bytes()
    program.write_bytes(b"no program any more")
    assert file_toolchain(installed) == first, "it is kept"
    program.write_bytes(content)
    for damage in (b"", b"{", b"[]", b'{"format": {"number": "0"}, "files": {"compiler": "cc"}}'):
        path.write_bytes(damage)
        assert file_toolchain(installed) == first
    path.unlink()
    assert file_toolchain(installed) == first
    assert path.parent == installed.prefix.parent, "the tree itself is sealed"


def test_what_the_server_said_is_kept_beside_it(installed: Installed) -> None:
    assert asked_toolchain(installed) is None
    keep_asked(installed, {"builder": "zonky"})
    assert asked_toolchain(installed) == {"builder": "zonky"}
    assert file_toolchain(installed)["compiler"] == "GCC"
    kept = kept_toolchain(installed.prefix)
    assert (kept["builder"], kept["compiler"]) == ("zonky", "GCC")
    assert kept_toolchain(installed.prefix / "elsewhere") == {}


def test_without_its_comment_the_debug_information_names_the_compiler(installed: Installed) -> None:
    program = installed.program("postgres")
    subprocess.run(["objcopy", "--remove-section=.comment", str(program)], check=True)
    assert program_toolchain(program)["compiler_version"] == gcc("-dumpfullversion")
    subprocess.run(["strip", "--remove-section=.comment", str(program)], check=True)
    assert set(program_toolchain(program)) == {"build_id", "loader"}, "nothing is guessed"


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\nexec true\n", b"\x7fELF" + b"\xff" * 200])
def test_what_is_no_program_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mysqld").write_bytes(content)
    assert program_toolchain(tmp_path / "mysqld") == {}


def test_any_cut_of_a_program_can_be_read(installed: Installed) -> None:
    program = installed.program("postgres")
    content = program.read_bytes()
    for length in range(0, len(content), 997):
        program.write_bytes(content[:length])
        program_toolchain(program)


@pytest.mark.parametrize(
    ("comments", "compiler"),
    [
        # Oracle's 8.0: the C library's objects, then the compiler of the tool set.
        (["GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-16)", "GCC: (GNU) 8.3.1 20190311 (Red Hat 8.3.1-3)"], "GCC 8.3.1"),
        (["GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-16)", "GCC: (GNU) 10.2.1 20210130"], "GCC 10.2.1"),
        (["GCC: (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0"], "GCC 7.5.0"),
        (["GCC: (Debian 12.2.0-14) 12.2.0", "Debian clang version 14.0.6"], "Clang 14.0.6"),
        (["Linker: LLD 14.0.6"], ""),
    ],
)
def test_of_several_compilers_the_one_that_made_the_server(comments: list[str], compiler: str) -> None:
    assert " ".join(compiler_of(comments).values()) == compiler
