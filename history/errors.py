"""What can go wrong with a history, as one small tree.

HistoryError
├── InvalidRecord       a line or row that breaks the interchange format; names line and reason
├── ConflictingRecord   the same id again with other contents
├── BadUrl              no address of a history
├── BadSettings         a file below `configs/` is wrong; names file, key, and what is allowed
├── StoreUnavailable    the database is read-only, full, locked or gone; results were kept for `history recover`
└── UnknownSeries       no such series, release, run or finding

The base error of every room carries `exit_code`, which the command line turns into the exit status.
"""

from typing import ClassVar


class HistoryError(Exception):
    """Base: the message says what to do next."""

    exit_code: ClassVar[int] = 1


class InvalidRecord(HistoryError):
    """A record that breaks the interchange format."""

    exit_code = 2


class ConflictingRecord(HistoryError):
    """An id that is already stored with other contents."""

    exit_code = 2


class BadUrl(HistoryError):
    """A URL that names neither a SQLite file nor a PostgreSQL database."""

    exit_code = 2


class BadSettings(HistoryError):
    """A configuration file that cannot be used."""

    exit_code = 2


class StoreUnavailable(HistoryError):
    """The database cannot take or give rows."""


class UnknownSeries(HistoryError):
    """Nothing of that name is in the history."""

    exit_code = 2
