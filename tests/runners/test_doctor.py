"""The machine check: facts from a file tree, judgements from facts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pointdrop.cli.main import app
from runners.doctor import Facts, examine, probe


def status(facts: Facts) -> dict[str, str]:
    return {check.name: check.status for check in examine(facts)}


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files of a small AMD desktop with everything set wrong."""
    root = tmp_path / "root"
    write(root, "proc/stat", "cpu  100 0 50 800 10 0 0 0 0 0\n")
    write(root, "proc/meminfo", "MemTotal: 32000000 kB\nMemAvailable: 30000000 kB\nSwapTotal: 2097152 kB\n")
    write(root, "proc/cpuinfo", "model name\t: AMD Ryzen 7 7840HS\nflags\t\t: fpu tsc\n")
    write(root, "proc/mounts", "/dev/nvme0n1p1 / ext4 rw 0 0\n")
    write(root, "proc/sys/kernel/randomize_va_space", "2\n")
    write(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    write(root, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n")
    write(root, "sys/devices/system/cpu/cpufreq/boost", "1\n")
    write(root, "sys/devices/system/cpu/smt/control", "on\n")
    write(root, "sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n")
    return root


def test_a_tree_is_read_into_facts(tree: Path, tmp_path: Path) -> None:
    facts = probe(tmp_path, tree, window_s=0)
    assert facts.governors == ("performance", "powersave")
    assert facts.turbo is True
    assert facts.smt == "on"
    assert facts.thp == "always"
    assert facts.swap_total == 2 * 1024**3
    assert facts.filesystem == "ext4"
    assert facts.virtual is None
    assert facts.cpu_model == "AMD Ryzen 7 7840HS"
    statuses = status(facts)
    assert [name for name in ("governor", "turbo", "smt", "thp", "swap") if statuses[name] != "warn"] == []
    assert statuses["aslr"] == "ok"


def test_a_file_that_gives_an_error_is_a_fact_that_is_not_told(tree: Path, tmp_path: Path) -> None:
    """As the sensor of a wireless card that is off does (ENODATA), and the governor of a CPU that is off (EBUSY)."""
    write(tree, "sys/class/thermal/thermal_zone0/temp", "45000\n")
    write(tree, "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n")
    for path in (
        "sys/class/thermal/thermal_zone1/temp",
        "sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count",
        "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
    ):
        (tree / path).mkdir(parents=True)  # reading a folder is an error, too
    facts = probe(tmp_path, tree, window_s=0)
    assert (facts.temperature_c, facts.throttle_events) == (45.0, 3)
    assert facts.governors == ("performance", "powersave")


def test_what_the_machine_does_not_tell_is_unknown_and_never_a_pass(tmp_path: Path) -> None:
    empty = tmp_path / "nothing"
    empty.mkdir()
    statuses = status(replace(probe(tmp_path, empty, window_s=0), tools={}))
    for name in ("governor", "turbo", "smt", "thp", "swap", "steal", "foreign load", "temperature", "clock source"):
        assert statuses[name] == "unknown", name
    assert statuses["valgrind"] == "fail"


@pytest.mark.parametrize(
    ("facts", "name", "expected"),
    [
        (Facts(steal=0.009), "steal", "ok"),
        (Facts(steal=0.02), "steal", "warn"),
        (Facts(governors=("performance",)), "governor", "ok"),
        (Facts(turbo=False), "turbo", "ok"),
        (Facts(ptrace_scope=2), "ptrace", "warn"),
        (Facts(root=True), "user", "fail"),
        (Facts(root=True, unprivileged_user="nobody"), "user", "ok"),
        (Facts(memory_available=1024**3), "memory", "fail"),
        (Facts(disk_free=10 * 1024**3), "disk", "warn"),
        (Facts(numa_nodes=2, numa_balancing=1), "numa", "warn"),
        (Facts(numa_nodes=2, numa_balancing=0), "numa", "ok"),
        (Facts(virtual="QEMU"), "virtual machine", "warn"),
    ],
)
def test_judgements(facts: Facts, name: str, expected: str) -> None:
    assert status(facts)[name] == expected


def test_every_check_says_why_and_what_it_costs_and_only_bad_ones_offer_commands() -> None:
    for check in examine(Facts(governors=("powersave",), turbo=True, thp="always")):
        assert check.why.endswith("."), check.name
        assert check.cost and not check.cost.endswith("."), check.name
        assert not check.fix or check.status in ("warn", "fail")


def test_the_command_answers_for_programs_and_prints_fixes_without_running_them() -> None:
    done = CliRunner().invoke(app, ["doctor", "--format", "json"])
    checks = json.loads(done.stdout)
    assert {check["name"] for check in checks} >= {"governor", "steal", "valgrind", "sysbench", "user"}
    assert done.exit_code == (4 if any(check["status"] == "fail" for check in checks) else 0)


@pytest.mark.parametrize(
    ("files", "status_of"),
    [
        ({}, "unknown"),
        ({"user/max_user_namespaces": "1000"}, "ok"),
        ({"user/max_user_namespaces": "0"}, "warn"),
        ({"user/max_user_namespaces": "1000", "kernel/apparmor_restrict_unprivileged_userns": "1"}, "warn"),
        ({"user/max_user_namespaces": "1000", "kernel/unprivileged_userns_clone": "0"}, "warn"),
    ],
)
def test_a_machine_that_forbids_sandboxes_says_so(
    tree: Path, tmp_path: Path, files: dict[str, str], status_of: str
) -> None:
    for name, text in files.items():
        write(tree, f"proc/sys/{name}", text)
    assert status(probe(tmp_path, tree, window_s=0))["user namespaces"] == status_of
