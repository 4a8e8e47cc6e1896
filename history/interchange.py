"""The interchange format `pointdrop.run/1`: JSON Lines that runners upload and `history import` takes.

The first line names the format and who wrote it; every other line is one record with its kind, whole:

```
{"schema":"pointdrop.run/1","writer":"pointdrop 0.1.0"}
{"session":{"id":"s1","host":"bee","server":"small","fingerprint":{"facts":{"cores":"8"}},"started":"2026-01-05T00:00:00Z"}}
{"run":{"id":"r1","session_id":"s1","release":{"dbms":"mysql","version":"8.0.30","line":"8.0"},"config":"z12c","benchmark":"sysbench"}}
{"block":{"id":"b1","run_id":"r1","number":1,"started":"2026-01-05T00:01:00Z","ended":"2026-01-05T00:02:00Z","measurements":[]}}
```

A session stands before its runs, a run before its blocks."""

from __future__ import annotations

import json

from history.model import RUN_SCHEMA, Block, Run, Session
from history.records import WRITER

Record = Session | Run | Block

HEADER = json.dumps({"schema": RUN_SCHEMA, "writer": WRITER}, separators=(",", ":"))


def line_of_record(record: Record) -> str:
    """One line, without its newline.

    >>> from datetime import UTC, datetime
    >>> from history.model import Fingerprint
    >>> day = datetime(2026, 1, 5, tzinfo=UTC)
    >>> line_of_record(Session(id="s", host="h", server="small", fingerprint=Fingerprint(facts={}), started=day))[:40]
    '{"session":{"id":"s","host":"h","server"'
    """
    return f'{{"{type(record).__name__.lower()}":{record.model_dump_json()}}}'
