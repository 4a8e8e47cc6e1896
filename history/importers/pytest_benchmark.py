"""pytest-benchmark JSON (`--benchmark-json`): one run of a suite on one commit.

```
{"datetime": "2026-01-05T12:30:00+00:00", "commit_info": {"id": "3f2a..."}, "benchmarks":
  [{"fullname": "test_b.py::test_sort[10]", "group": null, "stats": {"median": 2.4e-07, "rounds": 8, ...}}]}
```

The value of a test is its median round, metric `time` in seconds. The release is `--release`, else the commit on line
`main` (`--line`). A dirty or unversioned tree has no commit, and then `--release` is needed.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, Field

from history.errors import InvalidRecord
from history.importers.figures import About, Figure, Parsed, commit_release, read_json
from history.importing import Rejection
from history.model import Value, utc

METRIC = "time"
NO_COMMIT = "unversioned"


class _Commit(BaseModel):
    id: str | None
    dirty: bool = False


class _Stats(BaseModel):
    median: Value
    rounds: int
    iterations: int


class _Benchmark(BaseModel):
    fullname: str
    group: str | None = None
    stats: _Stats


class _File(BaseModel):
    started: datetime = Field(alias="datetime")
    commit_info: _Commit
    benchmarks: list[_Benchmark]


def recognise(head: str) -> bool:
    """Whether a file that begins like this is pytest-benchmark's."""
    return head.startswith("{") and '"machine_info"' in head


def parse(content: bytes, about: About) -> Parsed:
    """Figures of every test."""
    try:
        suite = read_json(content, _File, "pytest-benchmark")
        started = utc(suite.started if suite.started.tzinfo else suite.started.replace(tzinfo=UTC))
    except (ValueError, InvalidRecord) as error:
        yield Rejection(line=1, reason=str(error))
        return
    commit = suite.commit_info
    if not about.version and (commit.dirty or commit.id in (None, "", NO_COMMIT)):
        yield Rejection(line=1, reason="the tree was dirty or without a commit; give --release")
        return
    release = commit_release(started, commit.id or "", about)
    for benchmark in suite.benchmarks:
        yield Figure(
            1,
            benchmark.fullname,
            METRIC,
            benchmark.stats.median,
            "s",
            group=benchmark.group or "",
            operations=benchmark.stats.rounds * benchmark.stats.iterations,
            started=started,
            **release,
        )
