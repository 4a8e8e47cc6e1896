"""What to type to see a finding again."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from history.metrics import shipped_metrics
from history.model import Finding, SeriesKey
from presentation.commands import Measurable, commands, measurable_here, source_address, source_tags
from tests.builders import finding, move, series_key

METRICS = shipped_metrics()
POSTGRES = "https://github.com/postgres/postgres/compare/REL_{previous_}...REL_{release_}"
TESTS = ("point-query", "hot-points", "insert")
HERE = Measurable(
    servers=frozenset({"local"}),
    configs=frozenset({("postgres", "default")}),
    tests={"sysbench": TESTS, "insert": ("l.i0",)},
)


def words_of(of: Finding, **options: object) -> dict[str, list[str]]:
    """The words after each verb."""
    lines = [shlex.split(command.line) for command in commands(of, METRICS, **options)]  # type: ignore[arg-type]
    assert all(words[0] == "pointdrop" for words in lines)
    return {words[1]: words[2:] for words in lines}


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


def test_a_finding_is_measured_again_where_it_moved_most() -> None:
    again = words_of(finding(), measurable=HERE)
    assert list(again) == ["compare", "explain", "bisect"]
    assert again["compare"][:2] == ["postgres@17.4", "postgres@17.5"]
    assert option(again["compare"], "--lane") == "instructions"
    assert option(again["compare"], "--tests") == "hot-points,point-query", "the largest change first"
    assert again["explain"] == ["postgres|17|local|default|sysbench|hot-points|insn/o"]
    assert option(again["bisect"], "--test") == "hot-points"
    timed = finding(moves=[move(series_key("insert", "qps"), 100.0, -5.0)])
    assert option(words_of(timed)["compare"], "--lane") == "time"


def test_only_what_the_product_did_at_a_boundary_is_narrowed_down() -> None:
    assert "bisect" not in words_of(finding(kind="drift"))
    assert "bisect" not in words_of(finding(kind="environment"))
    assert "bisect" not in words_of(finding().model_copy(update={"cause": "config"}))


def test_the_run_of_the_release_is_repeated_where_it_is_known() -> None:
    assert words_of(finding(), run="run-7")["repeat"] == ["run-7"]
    assert "repeat" not in words_of(finding())


def test_a_smaller_move_that_can_be_measured_goes_before_a_larger_one_that_cannot() -> None:
    both = finding(changes={"renamed-since": 45.0, "insert": 3.0})
    again = words_of(both, measurable=HERE)
    assert option(again["compare"], "--tests") == "insert" and "|insert|" in again["explain"][0]


def test_published_figures_are_measured_on_a_machine_of_the_readers_own() -> None:
    moves = [
        move(SeriesKey.parse(f"mysql|8.0|ser4|cy10a|insert|{test}|cpupq"), 150.0, 9.0) for test in ("l.i0", "q100.1")
    ]
    published = finding("8.0.30", "8.0.28", dbms="mysql", line="8.0", moves=moves)
    given_commands = commands(published, METRICS, measurable=HERE, dataset="smalldatum")
    again = words_of(published, measurable=HERE, dataset="smalldatum")
    assert list(again) == ["explain", "replay", "compare"]
    assert option(again["compare"], "--tests") == "l.i0" and "--server" not in again["compare"]
    assert option(again["replay"], "--dataset") == option(again["explain"], "--dataset") == "smalldatum"
    assert given_commands[0].why.startswith("These figures were published (dataset smalldatum). ")
    assert not measurable_here(published, HERE) and measurable_here(published, None)


def test_what_nobody_can_measure_has_no_command_that_does() -> None:
    gone = finding(changes={"renamed-since": 3.0})
    assert list(words_of(gone, measurable=HERE)) == ["explain"]
    assert commands(gone, METRICS, measurable=HERE)[0].why.startswith("These figures are of a place that is not ")


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_every_name_is_one_word_of_the_shell(test: str, release: str) -> None:
    hostile = finding(release, moves=[move(series_key(test), 100.0, 5.0)])
    again = words_of(hostile)
    assert again["compare"][1] == f"postgres@{release}"
    assert again["explain"] == [hostile.moves[0].key.id]
    assert option(again["compare"], "--tests") == test


def test_the_source_of_two_plain_versions_is_compared() -> None:
    address = "https://github.com/postgres/postgres/compare/REL_17_4...REL_17_5"
    assert source_address(POSTGRES, finding()) == address
    assert source_tags(POSTGRES, finding()) == ("REL_17_4", "REL_17_5")
    for other in (finding("17rc1"), finding("17.5)](http://e.example")):
        assert source_address(POSTGRES, other) == "" and source_tags(POSTGRES, other) is None
    assert source_address("", finding()) == ""
