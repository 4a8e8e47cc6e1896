"""The order of blocks is fair, and the ids follow from the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from history.errors import BadSettings
from history.model import Fingerprint, Run, Session
from runners.sessions import SessionPlan, repeat_plan
from runners.sessions.bundle import bundle_of, workload
from runners.sessions.planning import recipe_of, repeat_of, settle_seconds, workload_seed
from runners.settings.dbms import RenderedOptions

MakePlan = Callable[..., SessionPlan]
#: The fixture only makes plans; it keeps nothing between examples.
per_example = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)

VERSIONS = st.lists(st.integers(1, 40).map(lambda minor: f"17.{minor}"), min_size=1, max_size=6, unique=True)


@per_example
@given(versions=VERSIONS, blocks=st.integers(1, 6))
def test_every_release_and_the_control_get_their_blocks(make_plan: MakePlan, versions: list[str], blocks: int) -> None:
    plan = make_plan(releases=tuple(versions), blocks=blocks)
    counts = Counter(block.run.release.version for block in plan.blocks)
    assert counts == dict.fromkeys({*versions, "17.0"}, blocks)
    assert len({block.id for block in plan.blocks}) == len(plan.blocks)


@per_example
@given(versions=VERSIONS, pairs=st.integers(1, 3))
def test_a_drift_of_the_machine_falls_on_all_releases_alike(
    make_plan: MakePlan, versions: list[str], pairs: int
) -> None:
    plan = make_plan(releases=tuple(versions), blocks=2 * pairs)
    moments: dict[str, int] = {}
    for position, block in enumerate(plan.blocks):
        moments[block.run.id] = moments.get(block.run.id, 0) + position
    assert len(set(moments.values())) == 1, "the mean position is the same for every release"


def test_a_block_is_done_by_all_before_any_begins_its_next(make_plan: MakePlan) -> None:
    plan = make_plan(releases=("17.4", "17.5"), blocks=3)
    assert [block.number for block in plan.blocks] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_the_same_plan_twice_is_the_same(make_plan: MakePlan) -> None:
    assert make_plan(blocks=4) == make_plan(blocks=4)


def test_ids_name_session_release_config_benchmark_lane_and_block(make_plan: MakePlan) -> None:
    ids = {block.id for block in make_plan(lane="instructions", session_id="2026-11-21").blocks}
    assert ids == {f"2026-11-21/{version}/default/sysbench/instructions/1" for version in ("17.0", "17.5")}


def test_every_block_of_a_number_does_the_same_work_and_a_count_always(make_plan: MakePlan) -> None:
    time, counted = make_plan(), make_plan(lane="instructions")
    test = time.tests[0]
    assert workload_seed(time, test, 1) != workload_seed(time, test, 2)
    assert workload_seed(time, test, 1) != workload_seed(time, time.tests[1], 1)
    assert workload_seed(counted, test, 1) == workload_seed(counted, test, 2)


def test_repeats_count_on_within_their_budget(make_plan: MakePlan) -> None:
    run = make_plan(blocks=2).runs[0]
    first = repeat_of(run, planned=2, budget=2, taken=set())
    assert first is not None
    assert first.number == 3
    second = repeat_of(run, planned=2, budget=2, taken={first.id})
    assert second is not None
    assert second.number == 4
    assert repeat_of(run, planned=2, budget=2, taken={first.id, second.id}) is None
    assert repeat_of(run, planned=2, budget=0, taken=set()) is None


def test_the_wait_after_writes_is_the_published_one_within_its_bound(make_plan: MakePlan) -> None:
    plan = make_plan()
    assert settle_seconds(plan) == 0
    longer = plan.profile.model_copy(update={"settle_max_s": 1200})
    assert settle_seconds(replace(plan, profile=longer)) == pytest.approx(60.004)


def test_a_session_is_of_one_dbms_and_has_tests(make_plan: MakePlan) -> None:
    with pytest.raises(BadSettings, match="no tests"):
        make_plan(tests=())


def test_the_workload_of_a_count_does_not_depend_on_what_else_is_counted(make_plan: MakePlan) -> None:
    few, more = ("point-query.range100",), ("point-query.range100", "insert.range100")
    alone, beside = (workload(make_plan(lane="instructions", tests=tests)) for tests in (few, more))
    assert alone == beside
    timed, timed_beside = (workload(make_plan(tests=tests)) for tests in (few, more))
    assert timed != timed_beside, "one server runs all timed tests, each on what the one before it left"


def test_steps_that_only_warm_caches_are_not_counted(make_plan: MakePlan) -> None:
    tests = ("point-query.warm.range100", "point-query.range100")
    assert [test.name for test in make_plan(lane="instructions", tests=tests).tests] == ["point-query.range100"]
    assert [test.name for test in make_plan(tests=tests).tests] == list(tests)


def test_counts_before_the_writes_are_of_tables_just_loaded(make_plan: MakePlan) -> None:
    tests = ("point-query.pre.range100", "update-index.range100", "point-query.range100")
    counted, timed = make_plan(lane="instructions", tests=tests), make_plan(tests=tests)
    updates = counted.profile.age_updates
    assert [recipe_of(counted, test).age_updates for test in counted.tests] == [0, updates, updates]
    assert {recipe_of(timed, test) for test in timed.tests} == {recipe_of(timed, timed.tests[0])}


def test_a_run_is_planned_again_from_its_bundle_alone(make_plan: MakePlan) -> None:
    plan = make_plan(blocks=2)
    options = RenderedOptions(dbms="postgres", config="default", version="17.5", options={"fsync": "off"})
    candidate = next(run for run in plan.runs if run.release.version == "17.5")
    bundle = bundle_of(plan, candidate, options)
    started = datetime(2026, 1, 1, tzinfo=UTC)
    facts = Fingerprint(facts={})
    session = Session(id="s", host="h", server="local", plan="test", fingerprint=facts, started=started)
    row = Run(
        id=candidate.id,
        session_id="s",
        release=candidate.release,
        config="default",
        benchmark="sysbench",
        bundle=bundle,
    )
    again = repeat_plan(row, session, "again")
    assert workload(again) == workload(plan)
    assert [(block.run.release, block.number) for block in again.blocks] == [
        (block.run.release, block.number) for block in make_plan(blocks=2, session_id="again").blocks
    ]
    assert "--rand-seed=" in bundle["commands"]["point-query.range100"]
    assert str(bundle).find("/tmp/") == -1, "nothing of this host"
    with pytest.raises(BadSettings, match="no bundle"):
        repeat_plan(row.model_copy(update={"bundle": {}}), session, "again")
    with pytest.raises(BadSettings, match="other sysbench scripts"):
        repeat_plan(row.model_copy(update={"bundle": bundle | {"scripts": "0" * 16}}), session, "again")
