"""The canary: what is usual, what is not, and who may measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pointdrop.cli.main import app
from runners.canary import Canary, Times
from runners.canary.quarantine import CanaryCheck
from runners.canary.verdicts import FEWEST_READINGS, MOST_READINGS, differences
from runners.canary.workload import work
from runners.cores import Cores

USUAL = Times(cpu_ms=100.0, memory_ms=50.0, sync_ms=1.0)


def reader(readings: list[Times]) -> Callable[[Path], Times]:
    """Gives these, one after the other, then USUAL."""
    left: Iterator[Times] = iter(readings)
    return lambda folder: next(left, USUAL)


def canary(state: Path, *readings: Times, usual: int = FEWEST_READINGS) -> Canary:
    """A host that took as long as usual so many times."""
    for _ in range(usual):
        Canary(state, read=reader([]), pause_s=0).check("before", "7")
    return Canary(state, read=reader(list(readings)), pause_s=0)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"cpu_ms": 104.0}, ""),
        ({"cpu_ms": 106.0}, "CPU"),
        ({"cpu_ms": 94.0}, "CPU"),
        ({"memory_ms": 54.0}, ""),
        ({"memory_ms": 56.0}, "memory"),
        ({"sync_ms": 1.9}, ""),
        ({"sync_ms": 2.1}, "flush to disk"),
        ({"sync_ms": 0.3}, "flush to disk"),
    ],
)
def test_a_part_that_differs_is_named(changed: dict[str, float], named: str) -> None:
    sentences = differences(USUAL._replace(**changed), [USUAL] * FEWEST_READINGS)
    assert [text.partition(":")[0] for text in sentences] == ([named] if named else [])


def test_too_few_readings_say_nothing() -> None:
    assert differences(USUAL._replace(cpu_ms=900.0), [USUAL] * (FEWEST_READINGS - 1)) == ()


def test_a_host_that_was_never_steady_is_given_room() -> None:
    restless = [USUAL._replace(cpu_ms=value) for value in (80.0, 90.0, 100.0, 110.0, 120.0, 95.0, 105.0)]
    assert differences(USUAL._replace(cpu_ms=140.0), restless) == ()


@given(st.lists(st.floats(0.001, 1e6), min_size=FEWEST_READINGS, max_size=60))
def test_the_usual_itself_never_differs(times: list[float]) -> None:
    before = [Times(value, value, value) for value in times]
    middle = sorted(times[-MOST_READINGS:])[len(times[-MOST_READINGS:]) // 2]
    if len(times[-MOST_READINGS:]) % 2:
        assert differences(Times(middle, middle, middle), before) == ()


def test_a_host_that_differs_each_time_may_not_measure_until_cleared(tmp_path: Path) -> None:
    slow = USUAL._replace(cpu_ms=150.0)
    host = canary(tmp_path, slow, slow, slow)
    quarantine = host.check("after", "7").quarantine
    assert quarantine is not None and quarantine.when == "after the session 7"
    assert "CPU: 150.0 ms, usually 100.0 (+50 %)" in str(quarantine) and "pointdrop doctor --clear" in str(quarantine)
    assert len(host.usual()) == FEWEST_READINGS, "a sick host does not become the usual"
    again = Canary(tmp_path, read=reader([USUAL]), pause_s=0).check("before", "8")
    assert again == CanaryCheck((), quarantine), "it stays out, however well it does now"
    assert host.clear() and host.quarantine() is None and host.usual() == []
    assert not host.clear()


def test_every_reading_is_given_with_host_phase_and_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTDROP_HOST", "bee")
    slow = USUAL._replace(cpu_ms=150.0)
    (first,) = Canary(tmp_path, read=reader([]), pause_s=0).check("before", "6").readings
    assert (first.host, first.session_id, first.phase, first.verdict) == ("bee", "6", "before", "learning")
    check = canary(tmp_path, slow, slow, slow).check("after", "7")
    assert [reading.verdict for reading in check.readings] == ["differs"] * 3
    assert [reading.quarantine for reading in check.readings] == [False, False, True]
    assert check.readings[-1].reasons == check.quarantine.reasons if check.quarantine else False


def test_one_bad_moment_is_forgiven(tmp_path: Path) -> None:
    host = canary(tmp_path, USUAL._replace(cpu_ms=150.0), USUAL._replace(memory_ms=90.0), USUAL)
    checked = host.check("before", "7")
    assert [(reading.verdict, reading.cpu_ms, reading.quarantine) for reading in checked.readings] == [
        ("differs", 150.0, False),
        ("differs", 100.0, False),
        ("usual", 100.0, False),
    ]
    assert checked.quarantine is None
    assert len(host.usual()) == FEWEST_READINGS + 1


def test_readings_are_kept_up_to_a_number_and_a_cut_off_line_is_left_out(tmp_path: Path) -> None:
    host = canary(tmp_path, usual=MOST_READINGS + 3)
    assert len(host.usual()) == MOST_READINGS
    file = tmp_path / "canary" / "readings.jsonl"
    file.write_text(file.read_text() + '{"cpu_ms": 10')
    assert len(host.usual()) == MOST_READINGS


def test_nothing_is_learnt_while_somebody_else_measures(tmp_path: Path) -> None:
    slow = USUAL._replace(cpu_ms=150.0)
    canary(tmp_path)
    host = Canary(tmp_path, cores=Cores(tmp_path), read=reader([slow] * 3), pause_s=0)
    with Cores(tmp_path).free(1):
        assert host.check("before", "7") == CanaryCheck()
    assert host.check("before", "7").quarantine is not None


def test_a_quarantine_that_cannot_be_read_is_one(tmp_path: Path) -> None:
    (tmp_path / "canary").mkdir()
    (tmp_path / "canary" / "quarantine.json").write_text("{")
    assert "cannot be read" in str(Canary(tmp_path).quarantine())


def test_the_work_takes_time(tmp_path: Path) -> None:
    assert all(value > 0 for value in work(tmp_path / "canary"))
    assert list((tmp_path / "canary").iterdir()) == []


def test_doctor_refuses_a_host_in_quarantine_and_clears_it(tmp_path: Path) -> None:
    slow = USUAL._replace(cpu_ms=150.0)
    canary(tmp_path, slow, slow, slow).check("after", "7")
    environment = {"POINTDROP_STATE": str(tmp_path), "COLUMNS": "200"}
    done = CliRunner().invoke(app, ["doctor", "--format", "json"], env=environment)
    assert done.exit_code == 4 and "in quarantine since" in done.output
    cleared = CliRunner().invoke(app, ["doctor", "--clear", "--format", "json"], env=environment)
    assert "may measure again" in cleared.output and "in quarantine since" not in cleared.output
