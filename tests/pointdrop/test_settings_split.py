"""Settings or code: the two parts of a difference, and on real servers who did it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.settings_split import split_of
from history.metrics import shipped_metrics
from history.model import HELD_MARK, EffectiveSetting, LeftSetting, Release, SettingChange, SettingsSplit
from pointdrop.jobs.arm_values import ArmValues
from pointdrop.jobs.compare import CompareReport, ComparisonSetup, SplitReport, compare_sides
from pointdrop.jobs.compare_views import markdown, text_lines
from pointdrop.jobs.comparison_sides import parse_side, resolve
from runners.engines.held_settings import laid_over
from runners.releases import Catalogue
from runners.sessions import HeldConfig, plan_session, repeat_plan
from runners.sessions.bundle import bundle_of
from runners.sessions.session import rendered_options
from runners.settings import load_benchmark, load_profile, load_server
from runners.settings.dbms import RenderedOptions, load_dbms
from tests.builders import SESSION
from tests.builders import run as run_of
from tests.folders import open_folder

METRICS = shipped_metrics()
DIVES = SettingChange(name="eq_range_index_dive_limit", before="10", after="200", cause="default")
GONE = SettingChange(name="block_size", before="4", after="8", cause="default")
LEFT = LeftSetting(change=GONE, reason="it is built in")


def split(base: list[float], middle: list[float], candidate: list[float]) -> SettingsSplit:
    values = ArmValues()
    for side, of_side in zip(values.sides, (base, candidate, middle), strict=True):
        side["random-points", "insn/o"] = of_side
    return split_of(values.steps(METRICS), [DIVES], [LEFT])


@pytest.mark.parametrize(
    ("base", "middle", "candidate", "cause"),
    [
        ([100.0, 100.1], [100.0, 100.1], [150.0, 150.2], "config"),
        ([100.0, 100.1], [150.1, 150.0], [150.0, 150.2], "product"),
        ([100.0, 100.1], [120.1, 120.0], [150.0, 150.2], "both"),
        ([100.0, 100.1], [149.1, 149.0], [150.0, 150.2], "product"),
        ([100.0, 100.1], [100.1, 100.0], [100.0, 100.2], ""),
    ],
)
def test_who_did_it(base: list[float], middle: list[float], candidate: list[float], cause: str) -> None:
    found = split(base, middle, candidate)
    assert found.cause == cause
    assert [row.cause for row in found.tests] == [cause]
    assert [change.name for change in found.held] == [DIVES.name]
    assert [(left.change.name, left.reason) for left in found.left] == [(GONE.name, "it is built in")]


LEVELS = st.lists(st.floats(50.0, 500.0), min_size=2, max_size=6)


@given(LEVELS, LEVELS, LEVELS)
def test_the_product_of_the_parts_is_the_whole(base: list[float], middle: list[float], candidate: list[float]) -> None:
    values = ArmValues()
    for side, of_side in zip(values.sides, (base, candidate, middle), strict=True):
        side["t", "insn/o"] = of_side
    ((whole, _, _),) = values.steps(METRICS).values()
    found = split_of(values.steps(METRICS), [DIVES], [LEFT])
    product = (1 + found.settings.change_pct / 100) * (1 + found.code.change_pct / 100)
    assert product == pytest.approx(1 + whole.change_pct / 100, rel=1e-9)
    for part in (found.settings, found.code):
        assert part.low_pct is not None and part.high_pct is not None
        assert part.low_pct <= part.change_pct <= part.high_pct


def test_without_a_setting_that_can_be_held_the_code_did_it() -> None:
    values = ArmValues()
    values.sides[0]["t", "insn/o"], values.sides[1]["t", "insn/o"] = [100.0, 100.1], [150.0, 150.2]
    found = split_of(values.steps(METRICS), [], [LEFT])
    assert (found.cause, found.settings.change_pct) == ("product", 0.0)


def test_the_first_sentence_says_both_parts() -> None:
    values = {"base": "mysql@5.6.24", "candidate": "mysql@9.7.4", "server": "local", "lane": "instructions"}
    values |= {"profile": "instructions", "verdict": "DIFFERENT", "rounds": 2, "blocks": 6, "minutes": 1.0, "tests": ()}
    report = SplitReport.model_validate(values | {"split": split([100.0, 100.1], [120.1, 120.0], [150.0, 150.2])})
    text = "\n".join(text_lines(report))
    assert text_lines(report)[1].startswith(
        "Settings (eq_range_index_dive_limit) change the tests together by +25.0 % (+"
    )
    assert " %), code by +20.0 % (+" in text and ": both did." in text
    assert "block_size  4 -> 8  (in the code's part: it is built in)" in text
    shown = markdown(report)
    assert "| `block_size` | `4` | `8` | `it is built in` |" in shown
    assert "| `random-points` | `insn/o` | +25.0 % (+" in shown


def test_a_config_with_held_settings_is_no_other_config() -> None:
    one = HeldConfig("default", (("jit", "on"),))
    assert one.name == HeldConfig("default", (("jit", "on"),)).name
    assert one.name != HeldConfig("default", (("jit", "off"),)).name
    assert one.name.startswith(f"default{HELD_MARK}")


def test_held_settings_reach_the_option_file_of_their_run_alone(configs: Path) -> None:
    held = HeldConfig("default", (("jit", "on"), ("wal_buffers", None)))
    old, new = (Release(dbms="postgres", version=version, line=version[:2]) for version in ("17.0", "18.2"))
    benchmark = load_benchmark("sysbench", configs)
    plan = plan_session(
        session_id="s", plan="p", server=load_server("local", configs), benchmark=benchmark,
        tests=benchmark.select(("point-query.range100",)), profile=load_profile("instructions", configs),
        releases=[new], control=old, blocks=2, seed=1, held=[(new, held)],
    )  # fmt: skip
    settings = load_dbms("postgres", configs)
    texts = {(r.release.version, r.config): rendered_options(plan, r, settings) for r in plan.runs}
    assert texts.keys() == {("17.0", "default"), ("18.2", "default"), ("18.2", held.name)}
    laid = texts["18.2", held.name]
    assert (laid.options["jit"], "wal_buffers" in laid.options) == ("on", False)
    assert laid.config == f"{held.name}+instructions"
    assert texts["18.2", "default"].options["jit"] == "off"


def test_a_run_with_held_settings_is_repeated_with_them(configs: Path) -> None:
    held = HeldConfig("default", (("jit", "on"), ("wal_buffers", None)), of="17.0", held=(DIVES,), left=(LEFT,))
    release = Release(dbms="postgres", version="18.2", line="18")
    benchmark = load_benchmark("sysbench", configs)
    plan = plan_session(
        session_id="s", plan="p", server=load_server("local", configs), benchmark=benchmark,
        tests=benchmark.select(("point-query.range100",)), profile=load_profile("instructions", configs),
        releases=[release], control=release, blocks=1, seed=1, held=[(release, held)],
    )  # fmt: skip
    (planned,) = (run for run in plan.runs if run.config == held.name)
    options = rendered_options(plan, planned, load_dbms("postgres", configs))
    bundle = json.loads(json.dumps(bundle_of(plan, planned, options)))
    run = run_of("18.2").model_copy(update={"config": held.name, "bundle": bundle, "release": release})
    again = repeat_plan(run, SESSION, "again")
    assert again.held == (held,)
    assert {each.config for each in again.runs} == {"default", held.name}


def test_what_is_laid_over_an_option_file() -> None:
    options = RenderedOptions(
        dbms="mysql", config="default", version="9.7.4", options={"log_bin": "b", "gtid_mode": "ON"}
    )
    switch = "mrr=on,new=on"
    now = {
        name: EffectiveSetting(value=switch) for name in ("log_bin", "gtid_mode", "optimizer_switch", "innodb_x", "y")
    }
    wanted = {"log_bin": "OFF", "gtid_mode": "OFF", "optimizer_switch": "mrr=off,gone=on", "innodb_x": "1", "y": "2"}
    assert laid_over(options, now, wanted) == {
        "log_bin": None, "skip_log_bin": "", "gtid_mode": "OFF", "loose_optimizer_switch": "mrr=off,new=on",
        "innodb_x": "1", "loose_y": "2",
    }  # fmt: skip


def test_an_empty_value_is_no_flag() -> None:
    options = RenderedOptions(dbms="mysql", config="vendor-defaults", version="5.6.24", options={})
    laid = laid_over(options, {"sql_mode": EffectiveSetting(value="NO_ENGINE_SUBSTITUTION")}, {"sql_mode": ""})
    text = options.holding("held", laid).text
    assert 'loose_sql_mode = ""' in text.splitlines()


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    """A state directory that others may enter, and no session of anybody else's uses."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def measured(configs: Path, download_state: Path, state: Path) -> Callable[..., CompareReport]:
    """`measured("mysql@5.6.24", "mysql@9.7.4", "point-query.range100")`: a real comparison with its split."""
    catalogue = Catalogue(configs, download_state)

    def compare(base: str, candidate: str, *tests: str) -> CompareReport:
        benchmark = load_benchmark("sysbench", configs)
        sides = [parse_side(text) for text in (base, candidate)]
        return compare_sides(
            ComparisonSetup(
                base=(sides[0], resolve(sides[0], catalogue)),
                candidate=(sides[1], resolve(sides[1], catalogue)),
                server=load_server("local", configs),
                benchmark=benchmark,
                tests=benchmark.select(tests),
                profile=load_profile("instructions", configs),
                metrics=METRICS,
                configs=configs,
                state=state,
                budget_minutes=20.0,
                most_rounds=2,
                seed=1,
                split_settings=True,
            )
        )

    return compare


PROBES = ("point-query.range100", "random-points.range100", "update-index.range100", "insert.range100")


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_one_binary_with_other_settings_is_config_four_of_four(measured: Callable[..., CompareReport]) -> None:
    """The binlog, adaptive hash, change buffering and SQL mode of MySQL 5.6 as shipped, and as pinned."""
    report = measured("mysql@5.6.24#vendor-defaults", "mysql@5.6.24", *PROBES)
    assert isinstance(report, SplitReport)
    assert {row.test: row.cause for row in report.split.tests} == dict.fromkeys(PROBES, "config")
    assert report.split.cause == "config"
    assert {"innodb_adaptive_hash_index", "log_bin"} <= {change.name for change in report.split.held}


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_another_release_with_the_same_settings_is_product(measured: Callable[..., CompareReport]) -> None:
    report = measured("postgres@17.0", "postgres@18.2", "point-query.range100", "random-points.range100")
    assert isinstance(report, SplitReport)
    assert report.split.cause == "product"
    for row in report.split.tests:
        whole = next(test.change_pct for test in report.tests if test.test == row.test)
        product = (1 + row.settings.change_pct / 100) * (1 + row.code.change_pct / 100)
        assert product == pytest.approx(1 + whole / 100, rel=1e-9)
        assert abs(math.log1p(row.settings.change_pct / 100)) < 0.1 * abs(math.log1p(whole / 100))
