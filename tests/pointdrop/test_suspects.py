"""Suspects: what is measured again, and how it is written down for another job."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector import DetectorSettings
from history.errors import BadSettings
from history.metrics import shipped_metrics
from history.model import BlockValue, ExplainedStep, Finding, FindingEvent, Move, Point, Release, Series, SeriesKey
from history.store import Store
from pointdrop.cli.main import command_tree
from pointdrop.jobs import nightly
from pointdrop.jobs.measurement import Measured
from pointdrop.jobs.measurement_requests import (
    MOST_SIDE_BY_SIDE,
    answered_requests,
    request_result,
    suspects_to_measure,
)
from pointdrop.jobs.suspects import (
    MOST_SUSPECTS,
    Suspect,
    confirmation_work,
    in_plan,
    suspects,
    with_available_releases,
)
from presentation.ranking import finding_order
from runners.settings import Measure, Plan
from tests.builders import Writer

METRICS = shipped_metrics()
PLAN = Plan(
    name="p",
    servers=("small",),
    measure=(
        Measure(dbms="postgres", profile="quick", newest_lines=1, configs=("default", "lz4")),
        Measure(dbms="postgres", profile="instructions", newest_lines=1, lane="instructions"),
    ),
)
KNOWN = {"postgres": [Release(dbms="postgres", version=f"17.{n}", line="17") for n in range(9)]}


def move(metric: str, change: float, config: str = "default", server: str = "small", test: str = "scan") -> Move:
    key = SeriesKey(
        dbms="postgres", line="17", server=server, config=config, benchmark="sysbench", test=test, metric=metric
    )
    return Move(
        key=key, before=1, after=1 + change / 100, change_pct=change, low_pct=change, high_pct=change,
        direction="regression", probability=0.99, noise_pct=1, mde_pct=2,
    )  # fmt: skip


def finding(tier: str, release: int, *moves: Move, kind: str = "regression") -> Finding:
    """A finding whose moves are as sure as it is."""
    own = {"tier": tier, "judged_in": int(tier != "provisional")}
    moves = tuple(move.model_copy(update=own) for move in moves)
    return Finding(
        key=f"k{release}", kind=kind, tier=tier, dbms="postgres", line="17", previous=f"17.{release - 1}",
        release=f"17.{release}", moves=moves,
    )  # fmt: skip


def test_only_unsettled_findings_of_the_product_are_measured_again_the_most_severe_first() -> None:
    found = suspects(
        [
            finding("provisional", 2, move("qps", -3), move("insn/o", 1)),
            finding("confirmed", 3, move("qps", -9)),
            finding("provisional", 4, move("qps", -9), kind="environment"),
            finding("provisional", 5, move("cpu_us/o", 44), move("qps", -30)),
            finding("provisional", 6, move("qps", -5), move("insn/o", 2, config="lz4")),
            finding("provisional", 7, move("qps", 20), kind="improvement"),
            finding("provisional", 8, move("insn/o", -8), kind="improvement"),
        ],
        METRICS,
    )
    assert [(s.lane, s.config, s.previous, s.release) for s in found] == [
        ("time", "default", "17.4", "17.5"),
        ("time", "default", "17.5", "17.6"),
        ("instructions", "lz4", "17.5", "17.6"),
        ("instructions", "default", "17.1", "17.2"),
        ("instructions", "default", "17.7", "17.8"),
    ], "what got faster comes last"


def test_suspects_stand_in_the_order_in_which_findings_are_filed() -> None:
    """A cost of +214 % is no more than a rate of −70 %, one test less than four, and what is not sure weighs less."""
    cost, rate, wide, unsure, disk = (
        finding("provisional", 2, move("insn/o", 214)),
        finding("provisional", 3, move("insn/o", -70)),
        finding("provisional", 4, *(move("insn/o", 50, test=f"t{n}") for n in range(4))),
        finding("provisional", 5, move("insn/o", 230).model_copy(update={"probability": 0.6})),
        finding("provisional", 6, *(move("wKB/o", 900, test=f"t{n}") for n in range(9))),
    )
    found = [cost, unsure, disk, wide, rate]
    wanted = [suspect.release for suspect in suspects(found, METRICS)]
    assert wanted == ["17.4", "17.3", "17.2", "17.5", "17.6"]
    assert wanted == [one.release for one in sorted(found, key=lambda one: finding_order(one, METRICS))]


def test_who_asks_gets_both_lanes() -> None:
    both = finding("confirmed", 2, move("qps", -3), move("insn/o", 1))
    assert suspects([both], METRICS) == []
    assert [s.lane for s in suspects([both], METRICS, {"postgres/17/17.2/regression"})] == ["time", "instructions"]


def test_time_is_measured_again_where_counted_instructions_do_not_explain_it_however_sure_they_are() -> None:
    counted = move("insn/o", 1.6).model_copy(update={"tier": "confirmed", "judged_in": 1})
    luck = move("cpu_us/o", 49.0).model_copy(update={"counted_pct": 1.6})
    one = finding("confirmed", 2).model_copy(update={"moves": (counted, luck)})
    assert [str(each).split("/")[4] for each in suspects([one], METRICS)] == ["time"]
    explained = luck.model_copy(update={"counted_pct": None})
    assert suspects([one.model_copy(update={"moves": (counted, explained)})], METRICS) == []
    twice = luck.model_copy(update={"judged_in": 2})
    assert suspects([one.model_copy(update={"moves": (counted, twice)})], METRICS) == [], "it stays suspected"
    no_cost = move("cs/o", 30.0)
    assert suspects([one.model_copy(update={"moves": (counted, no_cost)})], METRICS) == [], "nothing is named for it"


def test_what_the_first_session_discovered_is_measured_again_the_same_night_and_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """17.1..17.5 turns out to be 17.2..17.3; 17.7..17.8 stays unclear, and waits for the next night."""
    place = "small/postgres/default/sysbench/instructions"
    wide, unclear = (Suspect.parse(f"{place}/{sides}") for sides in ("17.1..17.5", "17.7..17.8"))
    narrow = Suspect.parse(f"{place}/17.2..17.3")
    nights = [[wide, unclear], [narrow, unclear], [narrow]]
    measured: list[list[Suspect]] = []

    def measured_again(*given: object) -> bool:
        measured.append(list(given[3]))  # type: ignore[call-overload]
        return bool(given[3])

    monkeypatch.setattr(nightly, "suspects_to_measure", lambda *_: nights.pop(0))
    monkeypatch.setattr(nightly, "_measured_again", measured_again)
    monkeypatch.setattr(nightly, "_detected", lambda *_: [])
    setup = SimpleNamespace(store=None)
    nightly._confirmed(setup, PLAN, "small", [], DetectorSettings(), Measured(), 0.0)  # type: ignore[arg-type]
    assert measured == [[wide, unclear], [narrow]]


def test_what_decides_nothing_is_not_measured_again() -> None:
    """What is near zero, a step between majors that point releases explain, and the clock of a line that another one
    leads; what was refuted is not narrowed."""
    near = move("cpu_us/o", 900.0).model_copy(update={"near_zero": True})
    counted = finding("provisional", 2, move("insn/o", 45.0))
    assert suspects([finding("provisional", 3, near)], METRICS) == []
    member = finding("provisional", 3, move("insn/o", 44.0), move("qps", -30.0, config="lz4"))
    member = member.model_copy(update={"same_as": counted.key})
    assert [one.lane for one in suspects([counted, member], METRICS)] == ["instructions", "instructions"]
    whole = ExplainedStep(
        key=counted.moves[0].key, change_pct=45, explained_pct=45, rest_pct=0, by=("other",), whole=True
    )
    explained = counted.model_copy(update={"explained": (whole,), "explained_by": ("other",)})
    assert suspects([explained], METRICS) == []
    assert len(suspects([explained], METRICS, {explained.key})) == 1
    refuted = finding("unconfirmed", 5, move("insn/o", 3.0)).model_copy(update={"unmeasured": ("17.3",)})
    assert suspects([refuted], METRICS) == []


def test_no_boundary_is_measured_again_for_ever() -> None:
    """Some moves are judged by no session: the test is gone, or the two releases by themselves do not show it."""
    one = finding("provisional", 5, move("qps", -3.0))
    sides = [Release(dbms="postgres", version=version, line="17") for version in ("17.4", "17.5")]
    with Store.open("sqlite://") as store:
        writer = Writer(store)
        for night in range(MOST_SIDE_BY_SIDE):
            session = writer.session(f"night-{night}", "small", night)
            failed = writer.session(f"failed-{night}", "small", night)
            assert len(suspects_to_measure(store, [one], METRICS)) == 1
            for release in sides:
                writer.run(session, release, "default", "sysbench", lambda _: [], blocks=1, lane="time")
                writer.run(failed, release, "default", "sysbench", lambda _: [], blocks=0, failed=1, lane="time")
        assert suspects_to_measure(store, [one], METRICS) == []
        assert len(suspects_to_measure(store, [one.model_copy(update={"release": "17.6"})], METRICS)) == 1
        store.append_event(FindingEvent(key=one.key, event="rerun-requested", at=datetime.now(UTC)))
        assert len(suspects_to_measure(store, [one], METRICS)) == 1, "somebody asked"


def test_a_slow_drift_is_measured_again_only_when_somebody_asks() -> None:
    drift = finding("provisional", 2, move("qps", -5.0), kind="drift")
    assert suspects([drift], METRICS) == [] and len(suspects([drift], METRICS, {drift.key})) == 1


def test_large_steps_of_the_time_lane_take_no_place_of_counted_ones() -> None:
    many = [finding("provisional", 1 + n % 8, move("qps", -50 - n, config=f"c{n}")) for n in range(MOST_SUSPECTS + 5)]
    small = finding("provisional", 5, move("insn/o", 1.0))
    found, _ = with_available_releases(suspects([*many, small], METRICS), KNOWN)
    assert found[0].lane == "instructions" and len(found) == 1 + MOST_SUSPECTS


def test_a_step_between_two_builders_is_measured_again_only_when_somebody_asks() -> None:
    built = finding("provisional", 2, move("insn/o", 9)).model_copy(update={"cause": "toolchain"})
    assert suspects([built], METRICS) == []
    assert len(suspects([built], METRICS, {built.key})) == 1


def test_releases_that_nobody_measured_between_two_sides_are_counted_too() -> None:
    settled = finding("confirmed", 5, move("insn/o", 44)).model_copy(
        update={"previous": "17.1", "unmeasured": ("17.2",)}
    )
    (suspect,) = suspects([settled], METRICS)
    (work,) = confirmation_work([suspect], PLAN, KNOWN)
    assert [r.version for r in work.candidates] == ["17.1", "17.2", "17.3", "17.4", "17.5"]
    debian = Release(dbms="postgres", version="17.3+debian", line="17")
    (same,) = confirmation_work([suspect], PLAN, {"postgres": [*KNOWN["postgres"], debian]})
    assert same.candidates == work.candidates, "another builder's are measured by name alone"
    narrowed = settled.model_copy(update={"unmeasured": ()})
    assert suspects([narrowed], METRICS) == []
    assert suspects([narrowed], METRICS, {"postgres/17/17.5/regression"}) == [suspect], "somebody asked for it"


def test_suspects_of_one_place_share_a_session_and_its_releases() -> None:
    wanted = suspects(
        [
            finding("provisional", 2, move("qps", -3)),
            finding("provisional", 3, move("qps", -4), move("qps", -4, config="lz4")),
            finding("provisional", 6, move("insn/o", 1)),
        ],
        METRICS,
    )
    work = confirmation_work(wanted, PLAN, KNOWN)
    assert [(w.config, w.measure.lane, [r.version for r in w.candidates], w.measure.blocks) for w in work] == [
        ("default", "time", ["17.1", "17.2", "17.3"], 4),
        ("lz4", "time", ["17.2", "17.3"], 4),
        ("default", "instructions", ["17.5", "17.6"], 1),
    ]
    assert all(w.again and w.control == w.candidates[0] for w in work)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("small/postgres/default/sysbench/time/17.1", "the form is"),
        ("small/postgres/default/sysbench/time/17.1..99.9", "99.9: not a known"),
        ("small/postgres/other/sysbench/time/17.1..17.2", "measures no such thing"),
        ("small/postgres/default/sysbench/time/17.1..17.2;rm -rf", "the form is"),
    ],
)
def test_a_suspect_that_cannot_be_measured_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        confirmation_work([Suspect.parse(text)], PLAN, KNOWN)


def test_what_a_plan_cannot_measure_takes_no_place_and_stops_no_night() -> None:
    published = [
        finding("provisional", 1 + n % 8, move("qps", -50 - n, server="elsewhere", config=f"c{n}"))
        for n in range(MOST_SUSPECTS)
    ]
    other_plan = finding("provisional", 4, move("qps", -40, config="of-another-plan"))
    gone = finding("provisional", 9, move("qps", -30))  # no source has 17.9 any more
    real = finding("provisional", 5, move("qps", -3))
    found, lost = with_available_releases(in_plan(suspects([*published, other_plan, gone, real], METRICS), PLAN), KNOWN)
    assert [str(one) for one in found] == ["small/postgres/default/sysbench/time/17.4..17.5"]
    assert [sentence.split(":")[0] for sentence in lost] == ["small/postgres/default/sysbench/time/17.8..17.9"]
    assert len(confirmation_work(found, PLAN, KNOWN)) == 1


def measured(key: SeriesKey, **blocks: str) -> Series:
    """One value a release and session: `measured(key, r1="a", r2="ab")` is 17.1 in session a, 17.2 in a and b."""
    points = tuple(
        Point(
            version=f"17.{name[1:]}", position=int(name[1:]),
            values=tuple(BlockValue(1.0, f"{name}{one}", one, "bee", "e") for one in sessions),
        )
        for name, sessions in blocks.items()
    )  # fmt: skip
    return Series(key=key, unit="", better="lower", points=points)


def test_a_request_is_answered_by_a_session_of_both_sides_that_began_after_it() -> None:
    day = datetime(2026, 11, 21, tzinfo=UTC)
    started = {"a": day - timedelta(hours=1), "b": day + timedelta(hours=1)}
    here, there = move("qps", -3), move("qps", -3, server="medium")
    found = [finding("confirmed", 2, here), finding("confirmed", 3, there)]
    asked = [
        FindingEvent(key=key, event="rerun-requested", at=day)
        for key in ("postgres/17/17.2/regression", "postgres/17/17.3/regression", "nobody")
    ]

    def done(*series: Series) -> list[str]:
        return [request.key for request in answered_requests(asked, found, series, started)]

    assert done() == ["nobody"], "what is no finding any more has nothing to measure"
    assert done(measured(here.key, r1="a", r2="a")) == ["nobody"], "measured before it was asked"
    assert done(measured(here.key, r1="a", r2="b")) == ["nobody"], "not side by side"
    assert done(measured(here.key, r1="ab", r2="b")) == [asked[0].key, "nobody"]
    assert done(measured(there.key, r2="b", r3="b"), measured(here.key, r1="b", r2="b")) == [one.key for one in asked]


def test_what_came_of_a_request_is_said_with_the_honest_interval() -> None:
    evidence = (
        "2 of 8 tests moved.",
        "Discovered in 2 blocks of session a; confirmed by 2 blocks of session b, measured side by side: 2 of 2 moves "
        "were seen again.",
    )
    counted = move("insn/o", 45.0)
    one = finding("confirmed", 2, move("qps", -38.0), counted).model_copy(update={"evidence": evidence})
    sources = {"postgres": "https://example.org/compare/TAG_{previous_}...TAG_{release_}"}
    assert request_result("rerun-requested", [one], sources, METRICS) == {
        "text": f"Both sides were measured again in one session: confirmed. {evidence[1]}"
    }
    assert "command" not in request_result("bisect-requested", [one], {}, METRICS)
    told = request_result("bisect-requested", [one], sources, METRICS)
    assert "The change came after 17.1, with 17.2. No release lies between them" in told["text"]
    program, verb, *words = shlex.split(told["command"])
    command = command_tree().get_command(None, verb)  # type: ignore[attr-defined]
    asked = command.make_context(verb, list(words)).params
    assert program == "pointdrop" and (asked["good"], asked["bad"]) == ("TAG_17_1", "TAG_17_2")
    assert (asked["metric"], asked["test"], asked["dbms"]) == ("insn/o", counted.key.test, "postgres")
    wide = one.model_copy(update={"unmeasured": ("17.1.1", "17.1.2")})
    told = request_result("bisect-requested", [wide], sources, METRICS)
    assert "after 17.1, with one of 17.1.1, 17.1.2 or 17.2." in told["text"] and "command" not in told
    gone = one.model_copy(update={"tier": "unconfirmed"})
    told = request_result("bisect-requested", [gone], sources, METRICS)
    assert "not seen again" in told["text"] and "The change came" not in told["text"] and "command" not in told
    assert "nothing left to measure" in request_result("bisect-requested", [], sources, METRICS)["text"]


names = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,8}", fullmatch=True)
versions = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}(rc[0-9])?", fullmatch=True)


@given(names, names, st.sampled_from(["sysbench", "insert", "insert-io"]), versions, versions)
def test_a_suspect_survives_being_written_down(
    server: str, config: str, benchmark: str, previous: str, release: str
) -> None:
    suspect = Suspect(server, "postgres", config, benchmark, "time", previous, release)
    assert Suspect.parse(str(suspect)) == suspect
