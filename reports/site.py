"""The driver: a history becomes a folder of pages.

The same history gives the same bytes, whenever and wherever it is built. A second build renders only page groups
whose inputs changed: `.pointdrop-site.json` in the folder keeps the digest of each group's inputs, and files of an
earlier build that no group makes any more are removed (other files in the folder are left alone).
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from history.files import write_atomically
from reports.errors import PageTooLarge
from reports.page_groups import code_digest, page_groups
from reports.settings import MAX_PAGE_BYTES, ReportSettings
from reports.snapshot import Snapshot, read
from reports.toolchains import toolchain_annotations

if TYPE_CHECKING:
    from history.store import Store

MANIFEST = ".pointdrop-site.json"


@dataclass
class BuildReport:
    """What a build did."""

    out: Path
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    pages: int = 0
    bytes: int = 0
    largest: str = ""
    largest_bytes: int = 0
    findings: int = 0
    lines: int = 0

    @property
    def index(self) -> Path:
        return self.out / "index.html"


def build(store: Store, out: Path, settings: ReportSettings | None = None, *, dry_run: bool = False) -> BuildReport:
    """Write the site of `store` into the folder `out`; with `dry_run` only count what would be written.

    Two builds of one folder, as of a night and of `serve`, go one after the other, each with the history of its turn.
    """
    settings = settings or ReportSettings()
    if dry_run:
        return write_site(read(store), out, settings, dry_run=True)
    with _turn(out):
        return write_site(read(store), out, settings)


@contextmanager
def _turn(out: Path) -> Iterator[None]:
    """Held by one process at a time; a process that dies gives it back."""
    out.mkdir(parents=True, exist_ok=True)
    folder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def write_site(snapshot: Snapshot, out: Path, settings: ReportSettings, *, dry_run: bool = False) -> BuildReport:
    """Write what changed, remove what is gone."""
    report = BuildReport(out, findings=len(snapshot.findings), lines=len(snapshot.lines))
    settings = replace(settings, annotations=(*settings.annotations, *toolchain_annotations(snapshot)))
    code = code_digest(settings)
    before = _manifest(out, code)
    files: dict[str, str] = {}
    for group in page_groups(snapshot, settings):
        files.update(dict.fromkeys(group.paths, group.inputs))
        if all(before.get(path) == group.inputs and (out / path).is_file() for path in group.paths):
            report.unchanged += len(group.paths)
        elif dry_run:
            report.written += len(group.paths)
        else:
            if not report.written:
                # A build that ends before its own manifest is written must not leave its pages to an older one.
                _write(out / MANIFEST, json.dumps({"code": "", "files": _listed(out)}), MANIFEST)
            for path, text in group.make().items():
                report.written += _write(out / path, text, path)
    gone = sorted(set(_listed(out)) - set(files))
    if dry_run:
        report.removed, report.pages = len(gone), sum(path.endswith(".html") for path in files)
        return report
    for path in gone:
        report.removed += _remove(out, path)
    _write(out / MANIFEST, json.dumps({"code": code, "files": files}, indent=0, sort_keys=True), MANIFEST)
    for path in files:
        size = (out / path).stat().st_size
        report.bytes += size
        if path.endswith(".html"):
            report.pages += 1
            if size > report.largest_bytes:
                report.largest, report.largest_bytes = path, size
    return report


def _listed(out: Path) -> dict[str, str]:
    """Files of the last build, by path; a damaged manifest lists none, and everything is made again."""
    try:
        files: dict[str, str] = json.loads((out / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return files


def _manifest(out: Path, code: str) -> dict[str, str]:
    """`_listed`, or nothing when another version of the code made those files."""
    try:
        same = json.loads((out / MANIFEST).read_text(encoding="utf-8"))["code"] == code
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return _listed(out) if same else {}


def _write(path: Path, text: str, name: str) -> int:
    encoded = text.encode()
    if name.endswith(".html") and len(encoded) > MAX_PAGE_BYTES:
        raise PageTooLarge(
            f"{name} would have {len(encoded):,} bytes; no page passes {MAX_PAGE_BYTES:,}. "
            "Report this with the numbers of tests and releases of that line."
        )
    write_atomically(path, encoded, durable=False)
    return 1


def _remove(out: Path, path: str) -> int:
    """Delete one file of an earlier build, and folders it leaves empty. Paths come from a file, so they are checked."""
    target = (out / path).resolve()
    if not target.is_relative_to(out.resolve()) or not target.is_file():
        return 0
    target.unlink()
    for folder in target.parents:
        if folder == out.resolve() or any(folder.iterdir()):
            break
        folder.rmdir()
    return 1
