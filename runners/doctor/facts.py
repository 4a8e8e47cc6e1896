"""Reads what `pointdrop doctor` judges: /proc, /sys and the tools on PATH. Reads only.

Every fact that this machine does not tell is None, so that a check can say "not known here" instead of guessing.
`root` is `/` on a real machine; the tests point it at a copied tree.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from runners.canary import Canary
from runners.meters.perf import INSTRUCTIONS, supported_events

STEAL_WINDOW_S = 1.0
TOOL_TIMEOUT_S = 20
TOOLS = {
    "sysbench": ("sysbench", "--version"),
    "valgrind": ("valgrind", "--version"),
    "perf": ("perf", "--version"),
    "bwrap": ("bwrap", "--version"),
}


@dataclass(frozen=True)
class Facts:
    """What was read. Sizes in bytes, times in seconds, shares from 0 to 1."""

    cpus: int | None = None
    cpu_model: str | None = None
    governors: tuple[str, ...] = ()
    turbo: bool | None = None
    smt: str | None = None
    thp: str | None = None
    aslr: int | None = None
    numa_nodes: int | None = None
    numa_balancing: int | None = None
    steal: float | None = None
    busy: float | None = None
    throttle_events: int | None = None
    temperature_c: float | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    swap_total: int | None = None
    disk_free: int | None = None
    filesystem: str | None = None
    perf_paranoid: int | None = None
    perf_counters: bool = False
    """Whether `perf stat` counts instructions."""
    ptrace_scope: int | None = None
    userns: bool | None = None
    """Whether plain accounts may make user namespaces."""
    clocksource: str | None = None
    clock_synchronised: bool | None = None
    virtual: str | None = None
    root: bool = False
    unprivileged_user: str | None = None
    quarantine: str | None = None
    """Why the canary keeps this host from measuring."""
    tools: dict[str, str | None] = field(default_factory=dict)
    """First line of `TOOL --version`, or None when the tool is missing."""


class _Tree:
    """Small reads below one root; a file that is absent or unreadable is None."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def text(self, path: str) -> str | None:
        try:
            return (self.root / path).read_text().strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        text = self.text(path)
        return int(text) if text is not None and re.fullmatch(r"-?\d+", text) else None

    def chosen(self, path: str) -> str | None:
        """The word in brackets of `always [madvise] never`."""
        text = self.text(path)
        bracketed = re.search(r"\[(\w+)\]", text or "")
        return bracketed.group(1) if bracketed else None

    def glob(self, pattern: str) -> list[Path]:
        return sorted(self.root.glob(pattern))

    def texts(self, pattern: str) -> list[str]:
        """What the files hold that can be read: a sensor that sleeps, or a CPU that is off, gives an error."""
        return [text for path in self.glob(pattern) if (text := self.text(str(path.relative_to(self.root))))]

    def numbers(self, pattern: str) -> list[int]:
        return [int(text) for text in self.texts(pattern) if re.fullmatch(r"-?\d+", text)]


def _turbo(tree: _Tree) -> bool | None:
    no_turbo = tree.number("sys/devices/system/cpu/intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == 0
    boost = tree.number("sys/devices/system/cpu/cpufreq/boost")
    return None if boost is None else boost == 1


def _memory(tree: _Tree) -> dict[str, int]:
    rows = re.findall(r"^(\w+):\s+(\d+) kB", tree.text("proc/meminfo") or "", re.MULTILINE)
    return {name: int(kib) * 1024 for name, kib in rows}


def _cpu_ticks(tree: _Tree) -> tuple[int, int, int] | None:
    """(all, idle, steal) ticks since boot; man proc_stat names the fields."""
    line = (tree.text("proc/stat") or "").split("\n", 1)[0].split()
    if len(line) < 9:
        return None
    ticks = [int(field) for field in line[1:]]
    return sum(ticks[:8]), ticks[3] + ticks[4], ticks[7]


def _load(tree: _Tree, window_s: float) -> tuple[float | None, float | None]:
    """(steal, busy) shares of all CPUs over the window."""
    first = _cpu_ticks(tree)
    time.sleep(window_s)
    second = _cpu_ticks(tree)
    if first is None or second is None or second[0] <= first[0]:
        return None, None
    total = second[0] - first[0]
    return (second[2] - first[2]) / total, 1 - (second[1] - first[1]) / total


def _tool_versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {}
    for tool, command in TOOLS.items():
        if shutil.which(command[0]) is None:
            versions[tool] = None
            continue
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
        lines = (done.stdout or done.stderr).strip().splitlines()
        versions[tool] = lines[0] if lines else "present"
    return versions


def _filesystem(tree: _Tree, path: Path) -> str | None:
    """Type of the file system that holds `path`: the longest mount point that is a parent of it."""
    best: tuple[str, str | None] = ("", None)
    for line in (tree.text("proc/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) > 2 and path.is_relative_to(fields[1]) and len(fields[1]) >= len(best[0]):
            best = (fields[1], fields[2])
    return best[1]


def _virtual(tree: _Tree) -> str | None:
    if " hypervisor" in (tree.text("proc/cpuinfo") or ""):
        return tree.text("sys/class/dmi/id/sys_vendor") or "hypervisor"
    return None


def _userns(tree: _Tree) -> bool | None:
    """Ubuntu has AppArmor forbid them, Debian once had a switch of its own, and any kernel may allow none."""
    if tree.number("proc/sys/user/max_user_namespaces") is None:
        return None
    return (
        tree.number("proc/sys/user/max_user_namespaces") != 0
        and tree.number("proc/sys/kernel/unprivileged_userns_clone") != 0
        and tree.number("proc/sys/kernel/apparmor_restrict_unprivileged_userns") != 1
    )


def _unprivileged_user() -> str | None:
    import pwd

    for name in ("pointdrop", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


def _clock_synchronised() -> bool | None:
    if shutil.which("timedatectl") is None:
        return None
    command = ("timedatectl", "show", "--property=NTPSynchronized", "--value")
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
    return {"yes": True, "no": False}.get(done.stdout.strip()) if done.returncode == 0 else None


def probe(state: Path, root: Path = Path("/"), window_s: float = STEAL_WINDOW_S) -> Facts:
    """Facts of the machine whose file tree is at `root`; `state` is where data directories will stand.

    Takes `window_s` seconds, during which steal and foreign load are watched.
    """
    tree = _Tree(root)
    memory = _memory(tree)
    steal, busy = _load(tree, window_s)
    temperatures = tree.numbers("sys/class/thermal/thermal_zone*/temp")
    throttles = tree.numbers("sys/devices/system/cpu/cpu*/thermal_throttle/*_count")
    model = re.search(r"^model name\s*:\s*(.+)$", tree.text("proc/cpuinfo") or "", re.MULTILINE)
    existing = next(parent for parent in (state, *state.parents) if parent.exists())
    disk = shutil.disk_usage(existing)
    return Facts(
        cpus=os.cpu_count(),
        cpu_model=model.group(1) if model else None,
        governors=tuple(sorted(set(tree.texts("sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")))),
        turbo=_turbo(tree),
        smt=tree.text("sys/devices/system/cpu/smt/control"),
        thp=tree.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
        aslr=tree.number("proc/sys/kernel/randomize_va_space"),
        numa_nodes=len(tree.glob("sys/devices/system/node/node[0-9]*")) or None,
        numa_balancing=tree.number("proc/sys/kernel/numa_balancing"),
        steal=steal,
        busy=busy,
        throttle_events=sum(throttles) if throttles else None,
        temperature_c=max(temperatures) / 1000 if temperatures else None,
        memory_total=memory.get("MemTotal"),
        memory_available=memory.get("MemAvailable"),
        swap_total=memory.get("SwapTotal"),
        disk_free=disk.free,
        filesystem=_filesystem(tree, existing.resolve()),
        perf_paranoid=tree.number("proc/sys/kernel/perf_event_paranoid"),
        perf_counters=INSTRUCTIONS in supported_events(),
        ptrace_scope=tree.number("proc/sys/kernel/yama/ptrace_scope"),
        userns=_userns(tree),
        clocksource=tree.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_synchronised=_clock_synchronised(),
        virtual=_virtual(tree),
        root=os.geteuid() == 0,
        unprivileged_user=_unprivileged_user(),
        quarantine=str(quarantine) if (quarantine := Canary(state).quarantine()) else None,
        tools=_tool_versions(),
    )
