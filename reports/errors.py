"""What can go wrong with a report: ReportError, and of these PageTooLarge, a page larger than every reader can load."""

from __future__ import annotations

from typing import ClassVar


class ReportError(Exception):
    """Base: the message says what to do next."""

    exit_code: ClassVar[int] = 1


class PageTooLarge(ReportError):
    """A page would pass `MAX_PAGE_BYTES`."""
