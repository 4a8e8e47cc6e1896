"""The hidden line by which Pointdrop knows its issues."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from alerts.marker import END, event_marker, event_of, keys_of, marker, ours, sticky_marker, sticky_of, with_notes
from alerts.safetext import code, fenced

KEYS = st.text(min_size=1, max_size=40).filter(lambda text: not any(0xD800 <= ord(c) <= 0xDFFF for c in text))


@given(KEYS, st.lists(KEYS, max_size=3))
def test_any_key_comes_back_and_cannot_end_the_comment(key: str, also: list[str]) -> None:
    line = marker(key, tuple(also))
    assert keys_of(line + "\nbody") == (key, *also)
    assert "\n" not in line and line.count("-->") == 1 and "--" not in line[4:-3]


@given(KEYS)
def test_events_and_names_come_back(name: str) -> None:
    assert event_of(event_marker(name) + "\nx") == name
    assert sticky_of(sticky_marker(name) + "\r\nx") == name
    assert keys_of(event_marker(name)) == () and event_of(marker(name)) == ""


def test_only_the_first_line_counts() -> None:
    assert keys_of("Hello\n" + marker("a")) == ()
    assert keys_of("> " + marker("a")) == ()
    assert keys_of(None) == ()


@given(st.text(alphabet="ab \n`<>!-", max_size=60))
def test_what_people_wrote_below_survives_edits(notes: str) -> None:
    body = with_notes("first text", None) + notes
    edited = with_notes("second text", body)
    assert ours(edited) == "second text"
    assert edited.partition(END)[2].strip("\n") == notes.strip("\n")
    assert with_notes("second text", edited) == edited


def test_a_test_that_is_called_like_the_end_line_ends_nothing() -> None:
    body = f"first\n| {code(END)} |\n{fenced([END])}\nlast"
    assert ours(with_notes(body, None)) == body
    assert ours(with_notes(body, with_notes(body, None))) == body
