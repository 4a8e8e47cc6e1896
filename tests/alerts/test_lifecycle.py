"""The state machine: every transition, and what must never happen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.lifecycle import EVENTS, OPEN, TRANSITIONS, State, next_state, state_after, transition_table

DOCS = Path(__file__).parents[2] / "docs" / "alerts.md"


def test_the_documented_table_is_the_one_that_runs() -> None:
    assert transition_table() in DOCS.read_text()


def test_every_event_and_state_is_used() -> None:
    assert {event for _, event in TRANSITIONS} == set(EVENTS)
    assert set(TRANSITIONS.values()) == set(State)


def test_every_state_can_be_reached() -> None:
    reached = {State.NEW}
    while True:
        more = reached | {target for (state, _), target in TRANSITIONS.items() if state in reached}
        if more == reached:
            break
        reached = more
    assert reached == set(State)


@pytest.mark.parametrize("event", ["updated", "recovered", "withdrawn", "returned", "filed", "woke", "confirmed"])
@pytest.mark.parametrize("state", [State.CLOSED, State.NOT_A_BUG, State.GONE])
def test_what_a_person_closed_only_a_person_opens(state: State, event: str) -> None:
    assert next_state(state, event) is None


def test_gone_is_final() -> None:
    assert not [event for state, event in TRANSITIONS if state is State.GONE]


@given(st.lists(st.sampled_from(EVENTS), max_size=20))
def test_an_issue_is_filed_before_it_is_anything_else(events: list[str]) -> None:
    if state_after(events) in OPEN:
        # Only an issue that a person finds in the tracker can be re-opened there.
        assert "filed" in events or "reopened" in events


@given(st.lists(st.sampled_from([*EVENTS, "seen", "heard", "of another room"]), max_size=20))
def test_unknown_and_impossible_events_change_nothing(events: list[str]) -> None:
    state = State.NEW
    for event in events:
        state = next_state(state, event) or state
    assert state_after(events) is state
