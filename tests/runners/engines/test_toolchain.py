"""What real servers were built with, and by whom: their files, their libraries, and their own word."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from history.model import Release
from runners.engines import Connection, Engine, EngineError, Installed, toolchain
from runners.engines.toolchain import ask_toolchain, library_facts, linked_toolchain, toolchain_of
from runners.releases import Catalogue
from runners.releases.toolchain import asked_toolchain, toolchain_path
from tests.runners.engines.conftest import MakeEngine


def test_the_examples() -> None:
    assert doctest.testmod(toolchain).failed == 0


def full(make: MakeEngine, installed: Installed) -> dict[str, str]:
    """All that is known of a release, its server asked anew."""
    toolchain_path(installed.prefix).unlink(missing_ok=True)
    with make(installed) as engine:
        linked = linked_toolchain(engine)
        assert "builder" not in toolchain_of(installed, linked), "nobody was asked yet"
        engine.initialise()
        engine.start()
        engine.wait_ready()
        ask_toolchain(engine)
        return toolchain_of(installed, linked)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "built"),
    [
        ("10.23", {"builder": "EnterpriseDB", "compiler": "GCC", "compiler_version": "4.4.7", "icu": "53.2"}),
        ("11.22", {"builder": "zonky", "compiler": "GCC", "compiler_version": "7.5.0", "icu": "60.2"}),
    ],
)
def test_postgres_of_one_source_has_two_builders(
    make: MakeEngine, catalogue: Catalogue, version: str, built: dict[str, str]
) -> None:
    installed = catalogue.fetch("postgres", version)
    known = full(make, installed)
    assert built.items() <= known.items()
    assert {"-O2" if built["builder"] == "EnterpriseDB" else "-Os"} <= set(known["flags"].split())
    assert known["assertions"] == "off"
    assert known["allocator"] == "libc"
    assert known["libc"].startswith("glibc 2.")
    assert known["openssl"].startswith("OpenSSL 1.1.1")
    assert "--prefix=" in known["configure"]
    with make(installed) as engine:
        assert toolchain_of(installed, linked_toolchain(engine)) == known, "it is kept, and the same every time"


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dbms", "line", "source", "builder", "compiler"),
    [
        ("mysql", "5.6", "npm", "Oracle", "GCC 4.1.2"),
        ("mysql", "9.7", "debian-sid", "Debian", ""),
        ("mariadb", "11.4", "maven", "MariaDB", "GCC 4.8.5"),
        ("mariadb", "11.8", "debian-trixie", "Debian", ""),
    ],
)
def test_mysql_and_mariadb_say_who_built_them(
    make: MakeEngine,
    release: Callable[..., Installed],
    dbms: str,
    line: str,
    source: str,
    builder: str,
    compiler: str,
) -> None:
    known = full(make, release(dbms, line, source))
    assert known["builder"] == builder
    assert f"{known.get('compiler', '')} {known.get('compiler_version', '')}".strip() == compiler, "or it is stripped"
    assert known["target"].startswith("x86_64")
    assert known["libstdc++"].startswith("6.0.")
    assert known["assertions"] == "off"


def test_the_loader_s_libraries_are_told_by_their_version(tmp_path: Path) -> None:
    (tmp_path / "libstdc++.so.6.0.30").touch()
    (tmp_path / "libstdc++.so.6").symlink_to("libstdc++.so.6.0.30")
    (tmp_path / "libcrypto.so.3").write_bytes(b"\0OpenSSL 3.0.17 1 Jul 2025\0")
    (tmp_path / "libc.so.6").write_bytes(b"\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n\0")
    (tmp_path / "libtcmalloc.so.4").touch()
    names = ("libstdc++.so.6", "libcrypto.so.3", "libc.so.6", "libtcmalloc.so.4", "libm.so.6")
    assert library_facts({name: tmp_path / name for name in names}) == {
        "libstdc++": "6.0.30",
        "openssl": "OpenSSL 3.0.17",
        "libc": "glibc 2.36",
        "allocator": "libtcmalloc 4",
    }


class Answering:
    """An engine whose server gives these answers."""

    connection = Connection("pgsql", Path("/nowhere"), 5432, "u", "d")

    def __init__(self, installed: Installed, answers: dict[str, str]) -> None:
        self.installed = installed
        self.answers = answers

    def query(self, sql: str) -> list[tuple[str, ...]]:
        if not self.answers:
            raise EngineError("the server is busy")
        return [("CONFIGURE", self.answers["configure"])] if "pg_config" in sql else [(self.answers["version"],)]


def test_a_server_is_asked_until_it_answers_and_what_it_says_is_bounded(tmp_path: Path) -> None:
    installed = Installed(Release(dbms="postgres", version="17.2", line="17", build="maven"), tmp_path / "tree")
    silent = cast(Engine, Answering(installed, {}))
    ask_toolchain(silent)
    assert asked_toolchain(installed) is None, "nothing is kept of a server that said nothing"
    answers = {"version": "PostgreSQL 17.2 on x86_64, compiled by gcc-12.2.0", "configure": "\0" + "x" * 1_000_000}
    ask_toolchain(cast(Engine, Answering(installed, answers)))
    asked = asked_toolchain(installed)
    assert asked is not None
    assert asked["configure"] == "x" * 4096
    assert asked["builder"] == "maven", "the source, where nobody says who it was"
    ask_toolchain(silent)
    assert asked_toolchain(installed) == asked, "asked once"


def test_what_was_built_for_this_place_was_built_here(tmp_path: Path) -> None:
    installed = Installed(Release(dbms="postgres", version="17.2", line="17", build="tarball"), tmp_path / "tree")
    answers = {"version": "PostgreSQL 17.2", "configure": f"'--prefix={tmp_path}/tree' 'CFLAGS=-O2'"}
    ask_toolchain(cast(Engine, Answering(installed, answers)))
    assert (asked_toolchain(installed) or {})["builder"] == "Pointdrop"
    assert (asked_toolchain(installed) or {})["configure"] == "'--prefix=PREFIX' 'CFLAGS=-O2'"
