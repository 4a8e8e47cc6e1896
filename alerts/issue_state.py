"""What the history says about one issue key in one tracker: its events folded into a value. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any

from pydantic import Field

from alerts.lifecycle import State, next_state
from history.model import FindingEvent, Row

#: Events that move no state but are remembered.
SEEN, MISSED, HEARD, EDITED, ALIAS, RENAMED = "seen", "missed", "heard", "edited", "alias", "renamed"
#: Key of the detail of an event that has to be dated later than the clock says: the day on the clock.
DAY = "day"
#: Work a person asked for with a comment; `pointdrop` takes it from the events and answers with `<name>-done`.
RERUN, BISECT = "rerun-requested", "bisect-requested"
#: That such work was done has been said in the issue.
TOLD = "result-told"


class Result(Row):
    """What came of work that a person asked for."""

    event: str
    """Its name and number, which the comment carries."""
    text: str
    command: str = ""
    """How a person goes on from there."""


class IssueState(Row):
    """One key's state, and what the next sync has to remember of how it came to be."""

    key: str
    state: State = State.NEW
    events: int = 0
    since: datetime | None = None
    told: dict[str, Any] = Field(default_factory=dict)
    """What the issue last said: `previous`, `release`, `title`, `groups`, ..."""
    filed_on: date | None = None
    missed_on: tuple[date, ...] = ()
    """Days the detector did not find it, since it last did."""
    snoozed: dict[str, Any] = Field(default_factory=dict)
    recovered_at: str = ""
    """The release that gave it back, when it was closed for that."""
    kept_open: tuple[str, ...] = ()
    """Reasons Pointdrop closed it for and a person re-opened it: not closed again for these."""
    where: str = ""
    """The environment or digest issue that carries it instead of one of its own."""
    alias_of: str = ""
    """The older key whose issue answers for this one."""
    also: tuple[str, ...] = ()
    """Newer keys this issue answers for."""
    heard: int = 0
    """Comments of the issue that have been read."""
    answered: frozenset[int] = frozenset()
    """Ids of comments whose command was carried out."""
    results: tuple[Result, ...] = ()
    """Done, and not yet told in the issue."""
    counts: dict[str, int] = Field(default_factory=dict)
    """How often each event happened: the number of the next one."""


def issue_state_of(key: str, events: Iterable[FindingEvent], tracker: str) -> IssueState:
    """Fold the events of `key`, oldest first; those of another tracker do not count here."""
    values: dict[str, Any] = {"key": key}
    state, closed_for = State.NEW, ""
    missed: list[date] = []
    kept_open: list[str] = []
    also: list[str] = []
    answered: set[int] = set()
    counts: dict[str, int] = {}
    results: dict[str, Result] = {}
    total = 0
    for event in sorted(events, key=lambda event: event.at):
        detail = event.detail
        if detail.get("tracker", tracker) != tracker:
            continue
        total += 1
        counts[event.event] = counts.get(event.event, 0) + 1
        if isinstance(detail.get("comment_id"), int):
            answered.add(detail["comment_id"])
        target = next_state(state, event.event)
        if target is not None and target is not state:
            values["since"] = event.at
        if target is not None:
            state = target
        if "told" in detail:
            values["told"] = detail["told"]
        match event.event:
            case "filed":
                values["filed_on"] = None if detail.get("adopted") else day_of(event)
                missed.clear()
            case "missed":
                missed.append(day_of(event))
            case "seen" | "returned":
                missed.clear()
            case "snoozed":
                values["snoozed"] = detail
            case "recovered" | "withdrawn" | "folded":
                closed_for = f"{event.event}:{detail.get('release', '')}"
                values["recovered_at"] = str(detail.get("release", ""))
            case "reopened" if closed_for:
                kept_open.append(closed_for)
                missed.clear()
            case "held" | "digested":
                values["where"] = str(detail.get("where", ""))
            case "alias":
                values["alias_of"] = str(detail.get("of", ""))
            case "renamed":
                also.append(str(detail.get("to", "")))
            case name if name.endswith("-done") and detail.get("text"):
                of = f"{name}:{counts[name]}"
                results[of] = Result(event=of, text=str(detail["text"]), command=str(detail.get("command", "")))
            case "result-told":
                results.pop(str(detail.get("of", "")), None)
            case "heard":
                values["heard"] = int(detail.get("comments", 0))
    return IssueState(
        **values,
        state=state,
        events=total,
        missed_on=tuple(sorted(set(missed))),
        kept_open=tuple(kept_open),
        also=tuple(dict.fromkeys(also)),
        answered=frozenset(answered),
        results=tuple(results.values()),
        counts=counts,
    )


def day_of(event: FindingEvent) -> date:
    """The day on the clock of whoever wrote it; `at` is another day where that clock was behind an older event."""
    return date.fromisoformat(event.detail[DAY]) if DAY in event.detail else event.at.date()


def moment_after(events: Iterable[FindingEvent], now: datetime) -> datetime:
    """`now`, or just after the newest of `events` where that is later.

    The order of a key's events is its state. Clocks are set back and those of two machines differ, and still nothing
    that happens to a key comes before what led to it.
    """
    return max([now, *(event.at + timedelta(microseconds=1) for event in events)])


def open_requests(events: Iterable[FindingEvent]) -> list[FindingEvent]:
    """Re-runs and bisections asked for and not yet done, oldest first."""
    waiting: list[FindingEvent] = []
    for event in sorted(events, key=lambda event: event.at):
        if event.event in (RERUN, BISECT):
            waiting.append(event)
        elif event.event.endswith("-done"):
            asked = event.event.removesuffix("-done") + "-requested"
            waiting = [other for other in waiting if (other.key, other.event) != (event.key, asked)]
    return waiting
