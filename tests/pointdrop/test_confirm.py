"""Suspects: what is measured again, and how it is written down for another job."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.model import Finding, FindingEvent, Move, Release, SeriesKey
from pointdrop.jobs.confirm import Suspect, confirmations, measured_again, suspects
from runners.errors import BadSettings
from runners.settings import Measure, Plan

PLAN = Plan(
    name="p",
    servers=("small",),
    measure=(
        Measure(dbms="postgres", profile="quick", newest_lines=1, configs=("default", "lz4")),
        Measure(dbms="postgres", profile="instructions", newest_lines=1, lane="instructions"),
    ),
)
KNOWN = {"postgres": [Release(dbms="postgres", version=f"17.{n}", line="17") for n in range(9)]}


def move(metric: str, change: float, config: str = "default", server: str = "small") -> Move:
    key = SeriesKey(
        dbms="postgres", line="17", server=server, config=config, benchmark="sysbench", test="scan", metric=metric
    )
    return Move(
        key=key, before=1, after=1 + change / 100, change_pct=change, low_pct=change, high_pct=change,
        direction="regression", probability=0.99, noise_pct=1, mde_pct=2,
    )  # fmt: skip


def finding(tier: str, release: int, *moves: Move, kind: str = "regression") -> Finding:
    return Finding(
        key=f"k{release}", kind=kind, tier=tier, dbms="postgres", line="17", previous=f"17.{release - 1}",
        release=f"17.{release}", moves=moves,
    )  # fmt: skip


def test_only_unsettled_findings_of_the_product_are_measured_again_largest_first() -> None:
    found = suspects(
        [
            finding("provisional", 2, move("qps", -3), move("insn/o", 1)),
            finding("confirmed", 3, move("qps", -9)),
            finding("provisional", 4, move("qps", -9), kind="environment"),
            finding("provisional", 5, move("cpu_us/o", 44), move("qps", -30)),
        ]
    )
    assert [(s.lane, s.previous, s.release) for s in found] == [
        ("time", "17.4", "17.5"),
        ("time", "17.1", "17.2"),
        ("instructions", "17.1", "17.2"),
    ]


def test_releases_that_nobody_measured_between_two_sides_are_counted_too() -> None:
    settled = finding("confirmed", 5, move("insn/o", 44)).model_copy(
        update={"previous": "17.1", "unmeasured": ("17.2",)}
    )
    (suspect,) = suspects([settled])
    (work,) = confirmations([suspect], PLAN, KNOWN)
    assert [r.version for r in work.candidates] == ["17.1", "17.2", "17.3", "17.4", "17.5"]
    narrowed = settled.model_copy(update={"unmeasured": ()})
    assert suspects([narrowed]) == []
    assert suspects([narrowed], {"postgres/17/17.5/regression"}) == [suspect], "somebody asked for it"


def test_suspects_of_one_place_share_a_session_and_its_releases() -> None:
    wanted = suspects(
        [
            finding("provisional", 2, move("qps", -3), move("insn/o", 1)),
            finding("provisional", 3, move("qps", -4), move("qps", -4, config="lz4")),
        ]
    )
    work = confirmations(wanted, PLAN, KNOWN)
    assert [(w.config, w.measure.lane, [r.version for r in w.candidates], w.measure.blocks) for w in work] == [
        ("default", "time", ["17.1", "17.2", "17.3"], 4),
        ("lz4", "time", ["17.2", "17.3"], 4),
        ("default", "instructions", ["17.1", "17.2"], 1),
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
        confirmations([Suspect.parse(text)], PLAN, KNOWN)


def test_a_request_is_done_when_its_own_finding_was_measured() -> None:
    day = datetime(2026, 11, 21, tzinfo=UTC)
    drift = finding("confirmed", 6, move("qps", -4), kind="drift")
    found = [finding("confirmed", 2, move("qps", -3)), finding("confirmed", 3, move("qps", -9)), drift]
    asked = [
        FindingEvent(key=key, event="rerun-requested", at=day)
        for key in ("postgres/17/17.2/regression", "postgres/17/17.3/regression", "postgres/17/drift", "nobody")
    ]
    measured = suspects(found[:1], {asked[0].key})
    assert measured_again(asked, found, measured) == asked[:1]
    assert measured_again(asked, found, suspects([drift], {"postgres/17/drift"})) == [asked[2]]
    assert measured_again(asked, found, [replace(measured[0], server="medium")]) == [], "another machine's work"


names = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,8}", fullmatch=True)
versions = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}(rc[0-9])?", fullmatch=True)


@given(names, names, versions, versions)
def test_a_suspect_survives_being_written_down(server: str, config: str, previous: str, release: str) -> None:
    suspect = Suspect(server, "postgres", config, "sysbench", "time", previous, release)
    assert Suspect.parse(str(suspect)) == suspect
