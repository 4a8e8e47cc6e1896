"""One row a value, as CSV or Parquet: the columns of `history.frames.BLOCK_DTYPES`, for spreadsheets and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from history.frames import BLOCK_DTYPES, block_frames
from history.model import Series

if TYPE_CHECKING:
    from pandas import DataFrame

#: Texts that a spreadsheet would take for a formula begin so.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_parts(series: Iterable[Series]) -> Iterator[str]:
    """CSV with a header, in parts of many lines, the last newline of each left out.

    Numbers are written so that they read back exactly. A text that a spreadsheet would take for a formula gets an
    apostrophe in front.
    """
    for number, frame in enumerate(block_frames(series)):
        text = _harmless(frame).to_csv(index=False, header=not number, lineterminator="\n")
        if text:
            yield text.removesuffix("\n")


def _harmless(frame: DataFrame) -> DataFrame:
    texts = {name: frame[name] for name, dtype in BLOCK_DTYPES.items() if dtype == "str"}
    return frame.assign(**{name: text.mask(text.str.startswith(FORMULA), "'" + text) for name, text in texts.items()})


def write_parquet(series: Iterable[Series], path: Path) -> None:
    """Write `path`, a few rows in memory at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    types = {"int64": pa.int64(), "float64": pa.float64(), "str": pa.string(), "datetime64[s]": pa.date32()}
    schema = pa.schema([(name, types[dtype]) for name, dtype in BLOCK_DTYPES.items()])
    with parquet.ParquetWriter(path, schema) as writer:
        for frame in block_frames(series):
            writer.write_table(pa.Table.from_pandas(frame, schema=schema, preserve_index=False))
