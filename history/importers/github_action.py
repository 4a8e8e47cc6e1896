"""github-action-benchmark: the array its custom tools give, or the `data.js` it keeps on a pages branch.

```
[{"name": "point-query", "unit": "qps", "value": 13663.56, "range": "± 120", "extra": "1 thread"}]
window.BENCHMARK_DATA = {"entries": {"Suite": [{"commit": {...}, "date": 1767616200000, "benches": [...]}]}}
```

The array is of one release (`--release`), the store has a row a commit (line `main` unless `--line` names another).
The unit becomes the metric. Which direction is better is not in the array: `customBiggerIsBetter` or
`customSmallerIsBetter` in the store says it, else `--better`, else the unit.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from history.errors import InvalidRecord
from history.importers.figures import (
    COMMIT_LINE,
    About,
    Figure,
    Parsed,
    commit_version,
    read_json,
    taken_apart,
)
from history.importing import Rejection
from history.model import Better, Value

PREFIX = "window.BENCHMARK_DATA ="
TOOLS: dict[str, Better] = {"customBiggerIsBetter": "higher", "customSmallerIsBetter": "lower"}


class _Bench(BaseModel):
    name: str
    unit: str
    value: Value


class _Commit(BaseModel):
    id: str


class _Entry(BaseModel):
    commit: _Commit
    date: int
    tool: str = ""
    benches: list[_Bench]


class _Store(BaseModel):
    entries: dict[str, list[_Entry]]


def recognise(head: str) -> bool:
    """Whether a file that begins like this is the store or the array."""
    return head.startswith(PREFIX) or (head.startswith("[") and '"unit"' in head and '"value"' in head)


def parse(content: bytes, about: About) -> Parsed:
    """Figures of the array, or of every commit in the store."""
    text = content.removeprefix(BOM_UTF8).strip().removeprefix(PREFIX.encode()).rstrip().removesuffix(b";")
    try:
        if text.startswith(b"["):
            benches = read_json(text, list[_Bench], "github-action-benchmark")
            yield from (_figure(bench)._replace(**taken_apart(bench.name)) for bench in benches)
            return
        store = read_json(text, _Store, "github-action-benchmark")
    except InvalidRecord as error:
        yield Rejection(line=1, reason=str(error))
        return
    for suite, entries in store.entries.items():
        for entry in entries:
            try:
                started = datetime.fromtimestamp(entry.date / 1000, UTC)
            except (ValueError, OverflowError, OSError) as error:
                yield Rejection(line=1, reason=f"the date {entry.date} of commit {entry.commit.id}: {error}")
                continue
            release: dict[str, Any] = {
                "version": commit_version(started, entry.commit.id),
                "line": about.line or COMMIT_LINE,
            }
            for bench in entry.benches:
                yield _figure(bench)._replace(**release, benchmark=suite, started=started, better=TOOLS.get(entry.tool))


def _figure(bench: _Bench) -> Figure:
    return Figure(1, bench.name, bench.unit or "value", bench.value, bench.unit)
