"""Formats that `history import` takes besides `pointdrop.run/1`, one module each."""

from __future__ import annotations

from pathlib import Path

from history.errors import InvalidRecord
from history.importers import asv, benchstat, bmf, github_action, otava, pytest_benchmark, smalldatum, sysbench
from history.importers.figures import About, records
from history.importing import ImportReport, Rejection, chunks, import_file, import_lines, read_bytes
from history.model import RUN_SCHEMA
from history.store import Store

#: How much of a file is looked at to tell its format.
HEAD_BYTES = 4096


#: Modules with `recognise` and `parse`, in the order in which they are tried; the most particular first.
FORMATS = {
    "sysbench": sysbench,
    "github-action-benchmark": github_action,
    "asv": asv,
    "pytest-benchmark": pytest_benchmark,
    "bmf": bmf,
    "otava": otava,
    "smalldatum": smalldatum,
    "benchstat": benchstat,
}
#: The name of the interchange format on the command line.
OWN = "pointdrop"


def recognise(content: bytes) -> str:
    """The format of a file. InvalidRecord when it is none of those known."""
    head = content[:HEAD_BYTES].decode("utf-8", errors="replace").removeprefix("\ufeff").lstrip()
    if RUN_SCHEMA in head.partition("\n")[0]:
        return OWN
    for name, foreign_format in FORMATS.items():
        if foreign_format.recognise(head):
            return name
    raise InvalidRecord(f"the format is none of those known; name it with --from: {', '.join((OWN, *FORMATS))}")


def import_any(
    store: Store, path: Path, about: About, format_name: str | None = None, *, dry_run: bool = False
) -> ImportReport:
    """One file of any format, stored whole or not at all."""
    try:
        if format_name is None:
            format_name = recognise(next(chunks(path), b""))
        if format_name == OWN:
            return import_file(store, path, dry_run=dry_run)
        if format_name not in FORMATS:
            raise InvalidRecord(f"there is no format {format_name}; take one of {', '.join((OWN, *FORMATS))}")
        lines = list(records(format_name, FORMATS[format_name].parse(read_bytes(path), about), about))
    except InvalidRecord as error:
        return ImportReport(file=str(path), rejected=(Rejection(line=0, reason=str(error)),), rejections=1)
    return import_lines(store, str(path), lambda: lines, dry_run=dry_run)
