"""Addresses of pages: made of names only, so a permalink survives every rebuild.

>>> of_test(LineKey("postgres", "17", "local", "default", "sysbench"), "point-query")
'lines/postgres/17/local/default/sysbench/point-query.html'
>>> of_finding("mysql/8.0/8.0.30/regression")
'findings/mysql/8.0/8.0.30/regression.html'
>>> part("../etc"), part("a b")
('~2e~2e~2fetc', 'a~20b')
"""

from __future__ import annotations

import hashlib
import re

from history.model import LineKey

#: Files that a line's folder holds beside its test pages; a test of the same name is escaped.
RESERVED = frozenset({"index", "insert"})
#: Longest file name every common file system takes, less room for an extension.
MAX_PART_CHARS = 200

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def part(name: str) -> str:
    """`name` as one part of an address; two names never share one.

    Everything but letters, digits, `.`, `_` and `-` becomes `~` and its UTF-8 bytes in hex, also a leading dot, so
    that no name can leave its folder or hide; an overlong name ends in `~~` and a digest.
    """
    if not name:
        return "~"
    escaped = _UNSAFE.sub(lambda match: "".join(f"~{byte:02x}" for byte in match.group().encode()), name)
    leading = len(escaped) - len(escaped.lstrip("."))
    escaped = "~2e" * leading + escaped[leading:]
    if len(escaped) > MAX_PART_CHARS:
        escaped = f"{escaped[: MAX_PART_CHARS - 18]}~~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return escaped


def folder(key: LineKey) -> str:
    return "lines/" + "/".join(part(name) for name in key)


def of_line(key: LineKey) -> str:
    return f"{folder(key)}/index.html"


def stem_of_test(key: LineKey, test: str) -> str:
    """Address of a test page without its extension; `.csv` and `.json` beside it hold what it draws."""
    name = part(test)
    return f"{folder(key)}/{'~' + name if name in RESERVED else name}"


def of_test(key: LineKey, test: str) -> str:
    return f"{stem_of_test(key, test)}.html"


def of_insert(key: LineKey) -> str:
    return f"{folder(key)}/insert.html"


def stem_of_finding(key: str) -> str:
    return "findings/" + "/".join(part(name) for name in key.split("/"))


def of_finding(key: str) -> str:
    return f"{stem_of_finding(key)}.html"


def of_compare(server: str, benchmark: str) -> str:
    return f"compare/{part(server)}/{part(benchmark)}.html"


def up(page: str) -> str:
    """The way from `page` back to the site's root, for relative links: the site works in any folder and from files.

    >>> up("index.html"), up("findings/a/b.html")
    ('', '../../')
    """
    return "../" * page.count("/")
