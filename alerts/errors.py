"""What can go wrong with alerts, as one small tree.

AlertsError
├── UnknownIssue         no finding or issue of that key
├── IncompleteIssue      a value the issue must show is missing; it is not filed
└── TrackerError         the tracker said no or said nothing
    ├── TrackerUnavailable   network, 5xx, rate limit: the next sync does what is left
    ├── TrackerRefused       no permission, no such repository, token unknown: a person has to act
    └── IssueGone            the issue was deleted or moved to another repository
"""

from __future__ import annotations

from typing import ClassVar


class AlertsError(Exception):
    """Base: the message says what to do next."""

    exit_code: ClassVar[int] = 1


class UnknownIssue(AlertsError):
    """A key that names neither a finding nor an issue."""

    exit_code = 2


class IncompleteIssue(AlertsError):
    """An issue with a hole in it is worse than none: `missing` names the values."""

    exit_code = 4

    def __init__(self, key: str, missing: tuple[str, ...]) -> None:
        self.key = key
        self.missing = missing
        super().__init__(
            f"{key} was not filed: no value for {', '.join(missing)}. Run `pointdrop detect` again, "
            f"or look at the finding with `pointdrop alerts show {key}`."
        )


class TrackerError(AlertsError):
    """The tracker did not do what was asked."""


class TrackerUnavailable(TrackerError):
    """Nothing is lost: the next sync looks again and does what is left."""


class TrackerRefused(TrackerError):
    """Trying again does not help before somebody changes a permission or a setting."""


class IssueGone(TrackerError):
    """The issue is no longer in this repository; `moved_to` is its new address when it was transferred."""

    def __init__(self, number: int, moved_to: str = "") -> None:
        self.number = number
        self.moved_to = moved_to
        where = f"moved to {moved_to}" if moved_to else "deleted"
        super().__init__(f"issue {number} was {where}; its finding stays in the history.")
