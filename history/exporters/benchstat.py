"""The Go benchmark format: keys of a release, then a line a block and test.

The release stands in the keys, so `benchstat -col version FILE` puts releases side by side. A unit may hold no space:
`indexed rows/s` is written `indexed_rows/s`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from history.frames import BlockRow, block_rows
from history.model import Series

KEYS = ("dbms", "version", "line", "server", "config", "benchmark")


def lines(series: Iterable[Series]) -> Iterator[str]:
    """Keys whenever they change, then benchmark lines in the order of tests and blocks."""
    releases: dict[tuple[str, ...], dict[tuple[str, str], list[BlockRow]]] = defaultdict(lambda: defaultdict(list))
    positions: dict[tuple[str, ...], int] = {}
    for row in block_rows(series):
        place: tuple[str, ...] = (row.dbms, row.version, row.line, row.server, row.config, row.benchmark)
        positions[place] = row.position
        releases[place][row.test, row.block].append(row)
    order = sorted(releases, key=lambda place: (place[0], place[2:], positions[place]))
    for place in order:
        # One stretch of lines: everything below these keys is of one release.
        yield from (f"{name}: {value}" for name, value in zip(KEYS, place, strict=True))
        for (test, _), rows in releases[place].items():
            name = f"Benchmark{place[-1].capitalize()}/{word(test)}"
            yield " ".join((name, "1", *(f"{row.value!r} {word(row.metric)}" for row in rows)))


def word(text: str) -> str:
    """A name without spaces.

    >>> word("indexed rows/s")
    'indexed_rows/s'
    """
    return "_".join(text.split())
