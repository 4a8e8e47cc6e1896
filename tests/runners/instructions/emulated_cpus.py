"""Valgrind with another emulated CPU, so that one host shows what a server counts on others.

Valgrind answers CPUID from constants, those of a Haswell on every host with AVX2 (amd64g_dirtyhelper_CPUID_avx2 in
VEX/priv/guest_amd64_helpers.c). Here they are replaced in a copy of the tool; VALGRIND_LIB makes valgrind use the copy.
A server sees the CPU whether it asks through its C library or by itself.
"""

from __future__ import annotations

import struct
from pathlib import Path

LIBRARIES = (Path("/usr/libexec/valgrind"), Path("/usr/lib/x86_64-linux-gnu/valgrind"), Path("/usr/lib/valgrind"))
TOOL = "callgrind-amd64-linux"
#: The words of leaf 1 (EAX: the model; ECX) and of leaf 7 (EBX).
MODEL, FEATURES, MORE_FEATURES = 0x000306C3, 0x1FFAFBFF, 0x000027AA
SSE3, SSSE3, FMA, SSE4_1, SSE4_2, MOVBE, POPCNT, AES, XSAVE, OSXSAVE, AVX = (
    1 << bit for bit in (0, 9, 12, 19, 20, 22, 23, 25, 26, 27, 28)
)
PCLMUL = 1 << 1
_BEFORE_AVX = FEATURES & ~(FMA | MOVBE | XSAVE | OSXSAVE | AVX)
CPUS = {
    "haswell": {},
    # No AVX, AVX2, BMI, ERMS: 2010.
    "westmere": {MODEL: 0x20652, FEATURES: _BEFORE_AVX, MORE_FEATURES: 0},
    # No SSE4 and POPCNT either: 2006.
    "core2": {
        MODEL: 0x006F6,
        FEATURES: _BEFORE_AVX & ~(SSE4_1 | SSE4_2 | POPCNT | AES | PCLMUL),
        MORE_FEATURES: 0,
    },
}


def valgrind_with(cpu: str, folder: Path) -> Path:
    """A folder for VALGRIND_LIB in `folder`, whose path is as long for every CPU: a longer environment moves the stack
    of the server, and what compares strings there counts otherwise."""
    library = next(path for path in LIBRARIES if (path / TOOL).exists())
    copy = folder / str(list(CPUS).index(cpu))
    copy.mkdir()
    for path in library.iterdir():
        if path.name != TOOL:
            (copy / path.name).symlink_to(path)
    tool = (library / TOOL).read_bytes()
    for old, new in CPUS[cpu].items():
        assert tool.count(struct.pack("<I", old)) == 1, f"this valgrind has no CPU of its own with {old:#x}"
        tool = tool.replace(struct.pack("<I", old), struct.pack("<I", new))
    (copy / TOOL).write_bytes(tool)
    (copy / TOOL).chmod(0o755)
    return copy
