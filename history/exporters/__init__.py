"""Formats that `history export` writes, one module each; `write` is the way in."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from history.errors import InvalidRecord
from history.exporters import benchstat, jsonl, junit, openmetrics, otava, snapshots, tables
from history.exporters.snapshots import at
from history.files import replaced
from history.model import MAJORS, Better, Series
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
    with replaced(out) as draft:
        if format_name == "parquet":
            tables.write_parquet(_counted(store, wanted, seen), draft)
        else:
            zipped = out.suffix == ".gz"
            with gzip.open(draft, "wt", encoding="utf-8") if zipped else draft.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in _lines(store, format_name, wanted, version, seen))
    return seen.total()


def _counted(
    store: Store,
    wanted: dict[str, str | None],
    seen: Counter[str],
    version: str | None = None,
    better: Better | None = None,
) -> Iterator[Series]:
    """The wanted series, counting those that an exporter writes. `majors` is left out: its values are those of the
    real lines."""
    for series in store.series(**wanted):
        if series.key.line != MAJORS:
            seen["series"] += better in (None, series.better) and any(True for _ in at((series,), version))
            yield series


def _lines(
    store: Store, format_name: str, wanted: dict[str, str | None], version: str | None, seen: Counter[str]
) -> Iterable[str]:
    if format_name == "jsonl":
        return jsonl.lines(store, wanted, seen)
    better = DIRECTIONS.get(format_name)
    series = _counted(store, wanted, seen, version, better)
    match format_name:
        case "csv":
            return tables.csv_parts(series)
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
