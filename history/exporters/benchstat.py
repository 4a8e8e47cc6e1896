"""The Go benchmark format: keys of a release, then a line a block and test.

The release stands in the keys, so `benchstat -col version FILE` puts releases side by side. A unit may hold no space:
`indexed rows/s` is written `indexed_rows/s`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from history.exporters.points import Value, values
from history.model import Series

KEYS = ("dbms", "version", "line", "server", "config", "benchmark")


def lines(series: Iterable[Series]) -> Iterator[str]:
    """Keys whenever they change, then benchmark lines in the order of tests and blocks."""
    found: dict[tuple[str, ...], dict[tuple[str, str], list[Value]]] = defaultdict(lambda: defaultdict(list))
    positions: dict[tuple[str, ...], int] = {}
    for one in values(series):
        key = one.key
        place: tuple[str, ...] = (key.dbms, one.version, key.line, key.server, key.config, key.benchmark)
        positions[place] = one.position
        found[place][key.test, one.block.block_id].append(one)
    order = sorted(found, key=lambda place: (place[0], place[2:], positions[place]))
    for place in order:
        # One stretch of lines: everything below these keys is of one release.
        yield from (f"{name}: {value}" for name, value in zip(KEYS, place, strict=True))
        for (test, _), blocks in found[place].items():
            name = f"Benchmark{place[-1].capitalize()}/{word(test)}"
            yield " ".join((name, "1", *(f"{one.block.value!r} {word(one.key.metric)}" for one in blocks)))


def word(text: str) -> str:
    """A name without spaces.

    >>> word("indexed rows/s")
    'indexed_rows/s'
    """
    return "_".join(text.split())
