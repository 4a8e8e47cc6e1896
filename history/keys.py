"""By what key an issue is known for good. Pure.

The key of an issue must survive re-detection, so two kinds differ from their finding's key: on the pseudo-line
`majors` the boundary is a line, not its newest point release of the day, and a drift belongs to its line. Alerts write
events under it; whoever reads what became of a finding looks under both.

>>> issue_key("postgres", "majors", "18.4", "regression"), issue_key("mysql", "8.0", "8.0.39", "drift")
('postgres/majors/18/regression', 'mysql/8.0/drift')
>>> issue_key("mysql", "8.0", "8.0.30", "regression")
'mysql/8.0/8.0.30/regression'
"""

from __future__ import annotations

from history.errors import InvalidRecord
from history.model import MAJORS, finding_key
from history.versions import line_of


def boundary(dbms: str, line: str, release: str) -> str:
    """What is said to have changed: the release, on `majors` its line.

    A foreign version that names no line stands for itself.

    >>> [boundary("postgres", line, "18.4") for line in ("majors", "18")], boundary("other", "majors", "spring")
    (['18', '18.4'], 'spring')
    """
    if line != MAJORS:
        return release
    try:
        return line_of(dbms, release)
    except InvalidRecord:
        return release


def issue_key(dbms: str, line: str, release: str, kind: str) -> str:
    """The stable key of the issue for a boundary."""
    if kind == "drift":
        return f"{dbms}/{line}/drift"
    return finding_key(dbms, line, boundary(dbms, line, release), kind)
