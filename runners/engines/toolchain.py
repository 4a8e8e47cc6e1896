"""What a release was built with and links to: its files, the libraries that its loader finds, and its own word.

    {"builder": "EnterpriseDB", "compiler": "GCC", "compiler_version": "4.4.7", "flags": "-Wall ... -O2 ...",
     "configure": "'--with-icu' '--enable-debug' ...", "libc": "glibc 2.36", "allocator": "libc",
     "openssl": "OpenSSL 1.1.1g", "icu": "53.1", "assertions": "off", "build_id": "f2eef2d8..."}

The names are those of `history.toolchains`. A name is absent where nothing says it; it is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from history.toolchains import HERE
from runners.engines.base import Engine
from runners.errors import EngineError
from runners.releases.installed import Installed
from runners.releases.toolchain import (
    BUILT_HERE,
    LOADER,
    SERVERS,
    Toolchain,
    asked_toolchain,
    file_toolchain,
    keep_asked,
)

LINKED_DEADLINE_S = 60.0
#: Characters of one part; the longest, a configure line, has about a thousand.
MOST_TEXT = 4096
_LINKED = re.compile(r"^\s*(?P<name>\S+) => (?P<path>/\S+) \(0x", re.MULTILINE)
_GLIBC = re.compile(rb"GNU C Library .{0,80}?release version (\d+\.\d+)")
_OPENSSL = re.compile(rb"OpenSSL \d+\.\d+\.\d+[a-z]?")
_ALLOCATORS = ("libjemalloc", "libtcmalloc", "libmimalloc")
#: Of `PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0`.
_VENDOR = re.compile(r"PostgreSQL \S+ \((?P<vendor>\w+)")
_COMPILED = re.compile(r"compiled by (?P<name>.*?)(?<![.\d])(?P<version>\d+(?:\.\d+)+)")
_TARGET = re.compile(r" on (?P<target>[^\s,]+)")
#: What a server says of its build, in small letters, and who says so; the first that fits.
BUILDERS: tuple[tuple[str, str], ...] = (
    ("debian", "Debian"),
    ("ubuntu", "Ubuntu"),
    # The directories of the machines that built: EnterpriseDB's installers, and the project zonky's own archives.
    ("/pginstaller", "EnterpriseDB"),
    ("/usr/local/pg-build", "zonky"),
    ("percona", "Percona"),
    ("mysql community server", "Oracle"),
    ("mysql enterprise server", "Oracle"),
    ("mariadb server", "MariaDB"),
)
#: Where a configure line names the tree that is measured, in place of its path: it was built here, for this place.
PREFIX = "PREFIX"


def toolchain_of(installed: Installed, linked: Toolchain) -> Toolchain:
    """All that is known of a release by now: its files, the libraries that it is `linked` to, and what it was asked."""
    known = file_toolchain(installed) | linked | (asked_toolchain(installed) or {})
    return {name: known[name] for name in sorted(known) if known[name] and name != LOADER}


def ask_toolchain(engine: Engine) -> None:
    """Ask the running server what it was built with, and keep that with the release; once a machine. A server that does
    not answer is asked again in the next block: what it measured stands without."""
    if asked_toolchain(engine.installed) is not None:
        return
    try:
        asked = _postgres(engine) if engine.connection.driver == "pgsql" else _mysql(engine)
    except EngineError:
        return
    asked["builder"] = builder(engine.installed, asked)
    # The server may be a stranger's: what it says is bounded, and fits every database.
    keep_asked(engine.installed, {name: text.replace("\0", "")[:MOST_TEXT] for name, text in asked.items()})


def _postgres(engine: Engine) -> Toolchain:
    prefix = str(engine.installed.prefix)
    version = str(engine.query("SELECT version()")[0][0])
    config = {str(name): str(setting) for name, setting in engine.query("SELECT name, setting FROM pg_config")}
    return _version_facts(version) | {
        "configure": config.get("CONFIGURE", "").replace(prefix, PREFIX).strip(),
        "flags": config.get("CFLAGS", ""),
        "assertions": str(engine.query("SHOW debug_assertions")[0][0]),
    }


def _version_facts(text: str) -> Toolchain:
    """What `SELECT version()` of Postgres says.

    >>> _version_facts("PostgreSQL 10.4 on x86_64-pc-linux-gnu, compiled by gcc (GCC) 4.4.7 20120313 (Red Hat 4.4.7)")
    {'target': 'x86_64-pc-linux-gnu', 'compiler': 'GCC', 'compiler_version': '4.4.7'}
    >>> _version_facts("PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on aarch64-linux-gnu, compiled by gcc-12.2.0, 64-bit")
    {'comment': 'Debian', 'target': 'aarch64-linux-gnu', 'compiler': 'GCC', 'compiler_version': '12.2.0'}
    """
    facts = {}
    if vendor := _VENDOR.match(text):
        facts["comment"] = vendor["vendor"]
    if target := _TARGET.search(text):
        facts["target"] = target["target"]
    if compiled := _COMPILED.search(text):
        name = "Clang" if "clang" in compiled["name"] else "GCC" if "gcc" in compiled["name"] else ""
        facts |= {"compiler": name, "compiler_version": compiled["version"]} if name else {}
    return facts


def _mysql(engine: Engine) -> Toolchain:
    said = {str(name): str(value) for name, value in engine.query("SHOW GLOBAL VARIABLES LIKE 'version%'")}
    allocator = said.get("version_malloc_library", "")
    openssl = " ".join(said.get("version_ssl_library", "").split()[:2])  # without the day
    return {
        "comment": said.get("version_comment", ""),
        "target": f"{said.get('version_compile_machine', '')} {said.get('version_compile_os', '')}".strip(),
        "assertions": "on" if "-debug" in said.get("version", "") else "off",
        # `system` is the C library, or whatever was put in its place: then the loader knows better.
        **({"allocator": allocator} if allocator not in ("", "system") else {}),
        **({"openssl": openssl} if openssl else {}),
    }


def builder(installed: Installed, asked: Mapping[str, str]) -> str:
    """Who built a release: the server's own word where it gives one, else the source it is from."""
    build = installed.release.build
    if build in BUILT_HERE or f"--prefix={PREFIX}" in asked.get("configure", ""):
        return HERE
    said = "\n".join(asked.get(name, "") for name in ("configure", "comment", "target")).lower()
    return next((name for words, name in BUILDERS if words in said), build)


# --- libraries -------------------------------------------------------------------------------------------------


def linked_toolchain(engine: Engine) -> Toolchain:
    """The libraries of the server, as the loader that it is started with finds them on this host."""
    installed = engine.installed
    program = installed.find(*SERVERS)
    interpreter = file_toolchain(installed).get(LOADER)
    if program is None or interpreter is None:
        return {}
    start = installed.loader.command(program)[:-1] if installed.loader else [interpreter]
    try:
        listed = engine.server.run([*start, "--list", str(program)], engine.environment(), LINKED_DEADLINE_S)
    except EngineError:  # the server cannot start then, and says why
        return {}
    return library_facts({match["name"]: Path(match["path"]) for match in _LINKED.finditer(listed)})


def library_facts(libraries: Mapping[str, Path]) -> Toolchain:
    """Versions of the libraries that matter, from their paths by the names they are linked by."""
    facts = {"allocator": "libc"}
    for name, path in libraries.items():
        if name.startswith("libc.so"):
            facts |= _said(path, _GLIBC, "libc", "glibc ")
        elif name.startswith("libstdc++.so"):
            facts["libstdc++"] = _number(path)
        elif name.startswith("libcrypto.so"):
            facts |= _said(path, _OPENSSL, "openssl") or {"openssl": name}
        elif name.startswith("libicuuc.so"):
            facts["icu"] = _number(path)
        elif name.startswith(_ALLOCATORS):
            facts["allocator"] = f"{name.partition('.')[0]} {_number(path)}"
    return facts


def _said(library: Path, pattern: re.Pattern[bytes], name: str, before: str = "") -> Toolchain:
    match = pattern.search(library.read_bytes())
    return {name: before + (match[1] if pattern.groups else match[0]).decode()} if match else {}


def _number(library: Path) -> str:
    """`6.0.30` of libstdc++.so.6, which is a link to libstdc++.so.6.0.30."""
    return library.resolve().name.partition(".so.")[2]
