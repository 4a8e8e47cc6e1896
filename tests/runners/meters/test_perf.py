"""perf stat: real output read, absent counters absent, and a real attachment where this kernel allows one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import pytest

from history.metrics import shipped_metrics
from runners.meters.perf import EVENTS, PerfStat, parse_rates, supported_events

#: As perf 6.1 prints it; the middle of each row is count, unit, event.
OUTPUT = """\
     0.200100000,1000,,instructions:u,1,100.00,,
     0.200100000,<not supported>,,cache-misses:u,0,100.00,,
     0.400100000,3000,,instructions:u,1,100.00,0.75,insn per cycle
     0.400100000,<not supported>,,cache-misses:u,0,100.00,,
     0.600100000,<not counted>,,instructions:u,0,100.00,,
     0.700100000,1500,,instructions:u,1,100.00,,
"""


def test_rates_are_between_the_first_interval_and_the_last() -> None:
    assert parse_rates(OUTPUT) == pytest.approx({"instructions:u": 4500 / 0.5})


def test_one_interval_is_no_rate() -> None:
    assert parse_rates(OUTPUT.splitlines()[0]) == {}
    assert parse_rates("") == {}


def test_every_counter_is_a_known_metric() -> None:
    assert set(EVENTS.values()) <= {metric.name for metric in shipped_metrics()}
    assert set(supported_events()) <= EVENTS.keys()


def test_without_events_nothing_is_started() -> None:
    perf = PerfStat(())
    perf.start([1])
    assert perf.stop() == {}


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed; it is optional (linux-perf)")
def test_a_running_process_is_counted() -> None:
    """Software events are counted on machines without hardware counters too."""
    spin = "while True: pass"
    child = subprocess.Popen([sys.executable, "-c", spin])
    perf = PerfStat(("task-clock",))
    try:
        perf.start([child.pid])
        time.sleep(1.5)
        rates = perf.stop()
    finally:
        child.kill()
        child.wait()
    assert rates["task-clock"] > 1, "milliseconds of CPU a second"
    assert perf.stop() == {}
