"""What can go wrong with a report, as one small tree.

ReportError
├── NothingToShow    the history holds no such line, release or table
└── PageTooLarge     a page would pass the size every reader can load
"""

from __future__ import annotations

from typing import ClassVar


class ReportError(Exception):
    """Base: the message says what to do next."""

    exit_code: ClassVar[int] = 1


class NothingToShow(ReportError):
    """Nothing of that name is in the history."""

    exit_code = 2


class PageTooLarge(ReportError):
    """A page would pass `MAX_PAGE_BYTES`."""
