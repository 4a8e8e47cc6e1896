"""Settings or code, of a finding: what the history says of a third arm, and a night that measures one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from history.model import HELD_MARK, EffectiveSetting, Finding, Measurement, Run, SettingChange, ToolchainChange
from history.store import Store
from pointdrop.jobs.detect import load_detector_settings, run_detection
from pointdrop.jobs.measured_splits import measured_split
from pointdrop.jobs.release_selection import Work
from pointdrop.jobs.split_work import splits_to_measure
from presentation.headline import headline
from presentation.sentences import summary
from runners.sessions import HeldConfig, held_of
from runners.settings import Measure
from tests.builders import SESSION, block
from tests.builders import run as run_of

DIVES = SettingChange(name="dives", before="10", after="200", cause="default")
HELD = HeldConfig("default", (("dives", "10"),), of="17.5", held=(DIVES,))
BUNDLE = {"held": TypeAdapter(HeldConfig).dump_python(HELD, mode="json")}
TESTS = 9


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Ten releases in one session; a third of the tests needs half as much again from 17.6 on, as the dives do, and a
    later session saw it again."""
    with Store.open(f"sqlite:///{tmp_path}/history.db") as opened:
        opened.append_session(SESSION)
        for minor in range(10):
            dives = "10" if minor < 6 else "200"
            settings = {"dives": EffectiveSetting(value=dives, default=dives)}
            row = run_of(f"17.{minor}").model_copy(update={"options": "jit = on\n", "lane": "instructions"})
            _measure(opened, row, 1500.0 if minor >= 6 else 1000.0, settings)
        opened.append_session(
            SESSION.model_copy(update={"id": "again", "started": SESSION.started + timedelta(days=1)})
        )
        for version, level in (("17.5", 1000.0), ("17.6", 1500.0)):
            dives = "10" if version == "17.5" else "200"
            settings = {"dives": EffectiveSetting(value=dives, default=dives)}
            row = run_of(version, session="again", lane="instructions").model_copy(update={"options": "jit = on\n"})
            _measure(opened, row, level, settings)
        yield opened


def _measure(store: Store, row: Run, level: float, settings: dict[str, EffectiveSetting]) -> None:
    store.append_run(row)
    random = np.random.default_rng(len(row.id) + int(level))
    for number in (1, 2, 3):
        values = np.where(np.arange(TESTS) < 3, level, 1000.0) * np.exp(0.0005 * random.standard_normal(TESTS))
        found = tuple(
            Measurement(test=f"test-{i}", metric="insn/o", value=value, unit="instructions")
            for i, value in enumerate(values.tolist())
        )
        store.append_block(block(row, 1.0, number, measurements=found, settings=settings if number == 1 else {}))


def _third_arm(store: Store, level: float) -> None:
    arm = {"id": f"s/17.6/{HELD.name}", "config": HELD.name, "lane": "instructions", "bundle": BUNDLE}
    _measure(
        store, run_of("17.6").model_copy(update=arm), level, {"dives": EffectiveSetting(value="10", source="file")}
    )


def _finding(store: Store, configs: Path) -> Finding:
    (finding,) = run_detection(store, load_detector_settings(configs))
    return finding


@pytest.mark.parametrize(
    ("level", "cause", "sentence"),
    [
        (1000.0, "config", "; settings (dives) change the tests together by +"),
        (1500.0, "product", ": the code did it."),
        (1200.0, "both", ": both did."),
    ],
)
def test_a_third_arm_tells_settings_from_code(
    store: Store, configs: Path, level: float, cause: str, sentence: str
) -> None:
    metrics = load_detector_settings(configs).metrics
    before = _finding(store, configs)
    assert (before.cause, before.split, before.settings) == ("product", None, (DIVES,))
    assert [str(each).rpartition("/")[2] for each in splits_to_measure([before], store, metrics)] == ["17.5..17.6"]
    _third_arm(store, level)
    found = _finding(store, configs)
    assert found.key == before.key and found.moves == before.moves, "the arm is no release of the line"
    assert found.split is not None and found.split.held == (DIVES,)
    assert (found.cause, found.split.cause) == (cause, cause)
    lead = headline(found, metrics)
    assert lead is not None and sentence in summary(found, lead)
    assert "; settings " in summary(found, lead), "issue and page say it in their first sentence"
    assert summary(found, lead).partition(". 3 of 9 tests ")[0].count(". ") == 0
    assert splits_to_measure([found], store, metrics) == [], "it is measured once"


def test_a_session_without_its_other_sides_is_tried_once_more(store: Store, configs: Path) -> None:
    metrics = load_detector_settings(configs).metrics
    for number in (1, 2):
        store.append_session(SESSION.model_copy(update={"id": f"lost-{number}"}))
        arm = {"id": f"lost-{number}/arm", "session_id": f"lost-{number}", "config": HELD.name, "bundle": BUNDLE}
        _measure(store, run_of("17.6").model_copy(update=arm | {"lane": "instructions"}), 1500.0, {})
        finding = _finding(store, configs)
        assert finding.split is None
        assert len(splits_to_measure([finding], store, metrics)) == (1 if number == 1 else 0)
    _third_arm(store, 1500.0)  # in a session that has them, whichever is the newest
    assert _finding(store, configs).cause == "product"


def test_how_far_releases_lie_apart_is_no_noise_of_a_session(store: Store, configs: Path) -> None:
    metrics = load_detector_settings(configs).metrics
    _third_arm(store, 1200.0)
    finding = _finding(store, configs)
    apart = tuple(move.model_copy(update={"noise_pct": 40.0}) for move in finding.moves)
    split = measured_split(finding.model_copy(update={"moves": apart}), store, metrics)
    assert split is not None and split.cause == "both"


def test_a_compiler_that_changed_too_stays_with_the_code(store: Store, configs: Path) -> None:
    metrics = load_detector_settings(configs).metrics
    _third_arm(store, 1500.0)
    compiler = ToolchainChange(part="compiler", before="GCC 7.3.1", after="GCC 8.3.1")
    found = _finding(store, configs).model_copy(update={"toolchain": (compiler,)})
    lead = headline(found, metrics)
    assert lead is not None
    assert "part of the step may be the compiler's; settings change the tests together by " in summary(found, lead)
    assert ": the code with its compiler did it. 3 of 9 tests " in summary(found, lead)


def test_parts_of_another_metric_are_told_as_such(store: Store, configs: Path) -> None:
    metrics = load_detector_settings(configs).metrics
    _third_arm(store, 1200.0)
    found = _finding(store, configs)
    lead = headline(found, metrics)
    assert lead is not None and found.split is not None
    assert found.split.metric == "insn/o" and "; settings (dives) change the tests together by " in summary(found, lead)
    other = found.model_copy(update={"split": found.split.model_copy(update={"metric": "qps"})})
    assert "; settings (dives) change qps of the tests together by " in summary(other, lead)


def test_the_arm_of_another_boundary_says_nothing(store: Store, configs: Path) -> None:
    other = TypeAdapter(HeldConfig).dump_python(HeldConfig("default", (("dives", "10"),), of="16.9"), mode="json")
    arm = {"id": "s/other", "config": HELD.name, "lane": "instructions", "bundle": {"held": other}}
    _measure(store, run_of("17.6").model_copy(update=arm), 1000.0, {})
    assert _finding(store, configs).split is None


def test_the_arm_is_no_line_and_no_series(store: Store) -> None:
    _third_arm(store, 1000.0)
    assert {key.config for key in store.lines()} == {"default"}
    assert not any(HELD_MARK in series.key.config for series in store.series())
    (row,) = (row for row in store.runs() if HELD_MARK in row.config)
    assert held_of(row) == HELD


def test_only_a_changed_default_asks_for_an_arm(store: Store, configs: Path) -> None:
    metrics = load_detector_settings(configs).metrics
    finding = _finding(store, configs)
    by_hand = DIVES.model_copy(update={"cause": "config"})
    others: list[dict[str, object]] = [{"settings": ()}, {"settings": (by_hand,)}]
    others += [{"tier": "provisional"}, {"kind": "improvement"}, {"cause": "toolchain"}]
    for update in others:
        assert splits_to_measure([finding.model_copy(update=update)], store, metrics) == [], update


def test_work_with_an_arm_is_written_down_and_read_back(configs: Path) -> None:
    release = run_of("17.6").release
    measure = Measure(dbms="postgres", versions=("17.5", "17.6"), lane="instructions", profile="instructions")
    work = Work(measure, "default", "", (release,), release, again=True, held=((release, HELD),))
    adapter = TypeAdapter(Work)
    assert adapter.validate_json(adapter.dump_json(work)) == work
