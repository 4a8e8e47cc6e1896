"""Formats that `history export` writes, one module each; `write` is the way in."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from history.errors import InvalidRecord
from history.exporters import benchstat, jsonl, junit, openmetrics, otava, snapshots, tidy
from history.exporters.points import at
from history.model import Better, Series
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
#: Formats that hold series of one direction.
DIRECTIONS: dict[str, Better] = {"customBiggerIsBetter": "higher", "customSmallerIsBetter": "lower"}
#: Formats that hold one release.
SNAPSHOTS = ("bmf", *DIRECTIONS, "openmetrics")


def write(
    store: Store, format_name: str, out: Path | None, wanted: dict[str, str | None], version: str | None = None
) -> int:
    """Export the series that `wanted` names to `out`, or to standard output; how many there were, of `jsonl` records.

    `version` chooses the release for formats that hold one. A file appears whole or not at all, and is valid when
    nothing was wanted that is there; `.gz` is compressed.
    """
    if format_name not in FORMATS:
        raise InvalidRecord(f"there is no format {format_name}; take one of {', '.join(FORMATS)}")
    if format_name == "parquet" and out is None:
        raise InvalidRecord("Parquet is not for a terminal; name a file with --out")
    if version is not None and format_name not in SNAPSHOTS:
        raise InvalidRecord(
            f"{format_name} holds every release; leave --release out, or take one of {', '.join(SNAPSHOTS)}"
        )
    if format_name == "jsonl" and (wanted.get("test") or wanted.get("metric")):
        raise InvalidRecord("jsonl holds whole blocks; leave --test and --metric out, or take another format, as csv")
    seen: Counter[str] = Counter()
    if out is None:
        for line in _lines(store, format_name, wanted, version, seen):
            sys.stdout.write(f"{line}\n")
        return seen.total()
    part = out.with_name(out.name + ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if format_name == "parquet":
            tidy.write_parquet(_counted(store.series(**wanted), seen), part)
        else:
            _write_lines(_lines(store, format_name, wanted, version, seen), part, zipped=out.suffix == ".gz")
        part.replace(out)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return seen.total()


def _counted(
    series: Iterable[Series], seen: Counter[str], version: str | None = None, better: Better | None = None
) -> Iterator[Series]:
    """`series`, counting those that an exporter writes."""
    for one in series:
        seen["series"] += better in (None, one.better) and any(True for _ in at((one,), version))
        yield one


def _counted_records(lines: Iterable[str], seen: Counter[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        seen["records"] = number  # the first line is the header
        yield line


def _write_lines(lines: Iterable[str], part: Path, *, zipped: bool) -> None:
    with gzip.open(part, "wt", encoding="utf-8") if zipped else part.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def _lines(
    store: Store, format_name: str, wanted: dict[str, str | None], version: str | None, seen: Counter[str]
) -> Iterable[str]:
    if format_name == "jsonl":
        return _counted_records(jsonl.lines(store, wanted), seen)
    better = DIRECTIONS.get(format_name)
    series = _counted(store.series(**wanted), seen, version, better)
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
        case _:
            return _json(snapshots.custom(series, DIRECTIONS[format_name], version))


def _json(value: Any) -> Iterator[str]:
    yield json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
