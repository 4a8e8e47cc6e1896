"""airspeed velocity: one result file, `results/MACHINE/COMMIT-ENVIRONMENT.json`, of format 2.

```
{"version": 2, "commit_hash": "8c38be22...", "date": 1795256553000, "result_columns": ["result", "params", ...],
 "results": {"b.Suite.time_sort": [[2.6e-06, NaN], [["10", "1000"]], ...], "b.track_size": [[42.5], [], ...]}}
```

A benchmark with parameters is a test a combination (`b.Suite.time_sort(10, 'up')`); NaN (skipped) and null (failed)
are no value. The file does not hold units: by asv's rule the name tells (`time_*` seconds, `mem_*` and `peakmem_*`
bytes, the rest none). The release is `--release`, else the commit on line `main` (`--line`).
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from itertools import product
from typing import Any

from history.errors import InvalidRecord
from history.importers.figures import About, Figure, Parsed, commit_release, decoded
from history.importing import Rejection

VERSION = 2
#: Metric and unit by the beginning of the function's name.
KINDS = {
    "timeraw_": ("time", "s"),
    "time_": ("time", "s"),
    "peakmem_": ("memory", "bytes"),
    "mem_": ("memory", "bytes"),
    "track_": ("value", ""),
}


def recognise(head: str) -> bool:
    """Whether a file that begins like this is asv's."""
    return head.startswith("{") and '"commit_hash"' in head and '"env_name"' in head


def parse(content: bytes, about: About) -> Parsed:
    """Figures of every benchmark and combination of parameters."""
    try:
        # asv writes NaN and Infinity, which are no JSON; they never get past this module.
        result_file: Any = json.loads(decoded(content))
        if not isinstance(result_file, dict) or result_file.get("version") != VERSION:
            raise InvalidRecord(f"only result files of format {VERSION} are read")
        started = datetime.fromtimestamp(int(result_file["date"]) / 1000, UTC)
        columns = list(result_file["result_columns"])
        result, params = columns.index("result"), columns.index("params")
        commit, results = str(result_file["commit_hash"]), dict(result_file["results"])
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError, InvalidRecord) as error:
        yield Rejection(line=1, reason=f"not an asv result file: {error}")
        return
    release = commit_release(started, commit, about)
    for name, row in results.items():
        try:
            values, axes = row[result], row[params] if len(row) > params else []
            if values is None:
                continue
            # Counted before they are made: a few long lists have more combinations than there is memory.
            combinations = math.prod(len(axis) for axis in axes)
            if len(values) != combinations:
                raise InvalidRecord(f"{name} has {len(values)} values for {combinations} combinations of parameters")
            tests = [f"{name}({', '.join(combination)})" if axes else name for combination in product(*axes)]
            for test, value in zip(tests, values, strict=True):
                if value is not None and not math.isnan(value):
                    yield _figure(name, test, value, started)._replace(**release)
        except (TypeError, LookupError, OverflowError, InvalidRecord) as error:
            yield Rejection(line=1, reason=f"{name}: {error}")


def _figure(name: str, test: str, value: float, started: datetime) -> Figure:
    if not math.isfinite(value):
        raise InvalidRecord("a result is not finite")
    function = name.rpartition(".")[2]
    metric, unit = next((kind for prefix, kind in KINDS.items() if function.startswith(prefix)), ("value", ""))
    return Figure(1, test, metric, float(value), unit, started=started)
