"""Judges a machine: facts in, checks out, no I/O.

Each check says what was found, why it matters, what it costs if ignored, and the commands that mend it (for a person
to run; `pointdrop doctor --fix` prints them). The costs are orders of size for low-concurrency, cached benchmarks, not
measurements of this machine: the A/A panel of the reports has those.

>>> [c.name for c in examine(Facts(governors=("powersave",), turbo=True)) if c.status == "warn"][:2]
['governor', 'turbo']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from runners.doctor.facts import Facts

Status = Literal["ok", "warn", "fail", "unknown"]

GIB = 1024**3
STEAL_LIMIT = 0.01
"""Share of CPU time taken by other guests above which a second of measurement is not to be trusted."""
BUSY_LIMIT = 0.10
"""Share of CPU time in use by others while nothing of ours runs."""
TEMPERATURE_LIMIT_C = 85.0
MEMORY_NEEDED = 2 * GIB
DISK_NEEDED = 20 * GIB


@dataclass(frozen=True)
class Check:
    """One judged fact. `fix` holds shell commands, empty when there is nothing to mend or no command can."""

    name: str
    status: Status
    found: str
    why: str
    cost: str
    fix: tuple[str, ...] = ()


_Judge = Callable[[Facts], tuple[Status, str]]


def _is(value: object, good: bool | None, text: str | None = None, *, bad: Status = "warn") -> tuple[Status, str]:
    if value is None or good is None:
        return "unknown", "this machine does not tell"
    return ("ok" if good else bad), text if text is not None else str(value)


def _share(value: float | None, limit: float) -> tuple[Status, str]:
    return _is(value, value is not None and value <= limit, f"{100 * (value or 0):.1f} %")


def _size(value: int | None, needed: int, bad: Status) -> tuple[Status, str]:
    return _is(value, value is not None and value >= needed, f"{(value or 0) / GIB:.1f} GiB", bad=bad)


def _governor(facts: Facts) -> tuple[Status, str]:
    if not facts.governors:
        return "unknown", "no frequency scaling is visible (a virtual machine, or a fixed clock)"
    return _is(facts.governors, facts.governors == ("performance",), ", ".join(facts.governors))


def _numa(facts: Facts) -> tuple[Status, str]:
    good = facts.numa_nodes == 1 or not facts.numa_balancing
    return _is(facts.numa_nodes, good, f"{facts.numa_nodes} node(s), balancing {facts.numa_balancing or 0}")


def _temperature(facts: Facts) -> tuple[Status, str]:
    hot = facts.temperature_c
    return _is(hot, hot is not None and hot < TEMPERATURE_LIMIT_C, f"{hot:.0f} degrees C" if hot else "")


def _perf(facts: Facts) -> tuple[Status, str]:
    if facts.tools.get("perf") is None:
        return "warn", "perf is not installed"
    if facts.perf_counters:
        return "ok", "perf stat counts instructions"
    return "warn", f"no hardware counters here (perf_event_paranoid {facts.perf_paranoid})"


def _user(facts: Facts) -> tuple[Status, str]:
    if not facts.root:
        return "ok", "not root: servers run as this account"
    return _is(
        facts.unprivileged_user or "",
        bool(facts.unprivileged_user),
        f"root; servers run as {facts.unprivileged_user}",
        bad="fail",
    )


def _tool(name: str, status: Status) -> _Judge:
    def judge(facts: Facts) -> tuple[Status, str]:
        version = facts.tools.get(name)
        return ("ok", version) if version else (status, "not installed")

    return judge


#: name, judge, why, cost if ignored, and commands that mend it where there are any
_CHECKS: tuple[tuple[str, _Judge, str, str] | tuple[str, _Judge, str, str, tuple[str, ...]], ...] = (
    (
        "canary",
        lambda f: ("fail", f.quarantine) if f.quarantine else ("ok", "not in quarantine"),
        "A host that no longer takes as long as it used to for fixed work is another machine.",
        "a step in every series of this host",
        ("pointdrop doctor --clear   # accepts the machine as it is now",),
    ),
    (
        "governor",
        _governor,
        "A governor that follows the load changes the clock between tests.",
        "5-30 % on short tests",
        ("cpupower frequency-set -g performance",),
    ),
    (
        "turbo",
        lambda f: _is(f.turbo, not f.turbo, "on" if f.turbo else "off"),
        "Turbo depends on temperature and on how many cores are busy, so the first test of a block is faster.",
        "2-15 %, and it drifts with the room's temperature",
        (
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo   # Intel",
            "echo 0 > /sys/devices/system/cpu/cpufreq/boost   # AMD",
        ),
    ),
    (
        "smt",
        lambda f: _is(f.smt, f.smt in ("off", "forceoff", "notsupported", "notimplemented")),
        "With SMT on, who shares a core with the server is a matter of luck.",
        "3-20 % between repeats",
        ("echo off > /sys/devices/system/cpu/smt/control",),
    ),
    (
        "thp",
        lambda f: _is(f.thp, f.thp in ("never", "madvise")),
        "Transparent huge pages depend on how fragmented memory is, which depends on what ran before.",
        "1-10 %, and latency spikes from compaction",
        ("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",),
    ),
    (
        "swap",
        lambda f: _is(f.swap_total, f.swap_total == 0, f"{(f.swap_total or 0) / GIB:.1f} GiB"),
        "A buffer pool that is swapped out turns a CPU benchmark into a storage benchmark.",
        "any amount, once memory is short",
        ("swapoff -a",),
    ),
    (
        "aslr",
        lambda f: _is(f.aslr, f.aslr is not None, f"randomize_va_space {f.aslr}"),
        "Address layout changes cache and branch behaviour from start to start. Leave it on: several server starts "
        "average over layouts, one fixed layout would make its luck a permanent bias.",
        "0.5-3 % between starts, which blocks average out",
    ),
    (
        "numa",
        _numa,
        "Automatic NUMA balancing moves memory while a test runs.",
        "5-30 % on machines with two sockets",
        ("sysctl -w kernel.numa_balancing=0",),
    ),
    (
        "steal",
        lambda f: _share(f.steal, STEAL_LIMIT),
        "Time that the hypervisor gave to other guests is missing from every measurement.",
        "as much as was stolen; blocks above the limit are marked noisy and repeated",
    ),
    (
        "foreign load",
        lambda f: _share(f.busy, BUSY_LIMIT),
        "Whatever else runs here takes CPU, cache and storage from the server.",
        "as much as it takes; blocks above the limit are marked noisy and repeated",
        ("systemctl list-timers   # move apt-daily, backups, indexers out of the night",),
    ),
    (
        "throttling",
        lambda f: _is(f.throttle_events, f.throttle_events == 0, f"{f.throttle_events} throttle events since boot"),
        "A CPU that throttles is slower in the second half of a session than in the first.",
        "10-50 % while it lasts",
    ),
    ("temperature", _temperature, "Hot CPUs throttle soon.", "as throttling"),
    (
        "memory",
        lambda f: _size(f.memory_available, MEMORY_NEEDED, "fail"),
        "The server's buffer pool, the data in the page cache and the client must fit together.",
        "servers that do not start, or a machine that swaps",
    ),
    (
        "disk",
        lambda f: _size(f.disk_free, DISK_NEEDED, "warn"),  # a session weighs its own plan
        "Prepared data, one copy a block, and the release cache stand below the state directory.",
        "the session stops before the load when the plan does not fit",
        ("pointdrop releases prune --keep 10GiB   # removes what was not used for longest",),
    ),
    (
        "file system",
        lambda f: _is(f.filesystem, f.filesystem in ("xfs", "ext4", "btrfs", "zfs"), f.filesystem),
        "Overlay and network file systems add their own noise; xfs and btrfs copy prepared data by reference.",
        "seconds to minutes a block for the copy, and write latency",
    ),
    (
        "hardware counters",
        _perf,
        "With counters, instructions and cache misses per operation come for free in the time lane.",
        "without them only the instructions lane counts instructions (about 50 times slower a query)",
        ("sysctl -w kernel.perf_event_paranoid=1", "apt-get install linux-perf"),
    ),
    (
        "valgrind",
        _tool("valgrind", "fail"),
        "The instructions lane runs the server under callgrind.",
        "no instructions lane",
        ("apt-get install valgrind",),
    ),
    (
        "ptrace",
        lambda f: _is(
            0 if f.ptrace_scope is None else f.ptrace_scope, (f.ptrace_scope or 0) <= 1, f"scope {f.ptrace_scope or 0}"
        ),
        "vgdb wakes a server that waits for its client with ptrace.",
        "the instructions lane hangs at scope 2 and 3",
        ("sysctl -w kernel.yama.ptrace_scope=1",),
    ),
    (
        "sysbench",
        _tool("sysbench", "fail"),
        "sysbench drives every microbenchmark.",
        "nothing runs",
        ("apt-get install sysbench",),
    ),
    (
        "bubblewrap",
        _tool("bwrap", "warn"),
        "Builds and servers of a patch run in a sandbox.",
        "patches of strangers are refused",
        ("apt-get install bubblewrap",),
    ),
    (
        "user namespaces",
        lambda f: _is(f.userns, f.userns, "allowed to plain accounts" if f.userns else "forbidden to plain accounts"),
        "bubblewrap makes its sandbox of them.",
        "patches of strangers are refused",
        ("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   # Ubuntu; keep it in /etc/sysctl.d",),
    ),
    (
        "user",
        _user,
        "DBMS servers refuse to run as root, and must not.",
        "nothing runs",
        ("useradd --system --shell /usr/sbin/nologin pointdrop",),
    ),
    (
        "clock source",
        lambda f: _is(f.clocksource, f.clocksource in ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource")),
        "A slow clock source (acpi_pm, hpet) makes every timestamp a system call.",
        "5-50 % on point queries of servers that time their waits",
        ("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",),
    ),
    (
        "clock",
        lambda f: _is(
            f.clock_synchronised, f.clock_synchronised, "synchronised" if f.clock_synchronised else "free-running"
        ),
        "Sessions of several hosts are put in order by time.",
        "rows in the wrong order when hosts disagree by minutes",
        ("timedatectl set-ntp true",),
    ),
    (
        "virtual machine",
        lambda f: ("warn", f.virtual) if f.virtual else ("ok", "no hypervisor"),
        "A virtual machine shares cores, cache and storage with strangers.",
        "2-5 % on a quiet one, a factor of 4 on a busy one; the instructions lane does not care",
    ),
)


def examine(facts: Facts) -> list[Check]:
    """All checks in a fixed order; `fix` is given only where something is to be mended."""
    checks = []
    for name, judge, why, cost, *fixes in _CHECKS:
        status, finding = judge(facts)
        checks.append(Check(name, status, finding, why, cost, *(fixes if status in ("warn", "fail") else ())))
    return checks
