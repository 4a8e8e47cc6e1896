"""What the files of a release say of how it was built: compiler, flags, build id. Nothing of it is run.

    {"compiler": "GCC", "compiler_version": "4.8.5", "build_id": "df9ed6c4...",
     "flags": "-mtune=generic -march=x86-64 -g -O3 -std=gnu++11 -fPIC ..."}

The compiler is named in the section `.comment`, which some distributions strip; its flags in the debug information,
where there is any. What is known besides is asked of the running server (`runners.engines.toolchain`). Both are kept in
`<prefix>.toolchain` beside the installed tree, since reading the debug information of 300 MB takes seconds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.elf.elffile import ELFFile
from pydantic import TypeAdapter, ValidationError

from history.files import write_atomically
from runners.releases.cache import TOOLCHAIN
from runners.releases.installed import Installed

#: Programs that are the server, of all DBMS.
SERVERS = ("postgres", "mariadbd", "mysqld")
#: Sources whose releases are built here, perhaps from a stranger's patch.
BUILT_HERE = frozenset({"git", "tree"})
#: The program interpreter, which binds the libraries: for us, and no part of a toolchain.
LOADER = "loader"
#: A larger program's debug information is not read: it would be in memory as a whole.
MOST_BYTES = 512 << 20
#: Units of the debug information whose flags are looked at; a build compiles nearly all of them alike.
UNITS = 200
#: How compilers call themselves in `.comment`, and GCC in the debug information (`GNU C++ 4.8.5 20150623 (Red Hat
#: 4.8.5-16) -O3 -g`). Of several compilers the newest made the server: the older ones made the few objects of the C
#: library that every program has.
_COMPILERS = (
    ("Clang", re.compile(r"clang version (\d+(?:\.\d+)+)")),
    ("GCC", re.compile(r"(?:GCC: \(.*?\)|^GNU C\S*) (\d+(?:\.\d+)+)")),
)
_FLAGS = re.compile(r"\s(-.*)")
#: Of the record's shape; another number is read anew.
FORMAT = 1
_RECORD: TypeAdapter[dict[str, dict[str, str]]] = TypeAdapter(dict[str, dict[str, str]])

Toolchain = dict[str, str]


def toolchain_path(prefix: Path) -> Path:
    """Where the toolchain of the tree at `prefix` is kept."""
    return prefix.with_name(f"{prefix.name}{TOOLCHAIN}")


def file_toolchain(installed: Installed) -> Toolchain:
    """What the server's program says, read once and kept beside the tree; empty for a tree without a server."""
    return _record(installed)["files"]


def asked_toolchain(installed: Installed) -> Toolchain | None:
    """What the running server said of itself on this machine; None when it was never asked."""
    return _record(installed).get("asked")


def keep_asked(installed: Installed, asked: Toolchain) -> None:
    """Keep what the running server said."""
    _write(installed.prefix, _record(installed) | {"asked": asked})


def kept_toolchain(prefix: Path) -> Toolchain:
    """What is kept of the tree at `prefix`, which is not looked at: its files, and what its server was asked."""
    record = _kept(prefix) or {}
    known = record.get("files", {}) | record.get("asked", {})
    return {name: known[name] for name in sorted(known) if known[name] and name != LOADER}


def _kept(prefix: Path) -> dict[str, Toolchain] | None:
    """The record beside a tree; None when it is missing, damaged or of another format."""
    try:
        record = _RECORD.validate_json(toolchain_path(prefix).read_bytes())
        return record if record["format"]["number"] == str(FORMAT) and "files" in record else None
    except (FileNotFoundError, ValidationError, KeyError):
        return None


def _record(installed: Installed) -> dict[str, Toolchain]:
    """What is kept of a release; what its files say is read anew where nothing is."""
    if record := _kept(installed.prefix):
        return record
    program = installed.find(*SERVERS)
    vendors = installed.release.build not in BUILT_HERE
    record = {
        "format": {"number": str(FORMAT)},
        "files": program_toolchain(program, debug_information=vendors) if program else {},
    }
    _write(installed.prefix, record)
    return record


def _write(prefix: Path, record: Mapping[str, Toolchain]) -> None:
    write_atomically(toolchain_path(prefix), json.dumps(record, indent=1, sort_keys=True))


def program_toolchain(program: Path, *, debug_information: bool = True) -> Toolchain:
    """What one ELF program says; empty when it is none, or cannot be read as one. That of a stranger goes without its
    debug information, which may be packed to any size."""
    try:
        with program.open("rb") as stream:
            elf = ELFFile(stream)
            facts = compiler_of(_strings(elf, ".comment"))
            if notes := elf.get_section_by_name(".note.gnu.build-id"):
                facts["build_id"] = str(next(notes.iter_notes())["n_desc"])
            if interpreter := _strings(elf, ".interp"):
                facts[LOADER] = interpreter[0]
            return facts | (_of_debug_information(elf, known=bool(facts.get("compiler"))) if debug_information else {})
    except Exception:  # noqa: BLE001 - a damaged file, or one that is no ELF, may fail anywhere in the parser
        return {}


def compiler_of(comments: Iterable[str]) -> Toolchain:
    """The compiler that left these strings.

    >>> compiler_of(["GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-16)", "GCC: (GNU) 7.3.1 20180303 (Red Hat 7.3.1-5)"])
    {'compiler': 'GCC', 'compiler_version': '7.3.1'}
    """
    text = list(comments)
    for name, pattern in _COMPILERS:
        versions = [match[1] for comment in text if (match := pattern.search(comment))]
        if versions:
            newest = max(versions, key=lambda version: [int(number) for number in version.split(".")])
            return {"compiler": name, "compiler_version": newest}
    return {}


def _strings(elf: ELFFile, section: str) -> list[str]:
    found = elf.get_section_by_name(section)
    if found is None or found.compressed:
        return []
    return [text.decode() for text in found.data().split(b"\0") if text]


def _of_debug_information(elf: ELFFile, known: bool) -> Toolchain:
    """The flags of most units, and the compiler where nothing else names it."""
    if elf.stream_len > MOST_BYTES or not elf.has_dwarf_info(strict=True):
        return {}
    producers = _producers(elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False))
    if not producers:
        return {}
    most = max(sorted(producers), key=producers.__getitem__)
    flags = _FLAGS.search(most)
    compiler = {} if known else compiler_of([most])
    return compiler | ({"flags": " ".join(dict.fromkeys(flags[1].split()))} if flags else {})


def _producers(debug: DWARFInfo) -> Counter[str]:
    """How many of the first UNITS each compiler and its flags made."""
    producers: Counter[str] = Counter()
    for unit in islice(debug.iter_CUs(), UNITS):
        if (attribute := unit.get_top_DIE().attributes.get("DW_AT_producer")) is not None:
            producers[attribute.value.decode()] += 1
    return producers
