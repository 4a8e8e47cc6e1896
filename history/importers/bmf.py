"""Bencher Metric Format: one JSON object, benchmark to measure to value.

```
{"point-query": {"qps": {"value": 13663.56, "lower_value": 13100.0, "upper_value": 14000.0}}}
```

A file is of one release, which `--release` names. Bounds are read and not stored: they belong to Bencher's thresholds.
Names that are addresses as `history export --format bmf` writes them (`DBMS/VERSION/SERVER/CONFIG/BENCHMARK/TEST`)
are taken apart again.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from history.errors import InvalidRecord
from history.importers.figures import About, Figure, Parsed, read_json, taken_apart
from history.importing import Rejection
from history.model import Value


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    value: Value
    lower_value: Value | None = None
    upper_value: Value | None = None


def recognise(head: str) -> bool:
    """Whether a file that begins like this is a JSON object of objects with values."""
    return head.startswith("{") and '"value"' in head and '"benchmarks"' not in head and '"entries"' not in head


def parse(content: bytes, about: About) -> Parsed:
    """Figures of every benchmark and measure."""
    try:
        benchmarks = read_json(content, dict[str, dict[str, _Value]], "Bencher Metric Format")
    except InvalidRecord as error:
        yield Rejection(line=1, reason=str(error))
        return
    for name, measures in benchmarks.items():
        for metric, measured in measures.items():
            yield Figure(1, metric=metric, value=measured.value, **taken_apart(name))
