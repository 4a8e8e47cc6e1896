"""Texts of comments, each with the event it is about. Pure."""

from __future__ import annotations

from typing import Any

from alerts.marker import event_marker
from alerts.recovery import Recovered
from alerts.safetext import Markdown
from alerts.templating import render_block, template
from history.model import Finding

#: Tests listed in a comment about recovery.
TESTS_IN_COMMENT = 12


def text_of(block: str, **values: Any) -> Markdown:
    """One block of `comments.md.j2`."""
    return render_block(template("comments.md.j2"), block, values)


def comment(event: str, block: str, **values: Any) -> tuple[str, str]:
    """The event of a comment and its whole body."""
    return event, f"{event_marker(event)}\n{text_of(block, **values)}"


def recovered_comment(event: str, finding: Finding, back: Recovered) -> tuple[str, str]:
    return comment(
        event,
        "recovered",
        release=back.release,
        tests=list(back.tests),
        of=back.of,
        others=back.others,
        previous=finding.previous,
        lost_at=finding.release,
        limit=TESTS_IN_COMMENT,
    )
