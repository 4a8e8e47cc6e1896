"""What a host is and how it is set: the facts whose change begins a new epoch.

Only facts that stay the same while nobody touches the machine: a fact that drifts by itself would cut every series.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from history.model import METHOD, Fingerprint
from runners.doctor import Facts, probe
from runners.instructions.counted_cpu import counted_cpu, host_flags

GIB = 1024**3


def host_fingerprint(state: Path, workload: Mapping[str, Any], *, counted: bool = False) -> Fingerprint:
    """The fingerprint of this host while it runs `workload`, any JSON: scale, durations, scripts.

    `state` is where the data will be; the storage below it is part of the fingerprint. Where instructions are
    `counted`, so is the CPU that the server sees, which a timed server sees as it is.
    """
    host = _host_facts(state) | ({"counted_cpu": counted_cpu(host_flags())} if counted else {})
    return fingerprint_of(probe(state, window_s=0.0), host, workload)


def fingerprint_of(facts: Facts, host: Mapping[str, str | None], workload: Mapping[str, Any]) -> Fingerprint:
    """Pure part: facts that are not known are left out.

    >>> fingerprint_of(Facts(turbo=True), {"kernel": "6.1"}, {"rows": 5}).facts
    {'kernel': '6.1', 'method': '2', 'turbo': 'on', 'virtualization': 'none', 'workload': 'de225b3a2237fb82'}
    """
    named: dict[str, object] = {
        "cpu_model": facts.cpu_model,
        "cores": facts.cpus,
        "smt": facts.smt,
        "governor": ",".join(facts.governors),
        "turbo": None if facts.turbo is None else ("on" if facts.turbo else "off"),
        "thp": facts.thp,
        "aslr": facts.aslr,
        "numa_nodes": facts.numa_nodes,
        "memory_gib": None if facts.memory_total is None else round(facts.memory_total / GIB),
        "filesystem": facts.filesystem,
        "virtualization": facts.virtual or "none",
        "clocksource": facts.clocksource,
        "sysbench": facts.tools.get("sysbench"),
        "valgrind": facts.tools.get("valgrind"),
        "workload": workload_digest(workload),
        "method": METHOD,
        **host,
    }
    return Fingerprint(facts={name: str(fact) for name, fact in sorted(named.items()) if fact not in (None, "")})


def workload_digest(workload: Mapping[str, Any]) -> str:
    """First 16 hex digits of the sha256 over the workload as sorted JSON."""
    return hashlib.sha256(json.dumps(workload, sort_keys=True).encode()).hexdigest()[:16]


def _host_facts(state: Path) -> dict[str, str | None]:
    """What `doctor` does not judge but a new epoch follows."""
    libc, version = platform.libc_ver()
    return {
        "kernel": platform.release(),
        "os": _os_name(),
        "libc": f"{libc} {version}".strip() or None,
        "storage": _storage(state),
        "client_library": _client_library(),
    }


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return None


def _storage(state: Path) -> str | None:
    """Model of the device that holds `state`, else its kernel name, and its size."""
    existing = next(parent for parent in (state, *state.parents) if parent.exists())
    number = existing.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not device.exists():
        return None
    device = device.resolve()
    whole = device.parent if (device / "partition").exists() else device
    model = whole / "device" / "model"
    name = model.read_text().strip() if model.exists() else whole.name
    size = whole / "size"
    return f"{name} {int(size.read_text()) * 512 // GIB} GiB" if size.exists() else name


def _client_library() -> str | None:
    """The versions of the libraries sysbench talks through, as the loader's file names tell them."""
    names = {path.name for pattern in ("libpq.so.*.*", "libm*client.so.*.*", "libmariadb.so.*")
             for path in Path("/usr/lib").glob(f"*-linux-gnu/{pattern}")}  # fmt: skip
    return " ".join(sorted(names)) or None
