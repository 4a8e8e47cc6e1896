"""Findings: what becomes one, of which kind and cause, and how sure."""

from __future__ import annotations

import numpy as np
import pytest

from detector import DetectorSettings, detect
from detector.attachments import attach, missed_service_levels
from detector.errors import UnknownEvidence
from detector.evidence import _agreeing
from detector.explanation import explain
from detector.series_moves import q_values
from history.metrics import MetricRegistry, shipped_metrics
from history.model import Finding, FunctionCost, Move, Part, Release, Series, SeriesKey, SettingsSplit, StatementPlan
from tests.builders import measured_again, series, series_key

RELEASES = 10


def suite(
    tests: int = 10,
    *,
    seed: int = 1,
    drop: float = 0.0,
    at: int = 6,
    moving: int = 4,
    blocks: int = 3,
    line: str = "17",
    releases: int = RELEASES,
    **options: object,
) -> list[Series]:
    """A suite with 0.6 % of noise in which `moving` tests lose `drop` at release `at`, in throughput and CPU."""
    rng = np.random.default_rng(seed)
    made = []
    for test in range(tests):
        noise = 0.006 * rng.standard_normal((2, releases, blocks))
        step = np.zeros((releases, 1))
        if test < moving:
            step[at:] = np.log1p(-drop)
        qps = 1000.0 * np.exp(step + noise[0])
        cpu = 50.0 * np.exp(-step + noise[1])
        for metric, values in (("qps", qps), ("cpu_us/o", cpu)):
            made.append(
                series(values.tolist(), test=f"test-{test:02}", metric=metric, line=line, **options)  # type: ignore[arg-type]
            )
    return made


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"title": "speed", "more": "faster"}, True),
        ({"kind": "latency"}, False),
        ({"smallest_change_pct": 3.0}, False),
        ({"near_zero": 1.0}, False),
    ],
)
def test_the_digest_of_the_settings_names_what_a_finding_depends_on(change: dict[str, object], same: bool) -> None:
    metrics = shipped_metrics().root
    changed = MetricRegistry(metrics | {"qps": metrics["qps"].model_copy(update=change)})
    assert (DetectorSettings(metrics=changed).digest == DetectorSettings().digest) is same


def test_a_quiet_suite_has_no_findings() -> None:
    for seed in range(5):
        assert detect(suite(seed=seed)) == []


def test_a_regression_is_one_finding_with_everything_in_it() -> None:
    (finding,) = detect(suite(drop=0.08))
    assert finding.key == "postgres/17/17.6/regression"
    assert (finding.kind, finding.cause, finding.tier) == ("regression", "product", "provisional")
    assert (finding.previous, finding.release) == ("17.5", "17.6")
    assert len(finding.moves) == 8
    throughput = [move for move in finding.moves if move.key.metric == "qps"]
    for move in throughput:
        assert move.low_pct < -8 < move.high_pct
        assert move.probability > 0.95
        assert move.q_value is not None and move.q_value < 0.05
        assert 0.1 < move.noise_pct < 1.0
        assert move.mde_pct >= 1.2
        assert move.blocks_before == move.blocks_after == 3
    (group,) = [group for group in finding.groups if group.metric == "qps"]
    assert (group.moved, group.tests) == (4, 10)
    assert group.median_pct == pytest.approx(-8, abs=1)
    assert any("4 of 10 tests moved" in sentence for sentence in finding.evidence)
    assert any("noise floor" in sentence for sentence in finding.evidence)


def test_both_directions_at_one_release_are_two_findings() -> None:
    down = suite(drop=0.08)
    up = suite(seed=2, drop=-0.09, moving=3)
    renamed = [one.model_copy(update={"key": one.key.model_copy(update={"test": one.key.test + "-up"})}) for one in up]
    assert [finding.kind for finding in detect(down + renamed)] == ["regression", "improvement"]


def test_releases_in_between_are_suspects() -> None:
    made = [
        one.model_copy(update={"points": tuple(p for p in one.points if p.version not in ("17.5", "17.4"))})
        for one in suite(drop=0.08)
    ]
    known = [Release(dbms="postgres", version=f"17.{r}", line="17") for r in range(RELEASES)]
    known.append(Release(dbms="postgres", version="17.4+debian", line="17"))
    (finding,) = detect(made, releases=known)
    assert finding.previous == "17.3"
    assert finding.unmeasured == ("17.4", "17.5")


def sessions(pairs: dict[int, str]) -> list[str]:
    return [pairs.get(r, f"session-{r}") for r in range(RELEASES)]


def test_one_session_of_both_sides_is_no_confirmation_of_itself() -> None:
    (finding,) = detect(suite(drop=0.08, sessions=sessions({5: "both", 6: "both"})))
    assert finding.tier == "provisional"
    assert any("no later session has measured both sides" in sentence for sentence in finding.evidence)


def test_what_a_finding_is_told_by_leaves_out_what_was_not_seen_again() -> None:
    """Instructions of one test moved and were counted again; throughput has one block of the first and the last
    release and is the luck of these: it is suspected, and stands in no table of groups."""

    def counted(test: str, change: float) -> Series:
        values = [[1000.0]] * 2 + [[1000.0 * (1 + change)]] * 3
        one = series(values, test=test, metric="insn/o", sessions=["counts"] * 5)
        return measured_again(one, "counts again", {"17.1": [1000.0], "17.2": [1000.0 * (1 + change)]})

    def timed(test: str, change: float) -> Series:
        return series([[1000.0], None, None, None, [1000.0 * (1 + change)]], test=test, sessions=["times"] * 5)

    counts = [counted(f"test-{n}", {0: 0.45, 1: 0.02}.get(n, 0.0)) for n in range(8)]
    times = [timed(f"test-{n}", {0: -0.28, 1: -0.2, 2: -0.2}.get(n, 0.0)) for n in range(8)]
    (finding,) = detect(counts + times)
    assert (finding.release, finding.tier) == ("17.2", "confirmed")
    tiers = {(move.key.test, move.key.metric): move.tier for move in finding.moves}
    assert {place for place, tier in tiers.items() if tier == "confirmed"} == {
        ("test-0", "insn/o"),
        ("test-1", "insn/o"),
    }
    assert tiers["test-0", "qps"] == "provisional"
    assert {group.metric for group in finding.groups if group.moved} == {"insn/o"}
    (elsewhere,) = [one for one in detect(times) if one.kind == "regression"]
    assert {"test-1", "test-2"} <= {move.key.test for move in elsewhere.moves}, "alone it is a suspect"


def test_the_control_moved_so_it_is_the_machine() -> None:
    """Counts are compared from session to session, and the control says what else moved."""
    control = {f"session-{r}": ((1000.0 if r < 6 else 1080.0),) for r in range(RELEASES)}
    made = [
        series(
            [[1080.0 if release >= 6 and test < 4 else 1000.0] for release in range(RELEASES)],
            test=f"test-{test:02}", metric="insn/o", control=control,
        )
        for test in range(10)
    ]  # fmt: skip
    (finding,) = detect(made)
    assert (finding.kind, finding.cause) == ("environment", "machine")
    assert finding.key == "postgres/17/17.6/environment"
    assert any("control release moved by +8.0 %" in sentence for sentence in finding.evidence)


def test_all_tests_alike_is_the_machine() -> None:
    findings = detect(suite(drop=0.08, moving=10))
    assert {(finding.kind, finding.cause) for finding in findings} == {("environment", "machine")}


@pytest.mark.parametrize(("moving", "kind"), [(40, "environment"), (7, "regression")])
def test_throughput_without_cpu_is_the_machine_when_most_of_all_groups_have_it(moving: int, kind: str) -> None:
    """Five groups of eight: most tests are most of forty, not most of the largest group."""
    rng = np.random.default_rng(5)
    made = []
    for test in range(40):
        qps = 1000.0 * np.exp(0.004 * rng.standard_normal((RELEASES, 1)))
        cpu = 50.0 * np.exp(0.004 * rng.standard_normal((RELEASES, 1)))
        qps[-1] *= rng.uniform(0.6, 0.9) if test < moving else 1.0
        for metric, values in (("qps", qps), ("cpu_us/o", cpu)):
            made.append(series(values.tolist(), test=f"test-{test:02}", metric=metric, group=f"group {test // 8}"))
    (finding,) = detect(made)
    assert (finding.kind, finding.release) == (kind, "17.9")


def test_another_epoch_without_control_is_no_regression() -> None:
    epochs = ["old" if r < 6 else "new" for r in range(RELEASES)]
    (finding,) = detect(suite(drop=0.08, epochs=epochs))
    assert (finding.kind, finding.cause) == ("environment", "epoch")


def test_epochs_are_joined_through_the_control() -> None:
    """The new host is 20 % slower for everything, the control says so, and nothing else happened."""
    made = []
    for one in suite():
        factor = 0.8 if one.key.metric == "qps" else 1.25
        points = tuple(
            point
            if point.position < 6
            else point.model_copy(
                update={
                    "values": tuple(block._replace(value=block.value * factor, epoch="new") for block in point.values)
                }
            )
            for point in one.points
        )
        level = 1000.0 if one.key.metric == "qps" else 50.0
        control = {f"session-{r}": (level * (factor if r >= 6 else 1.0),) for r in range(RELEASES)}
        made.append(one.model_copy(update={"points": points, "control": control}))
    assert detect(made) == []


def test_every_line_moved_in_the_same_sessions() -> None:
    shared = [f"day-{r}" for r in range(RELEASES)]
    made = [
        one
        for seed, line in enumerate(("15", "16", "17"))
        for one in suite(drop=0.08, seed=seed, line=line, sessions=shared)
    ]
    findings = detect(made)
    assert {finding.kind for finding in findings} == {"environment"}
    assert len(findings) == 3
    assert any("Every line measured in these sessions moved: 15, 16, 17." in s for s in findings[0].evidence)


def test_a_fix_that_is_back_patched_to_every_line_is_the_product_when_the_control_stands_still() -> None:
    shared = [f"day-{r}" for r in range(RELEASES)]
    made = [
        one.model_copy(update={"control": dict.fromkeys(shared, (1000.0 if one.key.metric == "qps" else 50.0,))})
        for seed, line in enumerate(("15", "16", "17"))
        for one in suite(drop=0.08, seed=seed, line=line, sessions=shared)
    ]
    findings = detect(made)
    assert [(finding.kind, finding.cause) for finding in findings] == [("regression", "product")] * 3
    assert any("a change that came to every line" in sentence for sentence in findings[0].evidence)


def test_one_noisy_block_in_a_short_line_is_no_regression() -> None:
    rng = np.random.default_rng(3)
    made = []
    for test in range(8):
        qps = 1000 * np.exp(0.02 * rng.standard_normal((5, 1)))
        cpu = 50 * np.exp(0.02 * rng.standard_normal((5, 1)))
        qps[3] *= rng.uniform(0.6, 0.8)
        made += [
            series(qps.tolist(), test=f"test-{test}"),
            series(cpu.tolist(), test=f"test-{test}", metric="cpu_us/o"),
        ]
    findings = [finding for finding in detect(made) if any(move.key.metric == "qps" for move in finding.moves)]
    assert all(finding.kind == "environment" for finding in findings)


def test_one_percent_of_instructions_on_one_test() -> None:
    """Noise of counted instructions is tiny, so a single test and a single block are enough."""
    rng = np.random.default_rng(11)
    made = []
    for test in range(14):
        values = 40_000 * np.exp(rng.uniform(0.0003, 0.001) * rng.standard_normal((20, 1)))
        if test == 5:
            values[12:] *= 1.01
        made.append(series(values.tolist(), test=f"test-{test:02}", metric="insn/o"))
    (finding,) = detect(made)
    (move,) = finding.moves
    assert (finding.release, move.key.test) == ("17.12", "test-05")
    assert move.change_pct == pytest.approx(1.0, abs=0.15)


def test_quiet_instructions_of_many_lines() -> None:
    """Three histories of 130 releases in 8 lines, 14 tests each, some noisier than the smallest change that counts: at
    most one false move in 2000 boundaries."""
    lines = {"10": 23, "11": 22, "12": 20, "13": 18, "14": 15, "15": 12, "16": 10, "17": 10}
    moves, boundaries = [], 0
    for seed in (12, 13, 14):
        rng = np.random.default_rng(seed)
        made = []
        for line, releases in lines.items():
            for test in range(14):
                sd = rng.uniform(0.0002, 0.003)
                values = 40_000 * np.exp(sd * rng.standard_normal((releases, 1)))
                made.append(series(values.tolist(), test=f"test-{test:02}", metric="insn/o", line=line))
                boundaries += releases - 1
        moves += [move for finding in detect(made) for move in finding.moves]
    assert len(moves) <= boundaries / 2000


def test_slow_drift_is_a_finding_of_its_own() -> None:
    rng = np.random.default_rng(4)
    made = []
    for test in range(8):
        drift = -0.0025 * np.arange(24)[:, None]
        values = 1000 * np.exp(drift + 0.008 * rng.standard_normal((24, 2)))
        made.append(series(values.tolist(), test=f"test-{test}"))
    (finding,) = [finding for finding in detect(made) if finding.kind == "drift"]
    assert finding.previous == "17.0"
    assert len(finding.moves) >= 6
    assert all(-8 < move.change_pct < -3 for move in finding.moves)


def test_functions_and_plans_are_attached() -> None:
    (finding,) = detect(suite(drop=0.08))
    before = {"test-00": (FunctionCost(function="row_search_mvcc", insn_per_op=100.0),)}
    after = {"test-00": (FunctionCost(function="row_search_mvcc", insn_per_op=140.0),)}
    plan = StatementPlan(statement="SELECT 1", digest="a", text="Index Scan")
    other = plan.model_copy(update={"digest": "b", "text": "Seq Scan"})
    tests = sorted({move.key.test for move in finding.moves})
    explained = attach(
        finding,
        functions_before=before,
        functions_after=after,
        plans_before=dict.fromkeys(tests, (plan,)),
        plans_after=dict.fromkeys(tests, (other,)),
    )
    assert explained.cause == "plan"
    assert [(f.function, f.before, f.after) for f in explained.functions] == [("row_search_mvcc", 100.0, 140.0)]
    assert len(explained.plans) == len(tests)
    assert attach(finding, config_changes=("innodb_redo_log_capacity",)).cause == "config"
    assert attach(finding, one_sided_options=("new = 1 is set after only",)).cause == "product"
    split = SettingsSplit(cause="config", settings=Part(change_pct=-8.0), code=Part(change_pct=0.0))
    assert attach(finding, split=split).cause == "config"
    assert attach(finding, split=split.model_copy(update={"cause": "both"})).cause == "both"
    assert attach(finding, split=split.model_copy(update={"cause": ""})).cause == "product", "nothing is sure"
    by_hand = attach(finding, config_changes=("jit",), split=split.model_copy(update={"cause": "product"}))
    assert by_hand.cause == "product", "what was changed by hand did not do it"
    late = "reached 90% of its inserts"
    assert attach(finding, sla_failures=dict.fromkeys(tests, late)).cause == "sla"
    assert attach(finding, sla_failures={tests[0]: late}).cause == "product"
    assert f"Service level missed: {late}." in attach(finding, sla_failures={tests[0]: late}).evidence


def test_a_step_that_falls_behind_its_promise_is_no_regression_of_its_queries() -> None:
    """Inserts behind the queries reach 80 % of what they promise from 17.6 on; the load step is as fast as ever."""
    rng = np.random.default_rng(3)
    made = []
    for test in ("qr100", "qr500", "qp100", "l.i0"):
        rate = 1000.0 * np.exp(0.004 * rng.standard_normal((RELEASES, 3)))
        if test != "l.i0":
            rate = np.minimum(rate, 1000.0)
            rate[6:] *= 0.8
            made.append(series(np.full((RELEASES, 3), 1000.0).tolist(), test=test, metric="target_ips"))
        made.append(series(rate.tolist(), test=test, metric="ips"))
    (finding,) = detect(made)
    assert (finding.key, finding.cause) == ("postgres/17/17.6/regression", "product")
    failures = missed_service_levels(finding, made)
    assert sorted(failures) == ["qp100", "qr100", "qr500"]
    assert failures["qr100"] == "qr100 on small with default reached 80% of its inserts in 17.6"
    assert attach(finding, sla_failures=failures).cause == "sla"
    earlier = finding.model_copy(update={"release": "17.5"})
    assert missed_service_levels(earlier, made) == {}


def test_explain_says_why_and_why_not() -> None:
    made = suite(drop=0.08)
    found = explain(made, series_key("test-00", "qps", server="small"))
    (case,) = [case for case in found.cases if case.listed]
    assert case.release == "17.6"
    assert any("3 of 9 sister tests" in argument for argument in case.pro)
    assert found.mde_newest_pct > found.mde_middle_pct >= 1.2
    quiet = explain(made, series_key("test-09", "qps", server="small"))
    assert not any(case.listed for case in quiet.cases)
    with pytest.raises(UnknownEvidence):
        explain(made, series_key("no-such-test", "qps", server="small"))


@pytest.mark.parametrize("behind", [("14.9", "15.9", "16.9", "17.9"), ("12.9", "13.9", "14.9", "15.8", "16.9", "17.9")])
def test_servers_whose_majors_stand_elsewhere_are_judged_apart(behind: tuple[str, ...]) -> None:
    """A server with fewer lines, or a night behind, has other releases at its places on the line of majors."""

    def majors(server: str, versions: tuple[str, ...], seed: int) -> list[Series]:
        return [
            one.model_copy(
                update={
                    "key": one.key.model_copy(update={"line": "majors"}),
                    "points": tuple(
                        point.model_copy(update={"version": version})
                        for point, version in zip(one.points, versions, strict=True)
                    ),
                }
            )
            for one in suite(
                drop=0.2, at=versions.index("16.9"), releases=len(versions), moving=10, server=server, seed=seed
            )
        ]

    made = majors("small", ("12.9", "13.9", "14.9", "15.9", "16.9", "17.9"), 1) + majors("medium", behind, 2)
    (finding,) = detect(made)
    assert (finding.previous, finding.release) == ("15.9", "16.9")
    assert {move.key.server for move in finding.moves} == {"small", "medium"} and len(finding.moves) == 40
    assert all(explain(made, one.key).cases for one in made)


def test_lanes_whose_majors_stand_elsewhere_are_judged_apart() -> None:
    """18.6 was counted, and its timed blocks were too noisy: 18.0 stands for 18 in the time lane and nowhere else."""
    counted, timed = ("15.9", "16.9", "17.9", "18.6"), ("15.9", "16.9", "17.9", "18.0")
    made = [
        one.model_copy(
            update={
                "key": one.key.model_copy(update={"line": "majors", "metric": metric}),
                "points": tuple(
                    point.model_copy(update={"version": version})
                    for point, version in zip(one.points, versions, strict=True)
                ),
            }
        )
        for one in suite(drop=0.2, at=3, releases=4, moving=10)
        for metric, versions in (("insn/o", counted), ("cpu_us/o", timed))
        if one.key.metric == "cpu_us/o"
    ]
    counted_finding, timed_finding = sorted(detect(made), key=lambda finding: finding.release, reverse=True)
    assert (counted_finding.release, timed_finding.release) == ("18.6", "18.0")
    assert {move.key.metric for move in counted_finding.moves} == {"insn/o"}
    assert {move.key.metric for move in timed_finding.moves} == {"cpu_us/o"}


def test_a_boundary_stands_between_releases_that_its_series_were_measured_at() -> None:
    """8.0.28 was timed and never counted: the instructions that moved after 8.0.20 were first seen in 8.0.30, and the
    two releases between are suspects."""
    releases = ("8.0.11", "8.0.13", "8.0.15", "8.0.18", "8.0.20", "8.0.28", "8.0.30", "8.0.31")
    made = []
    for number in range(8):
        counts = [None if at == 5 else [1000.0 if at < 5 or number > 3 else 1030.0] for at in range(8)]
        times = [[2000.0 + (number * 3 + at * 5) % 7, 2003.0] for at in range(8)]
        for metric, values in (("insn/o", counts), ("qps", times)):
            key = series_key(f"test-{number}", metric, dbms="mysql", line="8.0")
            made.append(series(values, key, releases=releases, sessions=["night"] * 8))
    known = [Release(dbms="mysql", version=version, line="8.0") for version in (*releases, "8.0.27")]
    (finding,) = detect(made, releases=known)
    assert (finding.previous, finding.unmeasured, finding.release) == ("8.0.20", ("8.0.27", "8.0.28"), "8.0.30")
    assert {move.key.metric for move in finding.moves} == {"insn/o"}


def test_false_discovery_rates_grow_with_doubt() -> None:
    rates = q_values([0.99, 0.7, 0.95])
    assert rates[0] < rates[2] < rates[1]


def test_one_release_has_no_boundaries() -> None:
    assert detect(suite(releases=1, at=0)) == []
    assert detect([]) == []


def test_findings_are_serialisable() -> None:
    for finding in detect(suite(drop=0.08)):
        assert Finding.model_validate_json(finding.model_dump_json()) == finding


@pytest.mark.parametrize(
    ("change", "cost", "said"),
    [
        (-5.0, 5.2, "1 of 1 test that moved in throughput moved in CPU cost the same way."),
        (
            -5.0,
            -9.0,
            "1 of 1 test that moved in throughput moved in CPU cost the other way: look at waits, not at CPU.",
        ),
    ],
)
def test_cost_that_goes_the_other_way_is_not_said_to_agree(change: float, cost: float, said: str) -> None:
    def moved(metric: str, by: float, better: str) -> Move:
        key = SeriesKey.parse(f"mysql|8.0|small|default|sysbench|update-index|{metric}")
        worse = (by > 0) == (better == "lower")
        return Move(
            key=key, before=1.0, after=1.0 + by / 100, change_pct=by, low_pct=by, high_pct=by, probability=0.99,
            direction="regression" if worse else "improvement", noise_pct=1.0, mde_pct=2.0,
        )  # fmt: skip

    assert _agreeing([moved("qps", change, "higher"), moved("cpu/o", cost, "lower")], shipped_metrics()) == said
    assert _agreeing([moved("qps", change, "higher")], shipped_metrics()) == ""
