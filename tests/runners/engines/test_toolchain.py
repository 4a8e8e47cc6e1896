"""What real servers were built with, and by whom: their files, their libraries, and their own word."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path

import pytest

from runners.engines import Installed, toolchain
from runners.engines.toolchain import ask_toolchain, library_facts, linked_toolchain, toolchain_of
from runners.releases import Catalogue
from runners.releases.toolchain import toolchain_path
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
