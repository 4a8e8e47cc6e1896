"""What a finding says, in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.metrics import shipped_metrics
from history.model import Cause, Finding
from presentation import sentences
from presentation.headline import headline
from presentation.sentences import MOST_ABSENT, absent_versions
from tests.builders import finding, move, series_key

METRICS = shipped_metrics()
CHANGES = {"point-query": 3.1, "hot-points": 4.9, "range-covered": 1.2}


def summary(of: Finding) -> str:
    lead = headline(of, METRICS)
    assert lead is not None
    return sentences.summary(of, lead)


def test_a_regression() -> None:
    assert summary(finding(changes=CHANGES)) == (
        "Point queries and range queries on postgres 17.5 need 3.1 % more instructions per operation than on 17.4 "
        "(median of the tests that moved, 3 of 22 tests on local; most in hot-points: +4.9 %)."
    )


def test_throughput_is_got_and_has_no_operation() -> None:
    rates = finding(moves=[move(series_key(test, "qps"), 1000.0, -5.0) for test in ("scan", "insert")])
    assert "get 5.0 % lower QPS than 17.4 (" in summary(rates)


def test_a_drift_is_of_the_line_and_dated_to_where_it_was_clear() -> None:
    """The change that a drift states is that of the newest release, not of the one at which it could be told."""
    text = summary(finding("17.6", "17.0", kind="drift", changes=CHANGES))
    assert "on postgres 17 need 3.1 % more instructions per operation than on 17.0 in small steps" in text
    assert "it is clear since 17.6" in text


def test_an_environment_shift_is_no_release() -> None:
    text = summary(finding(kind="environment", changes=CHANGES))
    assert text.startswith("On local the tests need 3.1 % more instructions per operation since postgres 17.5 was")
    assert "the evidence points at the machine, not at Postgres" in text
    shift = finding(kind="environment", servers=("Bee-1",), changes=CHANGES)
    assert summary(shift).startswith("On Bee-1 the tests"), "a name keeps its capitals"


def test_one_test_and_few_tests_far_apart_have_no_median() -> None:
    assert "(point-query, the only one of 11 tests that moved on local)" in summary(
        finding(changes={"point-query": 3.0})
    )
    text = summary(finding(changes={"point-query": 45.0, "hot-points": 1.1}))
    assert "need 1.1 to 45.0 % more instructions" in text and "median of" not in text
    assert "(2 of 11 tests on local; most in point-query: +45.0 %)" in text


def test_other_metrics_are_counted() -> None:
    counted = finding(changes={"point-query": 45.0, "hot-points": 1.1})
    also = [
        moved.model_copy(update={"key": moved.key.model_copy(update={"metric": "cpu_us/o"})}) for moved in counted.moves
    ]
    both = counted.model_copy(update={"moves": (*counted.moves, *also)})
    lead = headline(both, METRICS)
    assert lead is not None
    assert sentences.other_metrics(lead, METRICS).endswith(" per operation +1.1 to +45.0 % in 2 tests")
    rest = [move(series_key("insert", metric), 1.0, 9.0) for metric in ("cs/o", "wKB/o")]
    lead = headline(both.model_copy(update={"moves": (*both.moves, *rest)}), METRICS)
    assert lead is not None
    assert sentences.other_metrics(lead, METRICS).endswith(" and 2 other metrics")
    lead = headline(counted.model_copy(update={"moves": (*counted.moves, *rest)}), METRICS)
    assert lead is not None
    assert sentences.other_metrics(lead, METRICS) == f"{METRICS['cs/o'].noun} and {METRICS['wKB/o'].noun}"


def test_the_noise_and_what_could_have_been_found() -> None:
    lead = headline(finding(), METRICS)
    assert lead is not None
    assert sentences.context(finding(), lead, METRICS) == (
        "From release to release these tests vary by 0.12 % (one standard deviation); "
        "the smallest detectable change of one of them is 0.40 % (found four times in five)."
    )


def test_a_warning_of_some_moves_says_of_how_many() -> None:
    moves = finding(changes=CHANGES).moves
    moves = (moves[0].model_copy(update={"warnings": ("one block",)}), *moves[1:])
    warned = finding().model_copy(update={"moves": moves, "warnings": ("one block", "of the whole")})
    assert sentences.warnings(warned) == ["one block (1 of 3 moves)", "of the whole"]


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (finding(), "17.5 the first at the new one, and no known release lies between them."),
        (
            finding("8.0.30", "8.0.28", dbms="mysql", line="8.0"),
            "; 8.0.29 between them is not in the history, and what changed there is in this range too.",
        ),
        (
            finding("8.0.31", "8.0.15", dbms="mysql", line="8.0"),
            "; 8.0.16 to 8.0.30 between them are not in the history, and what changed there is in this range too.",
        ),
        (
            finding("8.0.30", "8.0.28", dbms="mysql", line="8.0", unmeasured=("8.0.29",)),
            "; not measured in between, and just as suspect: 8.0.29.",
        ),
        (
            finding("18.6", "17.11", line="majors"),
            "17.11 is the newest measured release of its line, 18.6 that of line 18: "
            "whatever came to that line up to there is in this range.",
        ),
        (finding(kind="drift"), "Small steps in many releases since 17.4 add up to it;"),
    ],
)
def test_the_suspect_range(of: Finding, text: str) -> None:
    assert text in sentences.suspect_range(of)


@pytest.mark.parametrize("cause", ["machine", "config", "epoch", "sla"])
def test_another_cause_than_the_product_is_said(cause: Cause) -> None:
    said = sentences.suspect_range(finding().model_copy(update={"cause": cause}))
    assert "The likely cause is not the product's code but " in said
    assert "likely cause" not in sentences.suspect_range(finding())


@given(st.integers(0, 30), st.integers(0, 30))
def test_versions_between_two_point_releases(first: int, last: int) -> None:
    between = absent_versions(f"8.0.{first}", f"8.0.{last}")
    expected = [f"8.0.{point}" for point in range(first + 1, last)]
    assert between == (expected if len(expected) <= MOST_ABSENT else [])
    assert absent_versions(f"8.0.{first}", f"8.1.{last}") == []
