"""What a finding says, in words."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.metrics import shipped_metrics
from history.model import Cause, ExplainedStep, Finding, Tier
from presentation import sentences
from presentation.headline import headline
from presentation.sentences import MOST_ABSENT, absent_versions
from tests.builders import TESTS, finding, move, series_key

METRICS = shipped_metrics()
CHANGES = {"point-query": 3.1, "hot-points": 4.9, "range-covered": 1.2}


def summary(of: Finding) -> str:
    lead = headline(of, METRICS)
    assert lead is not None
    return sentences.summary(of, lead)


def test_a_regression() -> None:
    assert summary(finding(changes=CHANGES)) == (
        "hot-points needs 4.9 % more instructions per operation from postgres 17.5 on than up to 17.4. "
        "3 of 22 tests on local moved by more than their noise (point queries and range queries): +1.2 to +4.9 %."
    )


def test_a_median_stands_after_the_worst_test_and_only_of_many() -> None:
    many = summary(finding(changes=dict.fromkeys(TESTS, 3.0) | {"insert": 9.0}))
    assert many.startswith("insert needs 9.0 % more") and many.endswith(": +3.0 to +9.0 %, median +3.0 %.")
    assert "median" not in summary(finding(changes={"point-query": 45.0, "hot-points": 1.1}))
    assert summary(finding(changes={"point-query": 3.0, "hot-points": 3.0})).endswith(": each by +3.0 %.")


def test_throughput_is_got_and_has_no_operation() -> None:
    rates = finding(moves=[move(series_key(test, "qps"), 1000.0, -5.0) for test in ("scan", "insert")])
    assert " gets 5.0 % lower QPS from postgres 17.5 on than up to 17.4. 2 of " in summary(rates)


def test_a_drift_is_of_the_line_and_dated_to_where_it_was_clear() -> None:
    """The change that a drift states is that of the newest release, not of the one at which it could be told."""
    text = summary(finding("17.6", "17.0", kind="drift", changes=CHANGES))
    assert "on postgres 17 needs 4.9 % more instructions per operation than on 17.0 in small steps" in text
    assert "it is clear since 17.6" in text


def test_an_environment_shift_is_no_release() -> None:
    text = summary(finding(kind="environment", changes=CHANGES))
    assert text.startswith("On local hot-points needs 4.9 % more instructions per operation since postgres 17.5 was")
    assert "the evidence points at the machine, not at Postgres" in text
    shift = finding(kind="environment", servers=("Bee-1",), changes=CHANGES)
    assert summary(shift).startswith("On Bee-1 hot-points"), "a name keeps its capitals"


def test_a_step_between_majors_names_the_releases_that_stand_for_the_lines() -> None:
    text = summary(finding("14.24", "13.23", line="majors"))
    assert "per operation from postgres 14.24 on than up to 13.23, the newest measured releases of 14 and 13. " in text
    assert "releases of 14 and 13. 2 of 11 tests" in text


def test_a_step_that_point_releases_explain_in_part_does_not_count_their_tests() -> None:
    """ "2 of 7 tests moved" stood above evidence of "4 of 7 tests moved"."""
    step = finding("14.24", "13.23", line="majors", changes=CHANGES)
    other = series_key("scan", "insn/o", line="majors")
    rest = ExplainedStep(key=other, change_pct=44.1, explained_pct=44.0, rest_pct=0.1, by=("k",), whole=True)
    text = summary(step.model_copy(update={"explained": (rest,)}))
    assert "3 of 22 tests on local moved by more than their noise and than changes at point releases explain (" in text
    assert "explain" not in summary(step)


def test_one_test_has_no_range_and_other_servers_are_named() -> None:
    one = summary(finding(changes={"point-query": 3.0}))
    assert one.endswith(" than up to 17.4. 1 of 11 tests on local moved by more than its noise (point queries).")
    twice = summary(finding(changes={"point-query": 3.0}, servers=("local", "medium")))
    assert twice.endswith(
        "1 of 11 tests on local moved by more than its noise (point queries). It is seen on medium as well."
    )


def test_other_metrics_are_counted() -> None:
    counted = finding(changes={"point-query": 45.0, "hot-points": 1.1})
    also = [
        moved.model_copy(update={"key": moved.key.model_copy(update={"metric": "cpu_us/o"})}) for moved in counted.moves
    ]
    both = counted.model_copy(update={"moves": (*counted.moves, *also)})
    lead = headline(both, METRICS)
    assert lead is not None
    assert sentences.other_metrics(lead, METRICS).endswith(" per operation up to +45.0 % in 2 tests")
    rest = [move(series_key("insert", metric), 1.0, 9.0) for metric in ("cs/o", "wKB/o")]
    lead = headline(both.model_copy(update={"moves": (*both.moves, *rest)}), METRICS)
    assert lead is not None
    assert sentences.other_metrics(lead, METRICS).endswith(" and 2 other metrics")
    lead = headline(counted.model_copy(update={"moves": (*counted.moves, *rest)}), METRICS)
    assert lead is not None
    assert sentences.other_metrics(lead, METRICS) == f"{METRICS['cs/o'].noun} and {METRICS['wKB/o'].noun}"


def test_what_one_test_would_show_is_not_passed_for_what_was_decided() -> None:
    """The figure is of the leading test by itself; the verdict pools."""
    quiet, loud = finding().moves
    told = finding(moves=[quiet, loud.model_copy(update={"noise_pct": 1.5, "mde_pct": 6.1})])
    lead = headline(told, METRICS)
    assert lead is not None
    assert sentences.context(told, lead, METRICS) == (
        "From release to release hot-points varies by 1.5 % (one standard deviation), so by itself it shows a change "
        "of 6.1 % or more (four times in five); the verdict stands on all that moved together, which shows smaller "
        "changes."
    )
    alone = finding(moves=[quiet])
    lead = headline(alone, METRICS)
    assert lead is not None and sentences.context(alone, lead, METRICS).endswith("0.40 % or more (four times in five).")


def test_people_read_one_scale_of_words() -> None:
    assert list(sentences.TIER_WORDS.values()) == ["suspected", "confirmed", "not seen again"]
    assert sentences.TIER_WORDS.keys() == sentences.TIERS.keys() == set(get_args(Tier))


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
