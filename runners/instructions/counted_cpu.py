"""The CPU that a counted server sees: the same on every x86-64 host, as far as valgrind and the C library let us.

Instructions depend on the CPU where a program asks which one it is and takes another function for it. Two things stand
between the host and a counted server:

* Valgrind answers CPUID itself. Every host with AVX2, whoever made it, is the same Haswell to the server, without
  AVX-512 or any later feature; older hosts are one of a few older CPUs. Which one follows from `PASSED_ON`.
* Libraries choose by what they make of that: glibc memcpy, strlen and some hundred more, OpenSSL its digests, which
  MySQL makes of statements. What both read from the environment leaves them nothing to choose by: they take the
  functions for SSE2, which every x86-64 CPU has.

What is left is a DBMS that asks the CPU by itself (docs/measuring.md names the functions), and another C library. Both
are facts of the fingerprint, so that such counts join only through the control.

>>> {name: value[:50] for name, value in pins("x86_64").items()}
{'GLIBC_TUNABLES': 'glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX', 'OPENSSL_ia32cap': '0:0'}
>>> pins("aarch64")
{}
>>> counted_cpu({"sse2", "pni", "ssse3", "cx16", "avx", "avx2", "avx512f"}, "x86_64")
'valgrind avx avx2 cx16 pni ssse3, pins 36d7cc73'
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Collection
from pathlib import Path

#: What the functions of glibc 2.33 to 2.43 are chosen by: features of the CPU, then what glibc prefers on its model.
#: A glibc that does not know a name passes over it. Names were others before 2.33, which no supported system has.
MASKED = (
    "AVX512F", "AVX512VL", "AVX512BW", "AVX2", "AVX", "FMA", "FMA4", "F16C", "BMI1", "BMI2", "LZCNT", "MOVBE",
    "POPCNT", "SSE3", "SSSE3", "SSE4_1", "SSE4_2", "ERMS", "FSRM", "RTM", "XSAVE", "XSAVEC", "OSXSAVE",
    "AVX_Fast_Unaligned_Load", "Avoid_STOSB", "Avoid_Short_Distance_REP_MOVSB", "Fast_Copy_Backward",
    "Fast_Rep_String", "Fast_Unaligned_Copy", "Fast_Unaligned_Load", "Prefer_ERMS", "Prefer_FSRM",
    "Prefer_No_VZEROUPPER", "Prefer_PMINUB_for_stringop", "Slow_BSF", "Slow_SSE4_2",
)  # fmt: skip
#: Bytes from which memcpy and memset work in another way; glibc derives them from the caches of the CPU. A repeated
#: instruction, which valgrind counts once for each byte, is for no size: what it takes over ends where it would begin.
SIZES = {
    "x86_data_cache_size": 0x8000,
    "x86_shared_cache_size": 0x100000,
    "x86_non_temporal_threshold": 0xC0000,
    "x86_memset_non_temporal_threshold": 0xC0000,
    "x86_rep_movsb_threshold": 0xC0000,
    "x86_rep_stosb_threshold": 0xC0000,
}
#: What valgrind chooses the emulated CPU by, and what it lets through to it, as /proc/cpuinfo calls it.
PASSED_ON = ("avx", "avx2", "cx16", "f16c", "pni", "rdrand", "rdseed", "ssse3")


def pins(machine: str | None = None) -> dict[str, str]:
    """Variables for the environment of a counted server. None where the machine is no x86-64: counts of other
    architectures are whatever their libraries choose."""
    if (machine or platform.machine()) != "x86_64":
        return {}
    hwcaps = "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in MASKED)
    tunables = ":".join([hwcaps, *(f"glibc.cpu.{name}={size:#x}" for name, size in SIZES.items())])
    return {"GLIBC_TUNABLES": tunables, "OPENSSL_ia32cap": "0:0"}


def counted_cpu(flags: Collection[str], machine: str | None = None) -> str:
    """The fact of the fingerprint: which CPU valgrind emulates on a host with these flags, and what libraries make of
    it."""
    emulated = " ".join(name for name in PASSED_ON if name in flags) or "baseline"
    digest = hashlib.sha256(json.dumps(pins(machine), sort_keys=True).encode()).hexdigest()[:8]
    return f"valgrind {emulated}, {f'pins {digest}' if pins(machine) else 'as libraries choose'}"


def host_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Features of this host's CPU, as Linux names them; empty where it names none."""
    for line in cpuinfo.read_text().splitlines():
        name, _, flags = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(flags.split())
    return frozenset()
