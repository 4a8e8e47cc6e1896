"""What can go wrong in the detector, as one small tree.

DetectorError
├── InvalidSeries     values that cannot be judged: no releases, shapes that do not fit
└── UnknownEvidence   a question about a series, test or release that the history does not hold

Results with little behind them are not errors: they carry warnings.
"""

from __future__ import annotations

from typing import ClassVar


class DetectorError(Exception):
    """Base: the message says what to do next."""

    exit_code: ClassVar[int] = 1


class InvalidSeries(DetectorError):
    """Input that cannot be judged."""

    exit_code = 2


class UnknownEvidence(DetectorError):
    """Nothing of that name was given."""

    exit_code = 2
