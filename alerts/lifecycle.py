"""The life of an issue: a pure state machine over the events of its key.

An issue's state is nothing but its events folded through `TRANSITIONS`; there is no other record of it.

>>> state_after(["detected", "confirmed", "filed", "updated", "recovered"])
<State.RECOVERED: 'recovered'>
>>> next_state(State.CLOSED, "updated") is None    # a person's close wins
True
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class State(Enum):
    """Where the issue of a key stands."""

    NEW = "new"
    """Seen by the detector, not sure enough to be filed."""
    CONFIRMED = "confirmed"
    """Sure; to be filed at the next chance."""
    HELD = "held"
    """Every line of the server moved in the same way: the machine is asked first, in one environment issue."""
    DIGESTED = "digested"
    """Over the daily cap: a row of that day's digest issue. Filed by itself when it becomes clearly worse."""
    FILED = "filed"
    """An open issue nobody has answered."""
    UPDATED = "updated"
    """Open, and it has had news since it was filed."""
    ACKNOWLEDGED = "acknowledged"
    """Open; a person knows. The text is kept current, nothing is said any more but recovery."""
    SNOOZED = "snoozed"
    """Open; silent until N more releases of the line are measured."""
    RECOVERED = "recovered"
    """Closed by Pointdrop: a later release gave it back."""
    RETURNED = "returned"
    """Open again: it was recovered or withdrawn, and the same boundary is back."""
    WITHDRAWN = "withdrawn"
    """Closed by Pointdrop: with more results the detector no longer finds it."""
    FOLDED = "folded"
    """Closed by Pointdrop: it is the same change as another line's, and told in that issue."""
    NOT_A_BUG = "not-a-bug"
    """Closed by a person's command, for good."""
    CLOSED = "closed"
    """Closed by a person. Stays so; only another changepoint, which has another key, opens another issue."""
    GONE = "gone"
    """Deleted or moved to another repository by a person: no longer ours."""


#: States in which the tracker should show an open issue of its own.
OPEN = frozenset({State.FILED, State.UPDATED, State.ACKNOWLEDGED, State.SNOOZED, State.RETURNED})
#: States in which Pointdrop says nothing.
SILENT = frozenset({State.ACKNOWLEDGED, State.SNOOZED})
#: States whose issue Pointdrop closed.
CLOSED_BY_US = frozenset({State.RECOVERED, State.WITHDRAWN, State.FOLDED})
#: States before an issue of its own exists.
WAITING = frozenset({State.NEW, State.CONFIRMED, State.HELD})

_EVENTS_IN_WORDS = {
    "detected": "the detector names the boundary for the first time",
    "confirmed": "re-measured and seen again: the detector is sure",
    "refuted": "the re-measurement did not show it",
    "held": "all lines of the server moved together",
    "released": "they no longer do, or a person says it is not the machine",
    "digested": "over the daily cap",
    "filed": "its issue was opened",
    "updated": "its issue was edited because of new evidence",
    "acknowledged": "`/ack`",
    "snoozed": "`/snooze N`",
    "woke": "N more releases were measured",
    "recovered": "a later release gave it back; commented and closed",
    "returned": "the reason for its close no longer holds; commented and re-opened",
    "withdrawn": "not found any more on two days; commented and closed",
    "folded": "the same change as in another line, whose issue tells it; commented and closed",
    "not-a-bug": "`/not-a-bug`; closed",
    "closed": "a person closed the issue",
    "reopened": "a person re-opened the issue",
    "gone": "a person deleted the issue or moved it away",
}
#: Every event that moves a state, in the order of a life.
EVENTS: tuple[str, ...] = tuple(_EVENTS_IN_WORDS)

S = State
TRANSITIONS: dict[tuple[State, str], State] = {
    (S.NEW, "detected"): S.NEW,
    (S.NEW, "confirmed"): S.CONFIRMED,
    (S.NEW, "refuted"): S.NEW,
    (S.CONFIRMED, "refuted"): S.NEW,
    (S.CONFIRMED, "held"): S.HELD,
    (S.CONFIRMED, "digested"): S.DIGESTED,
    (S.CONFIRMED, "filed"): S.FILED,
    (S.CONFIRMED, "acknowledged"): S.CLOSED,
    (S.CONFIRMED, "not-a-bug"): S.NOT_A_BUG,
    (S.NEW, "acknowledged"): S.CLOSED,
    (S.NEW, "not-a-bug"): S.NOT_A_BUG,
    (S.HELD, "released"): S.CONFIRMED,
    (S.HELD, "refuted"): S.NEW,
    (S.HELD, "not-a-bug"): S.NOT_A_BUG,
    (S.HELD, "acknowledged"): S.CLOSED,
    (S.DIGESTED, "filed"): S.FILED,
    (S.DIGESTED, "acknowledged"): S.CLOSED,
    (S.DIGESTED, "not-a-bug"): S.NOT_A_BUG,
    (S.RECOVERED, "returned"): S.RETURNED,
    (S.RECOVERED, "reopened"): S.UPDATED,
    (S.RECOVERED, "not-a-bug"): S.NOT_A_BUG,
    (S.RECOVERED, "gone"): S.GONE,
    (S.WITHDRAWN, "returned"): S.RETURNED,
    (S.WITHDRAWN, "reopened"): S.UPDATED,
    (S.WITHDRAWN, "not-a-bug"): S.NOT_A_BUG,
    (S.WITHDRAWN, "gone"): S.GONE,
    (S.FOLDED, "returned"): S.RETURNED,
    (S.FOLDED, "reopened"): S.UPDATED,
    (S.FOLDED, "not-a-bug"): S.NOT_A_BUG,
    (S.FOLDED, "gone"): S.GONE,
    (S.NOT_A_BUG, "reopened"): S.UPDATED,
    (S.NOT_A_BUG, "gone"): S.GONE,
    (S.CLOSED, "reopened"): S.UPDATED,
    (S.CLOSED, "not-a-bug"): S.NOT_A_BUG,
    (S.CLOSED, "gone"): S.GONE,
    (S.SNOOZED, "woke"): S.UPDATED,
}
for _open in OPEN:
    TRANSITIONS |= {
        (_open, "updated"): _open if _open in SILENT else S.UPDATED,
        (_open, "acknowledged"): S.ACKNOWLEDGED,
        (_open, "snoozed"): S.SNOOZED,
        (_open, "recovered"): S.RECOVERED,
        (_open, "withdrawn"): S.WITHDRAWN,
        (_open, "folded"): S.FOLDED,
        (_open, "not-a-bug"): S.NOT_A_BUG,
        (_open, "closed"): S.CLOSED,
        (_open, "gone"): S.GONE,
    }


def next_state(state: State, event: str) -> State | None:
    """Where `event` leads from `state`; None when it has no meaning there."""
    return TRANSITIONS.get((state, event))


def state_after(events: Iterable[str], start: State = State.NEW) -> State:
    """The events of one key, oldest first, folded; those without a meaning in their state change nothing."""
    state = start
    for event in events:
        state = TRANSITIONS.get((state, event), state)
    return state


def transition_table() -> str:
    """The transitions as the Markdown table of docs/alerts.md, one row an event and target."""
    rows = ["| event | what happened | from | to |", "| --- | --- | --- | --- |"]
    for event in EVENTS:
        targets: dict[State, list[State]] = {}
        for state in State:
            target = TRANSITIONS.get((state, event))
            if target is not None:
                targets.setdefault(target, []).append(state)
        for target, sources in targets.items():
            names = ", ".join(source.value for source in sources)
            rows.append(f"| {event} | {_EVENTS_IN_WORDS[event]} | {names} | {target.value} |")
    return "\n".join(rows)
