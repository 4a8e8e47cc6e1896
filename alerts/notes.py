"""Texts that are not an issue about one boundary: comments, the digest, the environment issue. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from alerts.marker import event_marker, marker
from alerts.recovery import Recovered
from alerts.render import BODY_BUDGET, REQUIRED, Section, within_budget
from alerts.safetext import Markdown, title
from alerts.settings import AlertSettings
from alerts.templating import render_block, template
from alerts.trackers import Draft
from alerts.words import count
from history.model import Finding

#: Tests listed in a comment about recovery.
TESTS_IN_COMMENT = 12
#: Rows of a digest; the history has the rest.
DIGEST_ROWS = 300


class Listed(NamedTuple):
    """A finding as a row of another issue."""

    key: str
    title: str


def note(block: str, **values: Any) -> Markdown:
    """One block of `notes.md.j2`."""
    return render_block(template("notes.md.j2"), block, values)


def comment(event: str, block: str, **values: Any) -> tuple[str, str]:
    """The event of a comment and its whole body."""
    return event, f"{event_marker(event)}\n{note(block, **values)}"


def recovered_comment(event: str, finding: Finding, back: Recovered) -> tuple[str, str]:
    return comment(
        event,
        "recovered",
        release=back.release,
        tests=list(back.tests),
        of=back.of,
        previous=finding.previous,
        lost_at=finding.release,
        limit=TESTS_IN_COMMENT,
    )


def digest_draft(key: str, day: str, rows: list[Listed], settings: AlertSettings) -> Draft:
    """The issue that stands for everything over the daily cap."""

    def text(shown: list[Listed]) -> Markdown:
        return note("digest", rows=shown, total=len(rows), day=day, cap=settings.filing.daily_cap)

    return Draft(
        key=key,
        title=title(f"{count(len(rows), 'more finding')} of {day}"),
        body=_body(key, rows, text),
        labels=frozenset({settings.labels.issue, settings.labels.digest}),
    )


def environment_draft(
    key: str, server: str, rows: list[Listed], *, moved: int, lines: int, settings: AlertSettings
) -> Draft:
    """The issue that is filed instead when everything on a server moved at once."""

    def text(shown: list[Listed]) -> Markdown:
        return note("environment", server=server, rows=shown, moved=moved, lines=lines)

    return Draft(
        key=key,
        title=title(f"{server}: {moved} of {lines} lines got slower at once, look at the machine first"),
        body=_body(key, rows, text),
        labels=frozenset({settings.labels.issue, settings.labels.environment}),
    )


def _body(key: str, rows: list[Listed], text: Callable[[list[Listed]], Markdown]) -> str:
    """The text with as many of the rows as there is room for."""
    shown = rows[:DIGEST_ROWS]
    head = Markdown(marker(key))
    while shown and len(f"{head}\n\n{text(shown)}".encode()) > BODY_BUDGET:
        shown = shown[: len(shown) * 9 // 10]
    return within_budget([Section("marker", head, REQUIRED), Section("text", text(shown), REQUIRED)], BODY_BUDGET)
