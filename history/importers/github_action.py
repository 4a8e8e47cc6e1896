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

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from history.errors import InvalidRecord
from history.importers.bmf import PARTS
from history.importers.figures import About, Figure, Parsed, commit_version, decoded, direction
from history.importers.otava import COMMIT_LINE
from history.importing import Rejection
from history.limits import checked_json
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


_ARRAY = TypeAdapter(list[_Bench])


def recognise(head: str) -> bool:
    """Whether a file that begins like this is the store or the array."""
    return head.startswith(PREFIX) or (head.startswith("[") and '"unit"' in head and '"value"' in head)


def parse(content: bytes, about: About) -> Parsed:
    """Figures of the array, or of every commit in the store."""
    text = decoded(content).strip().removeprefix(PREFIX).rstrip().removesuffix(";")
    try:
        value: Any = checked_json(text)
        if isinstance(value, list):
            benches = _ARRAY.validate_python(value)
            yield from (_figure(bench, "", "", None, "", about) for bench in benches)
            return
        store = _Store.model_validate(value)
    except (ValueError, ValidationError, InvalidRecord) as error:
        yield Rejection(line=1, reason=f"not github-action-benchmark: {'; '.join(str(error).splitlines()[:3])}")
        return
    for suite, entries in store.entries.items():
        for entry in entries:
            try:
                started = datetime.fromtimestamp(entry.date / 1000, UTC)
            except (ValueError, OverflowError, OSError) as error:
                yield Rejection(line=1, reason=f"the date {entry.date} of commit {entry.commit.id}: {error}")
                continue
            version = commit_version(started, entry.commit.id)
            for bench in entry.benches:
                yield _figure(bench, suite, version, started, entry.tool, about)


def _figure(bench: _Bench, suite: str, version: str, started: datetime | None, tool: str, about: About) -> Figure:
    parts = bench.name.split("/", PARTS - 1)
    ours = len(parts) == PARTS and not suite
    dbms, release, server, config, benchmark, test = parts if ours else ("", version, "", "", suite, bench.name)
    metric = bench.unit or "value"
    return Figure(
        1,
        release,
        test,
        metric,
        bench.value,
        bench.unit,
        TOOLS.get(tool) or direction(metric, bench.unit, about),
        started=started,
        line=(about.line or COMMIT_LINE) if version else "",
        dbms=dbms,
        server=server,
        config=config,
        benchmark=benchmark,
    )
