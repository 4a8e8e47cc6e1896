"""Formats that `history export` writes, one module each; `write` is the way in."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from history.errors import InvalidRecord
from history.exporters import benchstat, jsonl, junit, openmetrics, otava, snapshots, tidy
from history.store import Store

FORMATS = (
    "jsonl",
    "csv",
    "parquet",
    "otava",
    "bmf",
    "customBiggerIsBetter",
    "customSmallerIsBetter",
    "benchstat",
    "openmetrics",
    "junit",
)


def write(
    store: Store, format_name: str, out: Path | None, wanted: dict[str, str | None], version: str | None = None
) -> None:
    """Export the series that `wanted` names to `out`, or to standard output.

    `version` chooses the release for formats that hold one. A file appears whole or not at all; `.gz` is compressed.
    """
    if format_name not in FORMATS:
        raise InvalidRecord(f"there is no format {format_name}; take one of {', '.join(FORMATS)}")
    if format_name == "parquet" and out is None:
        raise InvalidRecord("Parquet is not for a terminal; name a file with --out")
    if out is None:
        for line in _lines(store, format_name, wanted, version):
            sys.stdout.write(f"{line}\n")
        return
    part = out.with_name(out.name + ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if format_name == "parquet":
            tidy.write_parquet(store.series(**wanted), part)
        else:
            _write_lines(_lines(store, format_name, wanted, version), part, zipped=out.suffix == ".gz")
        part.replace(out)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _write_lines(lines: Iterable[str], part: Path, *, zipped: bool) -> None:
    with gzip.open(part, "wt", encoding="utf-8") if zipped else part.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def _lines(store: Store, format_name: str, wanted: dict[str, str | None], version: str | None) -> Iterable[str]:
    if format_name == "jsonl":
        return jsonl.lines(store, wanted)
    series = store.series(**wanted)
    match format_name:
        case "csv":
            return tidy.csv_lines(series)
        case "otava":
            return otava.csv_lines(series)
        case "benchstat":
            return benchstat.lines(series)
        case "openmetrics":
            return openmetrics.lines(series, version)
        case "junit":
            return junit.document(series, store.findings()).splitlines()
        case "bmf":
            return _json(snapshots.bmf(series, version))
        case "customBiggerIsBetter":
            return _json(snapshots.custom(series, "higher", version))
        case _:
            return _json(snapshots.custom(series, "lower", version))


def _json(value: Any) -> Iterator[str]:
    yield json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
