"""What each resource did is judged for itself: which finding a move belongs to, and what is said of the trade."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector import DetectorSettings, detect
from detector.directions import OPPOSITE, by_kind
from history.group_summaries import groups_of
from history.metrics import shipped_metrics
from history.model import Finding, FindingKind, Move, Release, Series
from history.store import Store
from pointdrop.jobs.detect import run_detection
from presentation.headline import headline, headline_moves, title
from presentation.sentences import summary
from presentation.trades import its_way, worse_beside
from tests.alerts.scenarios import faster_for_cpu
from tests.builders import move, series, series_key

METRICS = shipped_metrics()
NAMES = ("qps", "insn/o", "cpu_us/o", "cs/o", "r/o", "wKB/o", "rss")
RELEASES = 10


@st.composite
def moves_at_a_boundary(draw: st.DrawFn, names: tuple[str, ...] = NAMES) -> list[Move]:
    places = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(names), st.sampled_from(["small", "medium"]))
    sizes = st.sampled_from([-60.0, -5.0, 5.0, 214.0])
    chosen = draw(st.dictionaries(places, st.tuples(sizes, st.booleans()), min_size=1, max_size=12))
    return [
        move(series_key(test, name, server=server), 10.0, size).model_copy(update={"near_zero": near_zero})
        for (test, name, server), (size, near_zero) in chosen.items()
    ]


def as_finding(kind: FindingKind, moves: list[Move]) -> Finding:
    return Finding(
        key=f"postgres/17/17.5/{kind}", kind=kind, tier="confirmed", dbms="postgres", line="17", previous="17.4",
        release="17.5", moves=tuple(moves), groups=groups_of(moves, {}),
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(moves_at_a_boundary())
def test_every_move_is_in_one_finding_and_no_headline_goes_the_other_way(moves: list[Move]) -> None:
    kinds = by_kind(moves, METRICS)
    placed = sorted(moved.key.id for of_kind in kinds.values() for moved in of_kind)
    assert placed == sorted(moved.key.id for moved in moves)
    for kind, of_kind in kinds.items():
        if all(moved.near_zero for moved in of_kind):
            continue
        named = headline_moves(as_finding(kind, of_kind), METRICS)
        assert named and {moved.direction for moved in named} == {kind}
        assert not any(moved.near_zero for moved in named)


@settings(max_examples=300, deadline=None)
@given(moves_at_a_boundary())
def test_what_explains_makes_no_finding_beside_throughput_or_cpu_of_the_same_test(moves: list[Move]) -> None:
    """A test whose throughput and CPU got better is in no regression, whatever its storage and switches did."""
    leads = [moved for moved in moves if METRICS[moved.key.metric].leads and not moved.near_zero]
    only_better = {moved.key.test for moved in leads} - {
        moved.key.test for moved in leads if moved.direction == "regression"
    }
    worse = by_kind(moves, METRICS).get("regression", [])
    assert only_better.isdisjoint(moved.key.test for moved in worse)


@settings(max_examples=200, deadline=None)
@given(st.one_of(moves_at_a_boundary(("qps",)), moves_at_a_boundary(("cs/o", "r/o", "wKB/o", "rss"))))
def test_turned_round_a_resource_is_in_the_other_finding(moves: list[Move]) -> None:
    def turned(moved: Move) -> Move:
        return moved.model_copy(update={"direction": OPPOSITE[moved.direction]})

    there = {moved.key.id: kind for kind, of_kind in by_kind(moves, METRICS).items() for moved in of_kind}
    back = {moved.key.id: kind for kind, of in by_kind(list(map(turned, moves)), METRICS).items() for moved in of}
    assert back == {name: OPPOSITE[kind] for name, kind in there.items()}


def changed(changes: dict[str, tuple[float, float]], seed: int = 3) -> list[Series]:
    """Eight tests; factors of throughput and CPU per operation from the sixth release on, by test."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(8):
        test = f"test-{number}"
        for metric, level, factor in zip(("qps", "cpu_us/o"), (1000.0, 50.0), changes.get(test, (1, 1)), strict=True):
            values = level * np.exp(0.004 * rng.standard_normal((RELEASES, 3)))
            values[6:] *= factor
            made.append(series(values.tolist(), test=test, metric=metric))
    return made


def test_faster_for_more_cpu_is_both() -> None:
    findings = {finding.kind: finding for finding in detect(changed({"test-0": (1.178, 3.14), "test-1": (1.1, 0.9)}))}
    worse, better = findings["regression"], findings["improvement"]
    assert [(moved.key.test, moved.key.metric) for moved in worse.moves] == [("test-0", "cpu_us/o")]
    assert {(moved.key.test, moved.key.metric) for moved in better.moves} == {
        ("test-0", "qps"), ("test-1", "qps"), ("test-1", "cpu_us/o"),
    }  # fmt: skip
    assert [moved.key.id for moved in worse.trade] == ["postgres|17|small|default|sysbench|test-0|qps"]
    assert any("got better in another resource: QPS +1" in sentence for sentence in worse.evidence)
    assert any("the gain is paid for with CPU" in sentence for sentence in better.evidence)
    assert not any("look at waits" in sentence for sentence in (*worse.evidence, *better.evidence))
    assert Finding.model_validate_json(worse.model_dump_json()) == worse


def test_less_throughput_for_less_cpu_is_one_regression() -> None:
    (finding,) = detect(changed({"test-0": (0.9, 0.8), "test-1": (0.9, 0.8)}))
    assert finding.kind == "regression" and len(finding.moves) == 4 and finding.trade == ()
    assert any("look at waits, not at CPU" in sentence for sentence in finding.evidence)
    lead = headline(finding, METRICS)
    assert lead is not None and lead.metric == "qps" and lead.trade == ""


def test_all_tests_faster_for_more_cpu_are_not_an_idle_machine() -> None:
    """Throughput from one block that moved everywhere is the machine's, unless the CPU cost moved with it."""
    rng = np.random.default_rng(8)
    made = []
    for test in range(12):
        for metric, level, sign in (("qps", 1000.0, 1), ("cpu_us/o", 50.0, 1)):
            values = level * np.exp(0.004 * rng.standard_normal((RELEASES, 1)))
            values[-1] *= 1 + sign * rng.uniform(0.1, 0.4)
            made.append(series(values.tolist(), test=f"test-{test:02}", metric=metric))
    assert {finding.kind for finding in detect(made)} == {"regression", "improvement"}


@pytest.mark.parametrize("seed", range(3))
def test_turned_round_values_are_found_in_the_other_direction(seed: int) -> None:
    loss = {"test-0": (0.9, 1.1), "test-1": (0.88, 1.12), "test-2": (1.0, 1.15)}
    gain = {test: (1 / rate, 1 / cost) for test, (rate, cost) in loss.items()}
    (worse,), (better,) = detect(changed(loss, seed)), detect(changed(gain, seed))
    assert (worse.kind, better.kind) == ("regression", "improvement")
    assert [moved.key for moved in worse.moves] == [moved.key for moved in better.moves]


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Finding]]:
    with Store.open("sqlite://") as store:
        faster_for_cpu(store)
        yield {finding.kind: finding for finding in run_detection(store, DetectorSettings())}


def test_the_first_sentence_says_the_trade(told: dict[str, Finding]) -> None:
    worse = told["regression"]
    lead = headline(worse, METRICS)
    assert lead is not None and worse.release == "8.0.27"
    assert {moved.direction for moved in worse.moves} == {"regression"}
    assert title(worse, lead).startswith("mysql 8.0.27: insert.range100 needs 21")
    assert " % more CPU for 17." in title(worse, lead)
    assert title(worse, lead).endswith("higher QPS (1 of 12 tests moved; writes, small)")
    first, _, _ = summary(worse, lead).partition(". ")
    assert ", for 17." in first


def test_what_is_listed_as_better_got_better(told: dict[str, Finding]) -> None:
    """`update-index` is faster for more KB written, which is no regression of its own and stays with it."""
    better = told["improvement"]
    assert ("wKB/o", "regression") in {(moved.key.metric, moved.direction) for moved in better.moves}
    shown = its_way(better)
    assert {moved.direction for moved in shown.moves} == {"improvement"}
    assert "wKB/o" not in {group.metric for group in shown.groups if group.moved}
    assert {(group.metric, group.tests) for group in shown.groups if group.moved} <= {
        (group.metric, group.tests) for group in better.groups
    }
    assert worse_beside(better, METRICS).startswith("KB written per operation +1")
    assert any(sentence.startswith("Worse in the same tests: KB written") for sentence in better.evidence)


def test_a_gain_that_is_less_sure_is_not_told_as_the_trade() -> None:
    """CPU was seen again side by side; throughput was measured in the older session alone."""
    from detector.detection import _with_trades

    findings = detect(changed({"test-0": (1.178, 3.14)}))
    worse = next(finding for finding in findings if finding.kind == "regression")
    sure = [
        finding.model_copy(update={"tier": "confirmed", "trade": ()}) if finding.kind == "regression" else finding
        for finding in findings
    ]
    assert worse.trade and all(
        finding.trade == () for finding in _with_trades(sure, METRICS) if finding.key == worse.key
    )


def test_a_release_without_moves_has_no_finding() -> None:
    assert by_kind([], METRICS) == {}
    assert detect(changed({}), releases=[Release(dbms="postgres", version="17.5", line="17")]) == []
