"""The Go benchmark format, which benchstat reads: `key: value` lines, then one line a repetition.

```
dbms: mysql
BenchmarkSysbench/point-query  41095  13663.56 qps  0.0712 cpu/o
```

The name without `Benchmark` is the test, the unit the metric, the iterations the operations; repeated lines are
blocks. Keys `dbms`, `version`, `line`, `server`, `config` and `benchmark` say what the lines after them are of, as
`history export --format benchstat` writes them; there, `Sysbench/` before the test is the benchmark.
"""

from __future__ import annotations

import re
from typing import Any

from history.errors import InvalidRecord
from history.importers.figures import About, Figure, Parsed, decoded, number
from history.importing import Rejection

#: Of a number of iterations, which is stored in 64 bits.
MOST_DIGITS = 18
KEYS = ("dbms", "version", "line", "server", "config", "benchmark")

_KEY = re.compile(r"^([a-z][^\sA-Z:]*):\s*(.*)$")
_NAME = re.compile(r"^Benchmark(?![a-z])\S*$")


def recognise(head: str) -> bool:
    """Whether a file that begins like this has lines of the Go benchmark format."""
    return re.search(r"^Benchmark\S*\s+\d+\s+\S+\s+\S+", head, re.MULTILINE) is not None


def parse(content: bytes, about: About) -> Parsed:
    """Figures of every benchmark line; other lines are not of the format and are skipped, as benchstat does."""
    keys: dict[str, str] = {}
    for line_number, line in enumerate(decoded(content).splitlines(), 1):
        if match := _KEY.match(line):
            keys[match[1]] = match[2].strip()
            continue
        words = line.split()
        if len(words) < 2 or not _NAME.match(words[0]):
            continue
        try:
            yield from _line(line_number, words, keys)
        except InvalidRecord as error:
            yield Rejection(line=line_number, reason=str(error))


def _line(line_number: int, words: list[str], keys: dict[str, str]) -> Parsed:
    name, count, *pairs = words
    if not (count.isdecimal() and len(count) <= MOST_DIGITS) or not pairs or len(pairs) % 2:
        raise InvalidRecord("a benchmark line is NAME ITERATIONS, then pairs of VALUE UNIT")
    test = name.removeprefix("Benchmark")
    benchmark = keys.get("benchmark", "")
    test = test.removeprefix(f"{benchmark.capitalize()}/") if benchmark else test
    release: dict[str, Any] = {key: keys[key] for key in KEYS if key in keys}
    for value, unit in zip(pairs[::2], pairs[1::2], strict=True):
        yield Figure(line_number, test or name, unit, number(value), unit, operations=int(count), **release)
