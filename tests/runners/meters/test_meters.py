"""Meters: the kernel's files read right, costs an operation as the field defines them, and nothing invented."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from runners.meters.costs import foreign_noise, per_operation
from runners.meters.proc import Meter, block_device, cpu_clock_s, directory_bytes, process_tree
from runners.meters.sample import (
    Cpu,
    Disk,
    MeterSample,
    parse_disk,
    parse_reaped_cpu_s,
)

STAT = "cpu  1000 20 300 8000 100 5 15 60 0 0\ncpu0 1 2 3 4\nctxt 987654\nbtime 1\n"
DISKSTATS = (
    " 254       0 vda 100 5 4096 77 200 9 8192 88 0 99 165 0 0 0 0 40 12\n"
    "   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n"
    "   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n"
)
DISK = Disk(reads=100, read_bytes=0, writes=0, written_bytes=0, flushes=10, flush_ms=50)
FIRST = MeterSample(
    at_s=100.0, cpu=Cpu(busy_s=10.0, idle_s=90.0, steal_s=0.0), context_switches=1000, disk=DISK, server_cpu_s=5.0,
    client_cpu_s=1.0, harness_cpu_s=0.5, rss_bytes=1024**2,
)  # fmt: skip
LAST = MeterSample(
    at_s=110.0, cpu=Cpu(busy_s=20.0, idle_s=99.0, steal_s=1.0), context_switches=21_000,
    disk=Disk(reads=300, read_bytes=1024 * 4000, writes=50, written_bytes=1024 * 8000, flushes=30, flush_ms=150),
    server_cpu_s=11.0, client_cpu_s=3.0, harness_cpu_s=0.6, rss_bytes=3 * 1024**2,
)  # fmt: skip


def test_us_and_sy_are_busy_and_iowait_is_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stat").write_text(STAT)
    meter = Meter(os.getpid(), tmp_path)
    monkeypatch.setattr("psutil.PROCFS_PATH", str(tmp_path))
    sample = meter.read()
    assert sample.cpu is not None
    assert (sample.cpu.busy_s, sample.cpu.idle_s, sample.cpu.steal_s) == pytest.approx((13.4, 81.0, 0.6))
    assert sample.context_switches == 987_654


def test_disks_by_number_with_flushes_where_the_kernel_has_them() -> None:
    assert parse_disk(DISKSTATS, "254:0") == Disk(
        reads=100, read_bytes=4096 * 512, writes=200, written_bytes=8192 * 512, flushes=40, flush_ms=12
    )
    old = parse_disk(DISKSTATS, "8:1")
    assert old is not None
    assert (old.flushes, old.flush_ms) == (None, None)
    assert parse_disk(DISKSTATS, "25:0") is None


def test_reaped_children_are_read_past_a_name_with_parentheses() -> None:
    stat = "7 (post) gres) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 250 50 20 0 1 0"
    assert parse_reaped_cpu_s(stat, ticks_per_s=100) == 3.0


def test_costs_an_operation() -> None:
    costs = per_operation(FIRST, LAST, operations_per_s=1000.0)
    assert costs["cpu/o"] == pytest.approx(50.0 / 1000), "half the machine at a thousand a second"
    assert costs["cpu_us/o"] == pytest.approx(600.0)
    assert costs["cs/o"] == pytest.approx(2.0)
    assert costs["r/o"] == pytest.approx(0.02)
    assert costs["rKB/o"] == pytest.approx(0.4)
    assert costs["wKB/o"] == pytest.approx(0.8)
    assert costs["f/o"] == pytest.approx(0.002)
    assert costs["f_await"] == pytest.approx(5.0)
    assert costs["rss"] == 3.0


@pytest.mark.parametrize(
    ("lost", "absent"),
    [
        ({"cpu": None}, {"cpu/o"}),
        ({"server_cpu_s": None}, {"cpu_us/o"}),
        ({"context_switches": None}, {"cs/o"}),
        ({"disk": None}, {"r/o", "rKB/o", "w/o", "wKB/o", "f/o", "f_await"}),
        ({"disk": replace(DISK, flushes=None, flush_ms=None)}, {"f/o", "f_await"}),
        ({"rss_bytes": None}, {"rss"}),
    ],
)
def test_what_a_host_does_not_tell_is_absent_and_never_zero(lost: dict[str, object], absent: set[str]) -> None:
    everything = per_operation(FIRST, LAST, 1000.0)
    costs = per_operation(FIRST, replace(LAST, **lost), 1000.0)  # type: ignore[arg-type] # one field a case
    assert set(everything) - set(costs) == absent


def test_no_flush_has_no_latency() -> None:
    quiet = replace(LAST, disk=replace(DISK, reads=300))
    costs = per_operation(FIRST, quiet, 1000.0)
    assert costs["f/o"] == 0
    assert "f_await" not in costs


def test_nothing_done_costs_nothing_knowable() -> None:
    assert per_operation(FIRST, LAST, 0.0) == {}
    assert per_operation(FIRST, FIRST, 1000.0) == {}


def test_foreign_load_is_what_neither_server_nor_client_nor_harness_used() -> None:
    noise = foreign_noise(FIRST, LAST)
    assert noise.steal == pytest.approx(0.05)
    assert noise.foreign == pytest.approx((10 - 6 - 2 - 0.1) / 20)
    assert noise.harness == pytest.approx(0.01)
    assert foreign_noise(FIRST, replace(LAST, client_cpu_s=None)).foreign is None


def test_the_cpu_clock_of_another_process_is_the_kernels() -> None:
    spin = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ninput()"
    child = subprocess.Popen([sys.executable, "-c", spin], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        clock = 0.0
        while clock < 0.3:
            clock = cpu_clock_s(child.pid) or 0.0
        assert child.pid in process_tree(os.getpid())
        assert clock >= 0.3
    finally:
        child.communicate(b"\n")
    assert cpu_clock_s(child.pid) is None


def test_a_reading_of_this_host(tmp_path: os.PathLike[str]) -> None:
    data = Path(tmp_path)
    (data / "file").write_bytes(b"x" * 100_000)
    assert directory_bytes(data) >= 100_000
    assert ":" in block_device(data)
    meter = Meter(os.getpid(), data)
    meter.watch_client(os.getpid())
    reading = meter.read()
    assert reading.server_cpu_s is not None
    assert reading.server_cpu_s >= (reading.client_cpu_s or 0) > 0
    assert reading.rss_bytes is not None
    assert reading.rss_bytes > 1024**2
