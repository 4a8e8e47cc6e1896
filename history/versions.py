"""The order of a DBMS's releases, and the line a release belongs to. Pure.

Versions are compared as their own DBMS compares them: numbers as numbers, a pre-release before its release, a build
on top of a release (`17.2+20260105.3f2a9c1`, `5.6.51-91.0`) after it. Any text has a place, so that a history with
foreign versions still sorts; only `line_of` insists on a number.

>>> sort_versions("mariadb", ["10.11.19", "10.11.5", "10.6.20"])
['10.6.20', '10.11.5', '10.11.19']
>>> sort_versions("postgres", ["17.0", "17rc1", "9.6.24", "17beta2", "17.2"])
['9.6.24', '17beta2', '17rc1', '17.0', '17.2']
>>> line_of("postgres", "9.6.24"), line_of("postgres", "17rc1"), line_of("mysql", "8.0.30")
('9.6', '17', '8.0')
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from history.errors import InvalidRecord

#: Since this major, the first number alone names a line of Postgres (9.6.24 is of 9.6, 10.23 of 10).
POSTGRES_ONE_NUMBER_SINCE = 10

#: Pre-releases, earliest first; what is none of them is a release.
STAGES = ("devel", "dev", "snapshot", "preview", "m", "dmr", "alpha", "beta", "rc")
RELEASE_STAGE = len(STAGES)

# A stage counts only as a whole word: `m15` and `rc` do, `main` does not. Nine digits bound what one number may be,
# so that no text makes a slow comparison; longer ones are split and still sort.
_VERSION = re.compile(
    r"v?(?P<numbers>\d{1,18}(?:\.\d{1,18})*)"
    r"(?:[-._~]?(?P<stage>devel|dev|snapshot|preview|dmr|alpha|beta|rc|m(?=\d))[-._]?(?P<count>\d{0,18})(?![a-z0-9]))?"
    r"(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_PART = re.compile(r"\d{1,18}|[^\d]+")

#: `(0, number, "")` or `(1, 0, text)`: numbers sort among themselves and before text.
Part = tuple[int, int, str]
#: `(0, (), 0, 0, parts, text)` for what is no version, `(1, numbers, stage, count, parts, text)` for what is one.
VersionKey = tuple[int, tuple[int, ...], int, int, tuple[Part, ...], str]


def _parts(text: str) -> tuple[Part, ...]:
    """`text` cut into numbers and the rest, for a natural order."""
    return tuple(
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part.lower())
        for part in _PART.findall(text)
    )


def version_key(dbms: str, version: str) -> VersionKey:
    """A sort key; total, never raises, and different texts have different keys.

    `dbms` is part of the interface because versions of two DBMS are not comparable; all that are known today follow
    one grammar.

    >>> version_key("postgres", "17rc1") < version_key("postgres", "17") < version_key("postgres", "17.1")
    True
    """
    match = _VERSION.fullmatch(version)
    if not match or not match["numbers"].isascii():
        return (0, (), 0, 0, _parts(version), version)
    numbers = [int(number) for number in match["numbers"].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:  # 17 and 17.0 are the same place
        numbers.pop()
    stage = STAGES.index(match["stage"].lower()) if match["stage"] else RELEASE_STAGE
    return (1, tuple(numbers), stage, int(match["count"] or 0), _parts(match["rest"]), version)


def line_of(dbms: str, version: str) -> str:
    """The branch `version` belongs to, in the DBMS's own words.

    Raises InvalidRecord when the version does not begin with the numbers that name a line.

    >>> [line_of("postgres", v) for v in ("10.23", "18beta1")], line_of("mariadb", "10.11.5")
    (['10', '18'], '10.11')
    >>> [line_of("mysql", v) for v in ("9.7.0", "26.7.1")]  # since July 2026 a year and a month
    ['9.7', '26.7']
    """
    match = _VERSION.fullmatch(version)
    numbers = match["numbers"].split(".") if match else []
    wanted = 2
    if dbms == "postgres" and numbers and int(numbers[0]) >= POSTGRES_ONE_NUMBER_SINCE:
        wanted = 1
    if len(numbers) < wanted or not match or not match["numbers"].isascii():
        raise InvalidRecord(
            f"cannot tell the line of {dbms} {version!r}: a version begins with "
            f"{'two numbers' if wanted == 2 else 'a number'}, as in {'17.2' if dbms == 'postgres' else '8.0.30'}; "
            "give the line with the release"
        )
    return ".".join(str(int(number)) for number in numbers[:wanted])


def build_mark(version: str) -> str:
    """What tells another build from those that its line goes on with; empty for these.

    >>> build_mark("17.2+debian"), build_mark("17.2")
    ('debian', '')
    """
    return version.partition("+")[2]


def sort_versions(dbms: str, versions: Iterable[str]) -> list[str]:
    """`versions` in the DBMS's own order, oldest first."""
    return sorted(versions, key=lambda version: version_key(dbms, version))
