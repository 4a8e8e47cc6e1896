"""One row a value, as CSV or Parquet: the columns of `COLUMNS`, for spreadsheets and notebooks."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from history.exporters.points import values
from history.model import Series

COLUMNS = (
    "dbms",
    "line",
    "version",
    "position",
    "released",
    "server",
    "config",
    "benchmark",
    "test",
    "group",
    "metric",
    "value",
    "unit",
    "better",
    "session",
    "block",
    "host",
    "epoch",
)
#: Rows of one group of a Parquet file: what is in memory at a time.
ROWS = 50_000


def rows(series: Iterable[Series]) -> Iterator[tuple[Any, ...]]:
    """Values in the order of COLUMNS."""
    for one in values(series):
        key, block = one.key, one.block
        yield (
            key.dbms,
            key.line,
            one.version,
            one.position,
            one.released,
            key.server,
            key.config,
            key.benchmark,
            key.test,
            one.group,
            key.metric,
            block.value,
            one.unit,
            one.better,
            block.session_id,
            block.block_id,
            block.host,
            block.epoch,
        )


def csv_lines(series: Iterable[Series]) -> Iterator[str]:
    """CSV with a header. Numbers are written so that they read back exactly.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    yield ",".join(COLUMNS)
    for row in rows(series):
        buffer = StringIO()
        csv.writer(buffer, lineterminator="").writerow([_harmless(cell) for cell in row])
        yield buffer.getvalue()


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def write_parquet(series: Iterable[Series], path: Path) -> int:
    """Write `path`, a few rows in memory at a time; the number of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"position": pa.int64(), "released": pa.date32(), "value": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        waiting = iter(rows(series))
        while chunk := list(islice(waiting, ROWS)):
            columns = zip(zip(*chunk, strict=True), schema, strict=True)
            arrays = [pa.array(column, field.type) for column, field in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(chunk)
    return count
