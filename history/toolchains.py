"""What a release was built with and links to, side by side for two releases. Pure.

A toolchain (`Run.toolchain`) is short strings by these names, each left out where the release does not say:

    builder           who built it: `Oracle`, `Debian`, `EnterpriseDB`, `zonky`, `Pointdrop` (here, from source), ...
    compiler          `GCC`, `Clang`;  compiler_version  `7.5.0`
    flags             of the compiler, as the build recorded them;  configure  the whole configure line
    libc, libstdc++   `glibc 2.36`, `6.0.30`: what the loader binds the server to on the host that measured
    allocator         `libc`, `libtcmalloc 4.5.16`;  openssl  `OpenSSL 1.1.1n`, or what is in its place;  icu  `60.2`
    assertions        `on` or `off`
    build_id          of the server's program
    comment, target   what the server says of its build, and the machine it was built for

>>> old = {"builder": "zonky", "compiler": "GCC", "compiler_version": "4.8.4", "flags": "-Wall -Os", "build_id": "a1"}
>>> new = {"builder": "zonky", "compiler": "GCC", "compiler_version": "7.5.0", "flags": "-Wundef -Os", "build_id": "b2"}
>>> changes = toolchain_changes(old, new)
>>> [(change.part, change.before, change.after) for change in changes]
[('compiler', 'GCC 4.8.4', 'GCC 7.5.0')]
>>> other_builder(changes), other_compiler(changes)
(False, True)
>>> toolchain_sentences(changes)
['Its builder changed the compiler: GCC 4.8.4 before, GCC 7.5.0 after.']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from history.model import ToolchainChange

#: Parts that are compared, in the order in which they are told. `build_id` differs always, `configure` says what the
#: others say with the directories of the machine that built, `comment` and `target` are in `builder`.
PARTS = ("builder", "compiler", "flags", "assertions", "libc", "libstdc++", "allocator", "openssl", "icu")
#: A change of these makes two builds incomparable: nobody ships one beside the other.
BUILD = frozenset({"builder", "assertions"})
COMPILER = frozenset({"compiler", "flags"})
#: Flags that change the code that is made; the others are warnings, debug information and places of files.
CODE_FLAGS = ("-O", "-m", "-f")
#: Without effect on the code of a server: how symbols are seen from outside, and diagnostics.
OTHER_FLAGS = ("-fvisibility", "-fdiagnostics", "-fmessage", "-fdebug", "-ffile-prefix-map", "-fmacro-prefix-map")
#: What was built here is the product of this machine's compiler and of a recipe, and of no vendor: with another
#: compiler it is another builder's.
HERE = "Pointdrop"
BUILT_WITH = ("builder", "compiler", "flags")


def toolchain_changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[ToolchainChange, ...]:
    """The PARTS that both sides name and that differ."""
    left, right = compared(before), compared(after)
    both = [part for part in PARTS if part in left and part in right and left[part] != right[part]]
    return tuple(ToolchainChange(part=part, before=left[part], after=right[part]) for part in both)


def compared(toolchain: Mapping[str, str]) -> dict[str, str]:
    """The PARTS of a toolchain: the compiler with its version, and of the flags those that change the code.

    >>> compared({"compiler": "GCC", "compiler_version": "4.4.7", "flags": "-Wall -O2 -g -DX=1 -fwrapv"})
    {'compiler': 'GCC 4.4.7', 'flags': '-O2 -fwrapv'}
    """
    parts = {part: toolchain[part] for part in PARTS if toolchain.get(part)}
    if "compiler" in parts:
        parts["compiler"] = f"{parts['compiler']} {toolchain.get('compiler_version', '')}".rstrip()
    if "flags" in parts:
        flags = [flag for flag in parts["flags"].split() if flag.startswith(CODE_FLAGS)]
        parts["flags"] = " ".join(sorted({flag for flag in flags if not flag.startswith(OTHER_FLAGS)}))
    if parts.get("builder") == HERE:
        parts["builder"] = ", ".join(parts[part] for part in BUILT_WITH if parts.get(part))
    return parts


def other_builder(changes: Iterable[ToolchainChange]) -> bool:
    """Whether the two sides are two builds that nobody ships one after the other: by two builders, with and without
    assertions, or both built here by two compilers."""
    return bool({change.part for change in changes} & BUILD)


def other_compiler(changes: Iterable[ToolchainChange]) -> bool:
    """Whether the compiler or its flags differ."""
    return bool({change.part for change in changes} & COMPILER)


def built_with(toolchain: Mapping[str, str]) -> str:
    """A toolchain in a few words, empty where nothing is known.

    >>> built_with({"builder": "EnterpriseDB", "compiler": "GCC", "compiler_version": "4.4.7", "flags": "-O2 -Wall"})
    'EnterpriseDB, GCC 4.4.7, -O2'
    """
    parts = compared(toolchain)
    if toolchain.get("builder") == HERE:
        return parts["builder"]
    return ", ".join(parts[part] for part in BUILT_WITH if parts.get(part))


def sides_in_words(changes: Iterable[ToolchainChange]) -> tuple[str, str]:
    """Both sides of a change, with no more than what differs.

    >>> old = {"builder": "EnterpriseDB", "compiler": "GCC", "compiler_version": "4.4.7", "flags": "-O2 -fwrapv"}
    >>> new = {"builder": "zonky", "compiler": "GCC", "compiler_version": "7.5.0", "flags": "-Os -fwrapv"}
    >>> sides_in_words(toolchain_changes(old, new))
    ('EnterpriseDB with GCC 4.4.7 and -O2', 'zonky with GCC 7.5.0 and -Os')
    """
    by_part = {change.part: (change.before, change.after) for change in changes}
    before, after = ({part: sides[at] for part, sides in by_part.items()} for at in (0, 1))
    return _in_words(before, after), _in_words(after, before)


def _in_words(side: Mapping[str, str], other: Mapping[str, str]) -> str:
    builder = side.get("builder", "")
    flags = [flag for flag in side.get("flags", "").split() if flag not in other.get("flags", "").split()]
    tools = [side.get("compiler", ""), " ".join(flags)] if not builder.startswith(HERE) else []
    tools.append({"on": "assertions", "off": "no assertions"}.get(side.get("assertions", ""), ""))
    return " with ".join(filter(None, (builder, " and ".join(filter(None, tools)))))


def toolchain_sentences(changes: Iterable[ToolchainChange]) -> list[str]:
    """What differs between the builds of the two sides, for people."""
    changes = list(changes)
    build = [change for change in changes if change.part in BUILD | COMPILER]
    before, after = (side or "otherwise" for side in sides_in_words(build))
    sentences = []
    if other_builder(build):
        sentences.append(f"The two sides are two builds: {before} before, {after} after.")
    elif build:
        sentences.append(f"Its builder changed the compiler: {before} before, {after} after.")
    libraries = [change for change in changes if change not in build]
    if libraries:
        named = "; ".join(f"{change.part} {change.before} before, {change.after} after" for change in libraries)
        sentences.append(f"Linked to other libraries: {named}.")
    return sentences
