"""Bencher Metric Format: one JSON object, benchmark to measure to value.

```
{"point-query": {"qps": {"value": 13663.56, "lower_value": 13100.0, "upper_value": 14000.0}}}
```

A file is of one release, which `--release` names. Bounds are read and not stored: they belong to Bencher's thresholds.
Names that are addresses as `history export --format bmf` writes them (`DBMS/VERSION/SERVER/CONFIG/BENCHMARK/TEST`)
are taken apart again.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from history.errors import InvalidRecord
from history.importers.figures import About, Figure, Parsed, decoded, direction
from history.importing import Rejection
from history.limits import checked_json
from history.model import Value

#: Parts of a name that we wrote.
PARTS = 6


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    value: Value
    lower_value: Value | None = None
    upper_value: Value | None = None


_FILE = TypeAdapter(dict[str, dict[str, _Value]])


def recognise(head: str) -> bool:
    """Whether a file that begins like this is a JSON object of objects with values."""
    return head.startswith("{") and '"value"' in head and '"benchmarks"' not in head and '"entries"' not in head


def parse(content: bytes, about: About) -> Parsed:
    """Figures of every benchmark and measure."""
    try:
        benchmarks = _FILE.validate_python(checked_json(decoded(content)))
    except (ValueError, ValidationError, InvalidRecord) as error:
        yield Rejection(line=1, reason=f"not Bencher Metric Format: {'; '.join(str(error).splitlines()[:3])}")
        return
    for name, measures in benchmarks.items():
        parts = name.split("/", PARTS - 1)
        ours = len(parts) == PARTS
        dbms, version, server, config, benchmark, test = parts if ours else ("", "", "", "", "", name)
        for metric, measured in measures.items():
            yield Figure(
                1,
                version,
                test,
                metric,
                measured.value,
                better=direction(metric, "", about),
                dbms=dbms,
                server=server,
                config=config,
                benchmark=benchmark,
            )
