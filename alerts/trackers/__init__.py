"""Where issues live: one interface, two places.

`github` (alerts.trackers.github) is GitHub or GitHub Enterprise Server; `files` (alerts.trackers.files) is a directory
of Markdown files, the default without a token. Both promise the same:

* `issues()` and `look_again()` give only issues our own account wrote that carry our marker;
* `create` and `comment` may be repeated: before a second attempt they look for the marker of the first;
* a failure is a `TrackerError`, and after it nothing is half done that the next sync would not see.
"""

from __future__ import annotations

from typing import Literal, Protocol

from history.model import Moment, Row

#: Why an issue is closed; `duplicate` and `not_planned` are GitHub's words.
CloseReason = Literal["completed", "not_planned", "duplicate"]
Reaction = Literal["+1", "-1", "confused", "eyes"]
#: What an account may do, in GitHub's words; commands need one of the last three.
Permission = Literal["none", "read", "triage", "write", "maintain", "admin"]
WRITERS: frozenset[str] = frozenset({"write", "maintain", "admin"})


class Issue(Row):
    """An issue as it stands in the tracker."""

    number: int
    title: str
    body: str
    labels: frozenset[str]
    open: bool
    url: str
    keys: tuple[str, ...]
    """Keys of its marker; the first is the one it was filed for."""
    close_reason: str = ""
    comments: int = 0
    """How many there are."""


class Comment(Row):
    """One comment; `ours` when our own account wrote it."""

    id: int
    body: str
    author: str
    ours: bool
    created: Moment


class Draft(Row):
    """What an issue should look like."""

    key: str
    title: str
    body: str
    """Begins with the marker."""
    labels: frozenset[str]


class Tracker(Protocol):
    """What `sync` needs of a tracker. Numbers are the tracker's own and never change."""

    @property
    def name(self) -> str:
        """`files`, or `github:owner/name`: what history links carry."""
        ...

    def issues(self) -> list[Issue]:
        """All of our issues, open and closed, oldest first."""
        ...

    def look_again(self) -> list[Issue]:
        """Our issues by another way than `issues()` (author, not label), asked before anything is created."""
        ...

    def issue(self, number: int) -> Issue:
        """One issue; IssueGone when it was deleted or moved to another repository."""
        ...

    def create(self, draft: Draft) -> Issue:
        """Open an issue. TrackerUnavailable when it may or may not exist: its marker tells the next sync."""
        ...

    def edit(self, number: int, *, title: str | None = None, body: str | None = None) -> None:
        """Replace title, body or both."""
        ...

    def add_labels(self, number: int, labels: frozenset[str]) -> None:
        """Add labels, creating those the repository does not have."""
        ...

    def close(self, number: int, reason: CloseReason) -> None: ...

    def reopen(self, number: int) -> None: ...

    def comments(self, number: int) -> list[Comment]:
        """All comments, oldest first."""
        ...

    def comment(self, number: int, event: str, body: str) -> None:
        """Say `body` once for `event`: nothing is added when a comment of that event is there."""
        ...

    def react(self, number: int, comment_id: int, reaction: Reaction) -> None: ...

    def permission(self, login: str) -> Permission: ...
