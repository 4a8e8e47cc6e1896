"""The CSV that Apache Otava reads: a time, attributes, and one column a metric; a row a commit or release.

```
time,commit,throughput,latency
2026-01-05T12:30:00+00:00,3f2a9c1,154023,10.43
```

Attribute columns are `time`, `commit`, `branch`, and the words of the project (`dbms`, `line`, `version`, `server`,
`config`, `benchmark`); a metric column is `METRIC` or `TEST|METRIC`, as `history export --format otava` writes it. A
row without a version is of the commit; its line is `main` unless `--line` names another. An empty cell is no value.
"""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from io import StringIO
from typing import Any

from history.errors import InvalidRecord
from history.importers.figures import About, Figure, Parsed, commit_release, decoded, number
from history.importing import Rejection

WORDS = ("dbms", "line", "version", "server", "config", "benchmark")
ATTRIBUTES = ("time", "commit", "branch", *WORDS)
TIME_FORMATS = ("%Y.%m.%d %H:%M:%S %z", "%Y-%m-%d %H:%M:%S %z")


def recognise(head: str) -> bool:
    """Whether a file that begins like this is a CSV with a time in its first column."""
    return head.startswith("time,")


def moment(text: str) -> datetime:
    """ISO 8601, Otava's own `2026.01.05 12:30:00 +0100`, or seconds since 1970; without a zone it is UTC."""
    text = text.strip()
    if text.replace(".", "", 1).isdigit():
        return datetime.fromtimestamp(float(text), UTC)
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        for form in TIME_FORMATS:
            try:
                return datetime.strptime(text, form)
            except ValueError:
                continue
        raise InvalidRecord(f"{text!r} is no time") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def parse(content: bytes, about: About) -> Parsed:
    """Figures of every row."""
    reader = csv.reader(StringIO(decoded(content), newline=""), strict=True)
    header: list[str] = []
    try:
        for row in reader:
            if not header:
                header = [name.strip() for name in row]
                if header[:1] != ["time"] or len(set(header)) < len(header):
                    yield Rejection(line=1, reason="the first line names the columns, `time` first, each once")
                    return
            elif len(row) != len(header):
                yield Rejection(line=reader.line_num, reason=f"{len(row)} cells, the header has {len(header)}")
            else:
                yield from _row(reader.line_num, dict(zip(header, row, strict=True)), about)
    except csv.Error as error:
        yield Rejection(line=reader.line_num, reason=str(error))


def _row(line: int, cells: dict[str, str], about: About) -> Parsed:
    try:
        started = moment(cells["time"])
        release: dict[str, Any] = {name: cells[name] for name in WORDS if cells.get(name)}
        if "version" not in release and not about.version:
            if not cells.get("commit"):
                raise InvalidRecord("neither version nor commit; give --release")
            release = commit_release(started, cells["commit"], about) | release
        for column, text in cells.items():
            if column in ATTRIBUTES or not text.strip():
                continue
            test, _, metric = column.rpartition("|")
            yield Figure(line, test or about.test or metric, metric, number(text), started=started, **release)
    except (InvalidRecord, ValueError, OverflowError, OSError) as error:
        yield Rejection(line=line, reason=str(error))
