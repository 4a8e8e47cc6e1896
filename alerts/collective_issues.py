"""Issues that stand for several findings: the digest over the daily cap, and a machine that moved. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from alerts.comment_texts import text_of
from alerts.marker import marker
from alerts.render import BODY_BUDGET, REQUIRED, Section, within_budget
from alerts.safetext import Markdown, title
from alerts.settings import AlertSettings
from alerts.trackers import Draft
from presentation.number_format import count

#: Rows of a digest; the history has the rest.
DIGEST_ROWS = 300


class Listed(NamedTuple):
    """A finding as a row of another issue."""

    key: str
    title: str


def digest_draft(key: str, day: str, rows: list[Listed], settings: AlertSettings) -> Draft:
    """The issue that stands for everything over the daily cap."""

    def text(shown: list[Listed]) -> Markdown:
        return text_of("digest", rows=shown, total=len(rows), day=day, cap=settings.filing.daily_cap)

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
        return text_of("environment", server=server, rows=shown, moved=moved, lines=lines)

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
