"""Toolchains side by side: which differences make two builds of two builders, and which are the compiler's."""

from __future__ import annotations

import pytest

from history.model import Run
from history.records import digest
from history.store import Store
from history.toolchains import built_with, other_builder, other_compiler, toolchain_changes
from tests.builders import SESSION, run

EDB = {
    "builder": "EnterpriseDB", "compiler": "GCC", "compiler_version": "4.4.7", "flags": "-Wall -g -O2 -DX=0x40000",
    "openssl": "OpenSSL 1.1.1s", "libc": "glibc 2.36", "build_id": "f2ee", "configure": "'--with-icu'",
}  # fmt: skip
ZONKY = EDB | {"builder": "zonky", "compiler_version": "7.5.0", "flags": "-Wall -Os", "build_id": "3def"}


def parts(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {change.part: (change.before, change.after) for change in toolchain_changes(before, after)}


def test_two_builders_differ_in_builder_compiler_and_flags() -> None:
    assert parts(EDB, ZONKY) == {
        "builder": ("EnterpriseDB", "zonky"),
        "compiler": ("GCC 4.4.7", "GCC 7.5.0"),
        "flags": ("-O2", "-Os"),
    }
    assert other_builder(toolchain_changes(EDB, ZONKY))


@pytest.mark.parametrize(
    "after",
    [
        {"build_id": "other"},
        {"configure": "'--prefix=/elsewhere'"},
        {"flags": "-Wextra -ggdb -O2 -fvisibility=hidden -DY"},
        {"compiler": "", "compiler_version": ""},
    ],
)
def test_what_every_build_differs_in_and_what_is_not_known_is_no_difference(after: dict[str, str]) -> None:
    assert parts(EDB, EDB | after) == {}


@pytest.mark.parametrize("after", [{"compiler_version": "4.8.5"}, {"flags": "-O3"}, {"compiler": "Clang"}])
def test_a_vendor_that_changes_its_compiler_stays_one_builder(after: dict[str, str]) -> None:
    changes = toolchain_changes(EDB, EDB | after)
    assert (other_builder(changes), other_compiler(changes)) == (False, True)


@pytest.mark.parametrize("after", [{"compiler_version": "4.8.5"}, {"flags": "-O3"}])
def test_what_was_built_here_by_another_compiler_is_another_build(after: dict[str, str]) -> None:
    here = EDB | {"builder": "Pointdrop"}
    assert other_builder(toolchain_changes(here, here | after))
    assert not toolchain_changes(here, here)
    assert built_with(here) == "Pointdrop, GCC 4.4.7, -O2"


def test_a_server_with_assertions_is_another_build() -> None:
    changes = toolchain_changes(EDB | {"assertions": "off"}, EDB | {"assertions": "on"})
    assert (other_builder(changes), other_compiler(changes)) == (True, False)


def test_a_library_is_neither() -> None:
    changes = toolchain_changes(EDB, EDB | {"openssl": "OpenSSL 3.0.2", "allocator": "libjemalloc 2"})
    assert [change.part for change in changes] == ["openssl"], "the allocator of one side is not known"
    assert not other_builder(changes)
    assert not other_compiler(changes)


def test_a_run_keeps_its_toolchain_and_one_of_before_keeps_its_digest(store: Store) -> None:
    plain = run("17.5")
    built = Run(**{**dict(plain), "id": "built", "toolchain": EDB})
    assert "toolchain" not in plain.model_dump(mode="json")
    assert digest(plain) != digest(Run(**{**dict(plain), "toolchain": EDB}))
    store.append_session(SESSION)
    assert store.append_run(plain)
    assert store.append_run(built)
    assert not store.append_run(built), "the same row again is nothing new"
    assert {stored.id: stored.toolchain for stored in store.runs()} == {plain.id: {}, "built": EDB}
