"""Timed values of several sessions: compared through what two of them measured, with its noise, or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detector import detect
from detector.explanation import explain
from detector.releases.cells import Cells, Measured, joint
from detector.releases.epochs import scales_of
from detector.releases.session_join import join_sessions
from history.metrics import shipped_metrics
from history.model import BlockValue, Finding, Point, Series
from history.versions import version_key
from tests.builders import METRICS, series_key

#: The machine's speed by session, against the first.
Speeds = Mapping[str, float]
#: By session, its control and the releases that it measures.
Sessions = Mapping[str, tuple[str, Sequence[str]]]
CHECKS = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])

#: The newest of two lines, each beside the first of its own.
FIRST_NIGHT: Sessions = {"s17": ("17.0", ["17.11"]), "s18": ("18.0", ["18.6"])}
#: A line that was filled in one session, and two releases since, each in a session of its own.
LINE: Sessions = {
    "s0": ("17.0", ["17.1", "17.2", "17.3", "17.4", "17.5"]),
    "s1": ("17.0", ["17.6"]),
    "s2": ("17.0", ["17.7"]),
}


def history(
    sessions: Sessions,
    *,
    seed: int = 1,
    noise: float = 0.01,
    tests: int = 8,
    blocks: int = 2,
    speeds: Speeds | None = None,
    slower: Mapping[str, float] | None = None,
    moving: int = 8,
    bad: Mapping[tuple[str, str], float] | None = None,
    metrics: Sequence[str] = ("qps", "cpu_us/o"),
    line: str = "",
) -> list[Series]:
    """Series of one line, or of the releases that are nobody's control.

    `slower` is by how much a release, and all after it, lose in the first `moving` tests; `bad` by how much the first
    block of a (session, release) is off in every test.
    """
    rng = np.random.default_rng(seed)
    made = []
    for number in range(tests):
        for metric in metrics:
            better = 1.0 if METRICS[metric].better == "higher" else -1.0
            points: dict[str, list[BlockValue]] = {}
            control: dict[str, tuple[float, ...]] = {}
            for session, (pinned, versions) in sessions.items():
                for version in [pinned, *versions]:
                    lost = [
                        math.log1p(-share)
                        for since, share in (slower or {}).items()
                        if number < moving and version_key("postgres", since) <= version_key("postgres", version)
                    ]
                    level = better * (math.log((speeds or {}).get(session, 1.0)) + sum(lost))
                    logs = level + noise * rng.standard_normal(blocks)
                    logs[0] += better * (bad or {}).get((session, version), 0.0)
                    values = (1000.0 * np.exp(logs)).tolist()
                    if version == pinned:
                        control[session] = tuple(values)
                    if not line or version.split(".")[0] == line:
                        points.setdefault(version, []).extend(
                            BlockValue(value, f"{session}/{version}/{at}", session, "host", "epoch")
                            for at, value in enumerate(values)
                        )
            for pinned in set() if line else {pinned for pinned, _ in sessions.values()}:
                points.pop(pinned, None)
            ordered = sorted(points, key=lambda version: version_key("postgres", version))
            made.append(
                Series(
                    key=series_key(f"test-{number}", metric, line=line or "majors"),
                    better=METRICS[metric].better,
                    points=tuple(
                        Point(version=version, position=at, values=tuple(points[version]))
                        for at, version in enumerate(ordered)
                    ),
                    control=control,
                    control_versions={session: pinned for session, (pinned, _) in sessions.items()},
                )
            )
    return made


def with_blocks(member: Series, made_of: Callable[[BlockValue], BlockValue], *, order: Random | None = None) -> Series:
    points = []
    for point in member.points:
        blocks = [made_of(block) for block in point.values]
        if order:
            order.shuffle(blocks)
        points.append(point.model_copy(update={"values": tuple(blocks)}))
    return member.model_copy(update={"points": tuple(points)})


def told(findings: Sequence[Finding]) -> dict[tuple[str, str], dict[tuple[str, str], float]]:
    """By kind and release, the change of every test and metric."""
    return {
        (finding.kind, finding.release): {(move.key.test, move.key.metric): move.change_pct for move in finding.moves}
        for finding in findings
    }


@pytest.mark.parametrize("noise", [0.01, 0.15])
def test_two_sessions_with_two_controls_show_nothing(noise: float) -> None:
    """The first night: 18.6 read 31 % slower than 17.11, each measured beside the first release of its own line."""
    for seed in range(10):
        assert detect(history(FIRST_NIGHT, seed=seed, noise=noise, speeds={"s18": 0.69})) == []


def test_two_neighbours_in_one_session_of_a_noisy_machine_show_nothing_that_is_not_there() -> None:
    """Two seconds on a virtual machine: 15 % from block to block, half of it shared by the tests of a block."""
    together = {"s18": ("18.0", ["17.11", "18.6"])}
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        luck = {("s18", version): 0.15 * rng.standard_normal() for version in ("17.11", "18.6")}
        found += bool(detect(history(together, seed=seed, noise=0.11, bad=luck)))
    assert found == 0


@pytest.mark.parametrize(("blocks", "least", "most"), [(2, 0, 2), (24, 7, 8)])
def test_what_two_blocks_cannot_show_many_do(blocks: int, least: int, most: int) -> None:
    """All eight tests lose a quarter, at 15 % of noise."""
    together = {"s18": ("18.0", ["17.11", "18.6"])}
    for seed in range(5):
        findings = detect(history(together, seed=seed, noise=0.15, blocks=blocks, slower={"18.6": 0.25}))
        assert {kind for kind, _ in told(findings)} <= {"regression", "environment"}
        assert least <= len({move.key.test for finding in findings for move in finding.moves}) <= most


def test_a_machine_that_is_slower_in_one_session_is_no_finding() -> None:
    for seed in range(10):
        assert detect(history(LINE, seed=seed, line="17", speeds={"s1": 0.8, "s2": 1.3})) == []


def test_a_step_that_stays_is_found_through_the_control_in_its_own_size() -> None:
    findings = detect(history(LINE, line="17", speeds={"s1": 0.8, "s2": 1.3}, slower={"17.6": 0.12}, moving=4))
    ((boundary, changes),) = told(findings).items()
    assert boundary == ("regression", "17.6")
    assert {test for test, _ in changes} == {f"test-{number}" for number in range(4)}
    assert all(change == pytest.approx(-12, abs=4) for (_, metric), change in changes.items() if metric == "qps")
    (finding,) = findings
    assert "local: 3 timed sessions are compared through what two or more of them measured." in finding.evidence
    assert not any("one session, so the machine is the same" in sentence for sentence in finding.evidence)
    assert not any("control release moved" in sentence for sentence in finding.evidence)


def test_what_was_counted_says_nothing_of_timed_sessions() -> None:
    """Counts of two sessions need no join; the finding said that its sessions were joined all the same."""
    timed = history(LINE, line="17", speeds={"s1": 0.8, "s2": 1.3})
    counted = history(LINE, line="17", slower={"17.6": 0.12}, moving=4, noise=0.0005, metrics=["insn/o"])
    (finding,) = detect([*timed, *counted])
    assert {move.key.metric for move in finding.moves} == {"insn/o"}
    assert not [sentence for sentence in finding.evidence if "sessions are" in sentence]


def test_metrics_that_nothing_tells_the_noise_of_are_one_sentence() -> None:
    """Twelve lines of a night's issue said it, a metric each."""
    metrics = ("qps", "cpu_us/o", "cpu/o", "cs/o")
    every = [f"17.{number}" for number in range(1, 8)]
    timed = history({"s0": ("17.0", every)}, line="17", blocks=1, metrics=metrics)
    counted = history(LINE, line="17", slower={"17.6": 0.12}, moving=4, noise=0.0005, metrics=["insn/o"])
    (finding,) = detect([*timed, *counted])
    (sentence,) = [sentence for sentence in finding.evidence if "not judged" in sentence]
    assert sentence == (
        "local: qps, cpu/o and 2 more timed metrics are not judged: no release has two blocks that would tell their "
        "noise."
    )


def test_a_boundary_is_named_for_releases_that_what_moved_was_measured_at() -> None:
    """Between majors 17.11 and 18.6 were counted, and 18.0 only timed: the counts of 18.6 are no step of 18.0."""
    timed = history({"s18": ("18.0", ["17.11"])}, blocks=2, metrics=["qps"])
    timed = [with_control(member) for member in timed]
    versions = ["13.23", "14.24", "15.19", "16.15", "17.11", "18.6"]
    counted = history({"c": ("12.0", versions)}, slower={"18.6": 0.05}, moving=4, noise=0.0005, metrics=["insn/o"])
    order = {version: at for at, version in enumerate(["13.23", "14.24", "15.19", "16.15", "17.11", "18.0", "18.6"])}
    made = [
        member.model_copy(
            update={
                "points": tuple(point.model_copy(update={"position": order[point.version]}) for point in member.points)
            }
        )
        for member in (*timed, *counted)
    ]
    (finding,) = detect(made)
    assert (finding.previous, finding.release) == ("17.11", "18.6")
    assert {move.key.metric for move in finding.moves} == {"insn/o"}


def with_control(member: Series) -> Series:
    """The series with its control release as a point."""
    ((session, values),) = member.control.items()
    blocks = tuple(
        BlockValue(value, f"{session}/18.0/{at}", session, "host", "epoch") for at, value in enumerate(values)
    )
    return member.model_copy(update={"points": (*member.points, Point(version="18.0", position=9, values=blocks))})


def test_a_bad_block_of_the_control_does_not_move_all_tests() -> None:
    """All tests of one block of the control were 15 % slow, so that all eight of the new release look 8 % faster."""
    moved = []
    for seed in range(10):
        made = history(LINE, seed=seed, line="17", noise=0.04, bad={("s2", "17.0"): -0.15})
        moved.append(len({move.key.test for finding in detect(made) for move in finding.moves}))
    assert max(moved) <= 2 and moved.count(0) >= 8


def test_a_release_that_two_sessions_measured_joins_them() -> None:
    """17.11 beside 18.6 joins the sessions of both lines, whatever their controls."""
    night = {"s17": ("17.0", ["16.15", "17.11"]), "s18": ("18.0", ["17.11", "18.6"])}
    assert detect(history(night, speeds={"s18": 0.7})) == []
    made = history(night, speeds={"s18": 0.7}, slower={"18.6": 0.1})
    assert set(told(detect(made))) == {("regression", "18.6")}
    assert not any("in common" in scales_of(one, shipped_metrics()).sentence for one in made)


@CHECKS
@given(seed=st.integers(0, 50), session=st.sampled_from(sorted(LINE)), factor=st.floats(0.3, 3.0))
def test_a_session_in_which_all_was_faster_says_the_same(seed: int, session: str, factor: float) -> None:
    def of(speeds: Speeds) -> dict[tuple[str, str], dict[tuple[str, str], float]]:
        findings = detect(history(LINE, seed=seed, line="17", speeds=speeds, slower={"17.3": 0.06, "17.7": 0.1}))
        return {at: {key: round(change, 6) for key, change in moves.items()} for at, moves in told(findings).items()}

    assert of({session: factor}) == of({}) != {}


def test_counts_are_compared_from_session_to_session() -> None:
    """They do not depend on the hour, so two sessions with two controls are one history."""
    made = history(FIRST_NIGHT, noise=0.0005, slower={"18.6": 0.1}, moving=4, metrics=["insn/o"])
    assert set(told(detect(made))) == {("regression", "18.6")}


def test_without_anything_measured_twice_no_prior_decides() -> None:
    once = {"s18": ("18.0", ["17.11", "18.6"])}
    made = history(once, blocks=1, slower={"18.6": 0.5})
    assert detect(made) == []
    said = explain(made, made[0].key)
    assert any("not judged: no release has two blocks that would tell" in note for note in said.notes)
    again = {**once, "later": ("18.0", ["18.6"])}
    assert set(told(detect(history(again, blocks=1, slower={"18.6": 0.5}))))


def test_a_session_that_lost_its_control_is_compared_with_none() -> None:
    made = history(LINE, line="17", speeds={"s2": 0.7})
    lost = [
        one.model_copy(
            update={
                "points": tuple(
                    point.model_copy(
                        update={
                            "values": tuple(
                                value for value in point.values if (value.session_id, point.version) != ("s2", "17.0")
                            )
                        }
                    )
                    for point in one.points
                ),
                "control": {session: values for session, values in one.control.items() if session != "s2"},
            }
        )
        for one in made
    ]
    assert detect(lost) == []


def measured(values: Mapping[str, Mapping[str, Sequence[float]]]) -> Measured:
    """Values by session and version in their cells."""
    every = [(session, version, cell) for session, of in values.items() for version, cell in of.items()]
    cells = Cells([(session, version) for session, version, cell in every for _ in cell])
    return Measured(cells, cells.summaries(np.array([value for *_, cell in every for value in cell])))


@given(
    shifts=st.lists(st.floats(-1, 1), min_size=1, max_size=5),
    levels=st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    seed=st.integers(0, 1000),
)
def test_shifts_without_noise_are_exact_whatever_chain_of_releases_joins_them(
    shifts: list[float], levels: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    chains = [sorted({number % 6, (number + 1) % 6, *rng.integers(0, 6, 2).tolist()}) for number in range(len(shifts))]
    values = {
        f"s{number}": {f"17.{v}": [100.0 * math.exp(levels[v] + shift)] * int(rng.integers(1, 4)) for v in chain}
        for number, (shift, chain) in enumerate(zip(shifts, chains, strict=True))
    }
    found = join_sessions(measured(values), "s0")
    assert set(found) == set(values)
    assert [found[f"s{n}"] for n in range(len(shifts))] == pytest.approx(
        [shift - shifts[0] for shift in shifts], abs=1e-9
    )


def test_the_covariance_of_a_join_is_that_of_its_shifts() -> None:
    rng = np.random.default_rng(3)
    design = {"a": {"17.0": 2, "17.1": 1}, "b": {"17.0": 2, "17.2": 1}, "c": {"17.2": 2, "17.1": 1}}
    drawn = []
    for _ in range(4000):
        values = {
            scale: {version: np.exp(rng.standard_normal(count) * 0.01).tolist() for version, count in of.items()}
            for scale, of in design.items()
        }
        cells = measured(values)
        drawn.append(list(join_sessions(cells, "a").values()))
    seen = np.cov(np.array(drawn).T) / 0.01**2
    assert seen == pytest.approx(joint(cells.cells, "a").covariance, rel=0.15, abs=0.06)


@pytest.mark.parametrize("metrics", [("qps", "cpu_us/o"), ("insn/o",)])
def test_the_order_of_arrival_changes_no_byte_of_what_sessions_say(metrics: Sequence[str]) -> None:
    """Eight sessions with releases in common, in four epochs where instructions are counted."""
    sessions = {f"s{at}": ("17.0", [f"17.{number}" for number in range(max(1, at - 1), at + 2)]) for at in range(8)}
    made = history(sessions, blocks=3, slower={"17.4": 0.3, "17.8": 0.06}, moving=5, metrics=metrics)
    made = [
        with_blocks(member, lambda block: block._replace(epoch=f"e{-int(block.session_id[1:]) // 2}"))
        for member in made
    ]
    once = [finding.model_dump_json() for finding in detect(made)]
    for seed in range(3):
        random = Random(seed)
        shuffled = [
            with_blocks(member, lambda block: block, order=random).model_copy(
                update={"control": dict(random.sample(list(member.control.items()), len(member.control)))}
            )
            for member in made
        ]
        random.shuffle(shuffled)
        assert [finding.model_dump_json() for finding in detect(shuffled)] == once != []
