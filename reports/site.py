"""The driver: a history becomes a folder of pages.

The same history gives the same bytes, whenever and wherever it is built. A second build renders only units whose
inputs changed: `.pointdrop-site.json` in the folder keeps the digest of each unit's inputs, and files of an earlier
build that no unit makes any more are removed (other files in the folder are left alone).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from history.model import Finding, Series
from reports import addresses, data
from reports.addresses import LineKey
from reports.charts import charts_script, vega_script
from reports.errors import PageTooLarge
from reports.feed import feed
from reports.heat import marks_of
from reports.pages import compare
from reports.pages.environment import environment_context
from reports.pages.finding import finding_context
from reports.pages.line import line_context
from reports.pages.noise import noise_context, noise_csv
from reports.pages.overview import about_context, all_briefs, overview_context
from reports.pages.test import test_context
from reports.render import render
from reports.settings import MAX_PAGE_BYTES, ReportSettings
from reports.snapshot import Snapshot, read

if TYPE_CHECKING:
    from history.store import Store

Crumbs = tuple[tuple[str, str], ...]
"""(label, address) from the overview down; the last has no address."""

MANIFEST = ".pointdrop-site.json"
PACKAGE = Path(__file__).parent
ASSETS = ("site.css", "site.js", "theme.js", "icon.svg")
#: Libraries whose version changes the bytes of a site.
LIBRARIES = ("altair", "jinja2", "vl-convert-python")


@dataclass(frozen=True)
class Unit:
    """Files that are made, or skipped, together."""

    inputs: str
    """Digest of everything the files depend on."""
    paths: tuple[str, ...]
    make: Callable[[], Mapping[str, str]]


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
    warnings: list[str] = field(default_factory=list)

    @property
    def index(self) -> Path:
        return self.out / "index.html"


def digest(*parts: str) -> str:
    """sha256 over length-prefixed parts, so that ("a", "bc") and ("ab", "c") differ."""
    found = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        found.update(b"%d:" % len(encoded))
        found.update(encoded)
    return found.hexdigest()[:32]


def code_digest(settings: ReportSettings) -> str:
    """Of this room's code, templates and assets, of the libraries and of the settings."""
    files = sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".html", ".css", ".js", ".svg"))
    versions = [metadata.version(name) for name in LIBRARIES]
    return digest(*(path.read_text(encoding="utf-8") for path in files), *versions, repr(settings))


class _Digests:
    """Digest of every part of a snapshot, each computed once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.series = {
            one.key.id: digest(one.model_dump_json()) for series in snapshot.lines.values() for one in series
        }
        self.findings = {
            one.key: digest(
                one.model_dump_json(),
                *(event.model_dump_json() for event in snapshot.events.get(one.key, ())),
                *(link.model_dump_json() for link in snapshot.links.get(one.key, ())),
            )
            for one in snapshot.findings
        }
        self.ran = digest(
            *(
                f"{one.run.model_dump_json()}{one.session.model_dump_json()}{one.statuses}{one.reasons}{one.ended}"
                for one in snapshot.ran
            )
        )
        self.all_findings = digest(*self.findings.values())

    def of_line(self, snapshot: Snapshot, key: LineKey, series: Iterable[Series]) -> str:
        findings = (self.findings[one.key] for one in snapshot.findings_of(key))
        return digest(*(self.series[one.key.id] for one in series), *findings)


def units(snapshot: Snapshot, settings: ReportSettings) -> Iterator[Unit]:
    """Everything a site consists of."""
    digests = _Digests(snapshot)
    everything = digest(*digests.series.values(), digests.all_findings, digests.ran)
    yield _assets()
    yield _page("index.html", "overview.html", everything, settings, lambda: overview_context(snapshot, settings))
    yield _page(
        "findings/index.html",
        "findings.html",
        digests.all_findings,
        settings,
        lambda: {"findings": all_briefs(snapshot)},
    )
    yield Unit(digests.all_findings, ("feed.xml",), lambda: {"feed.xml": feed(snapshot, settings)})
    yield _noise(snapshot, settings, everything)
    yield _page(
        "environment.html",
        "environment.html",
        digests.ran,
        settings,
        lambda: environment_context(snapshot, settings.annotations),
    )
    yield _page("about.html", "about.html", digests.ran, settings, lambda: about_context(snapshot, settings))
    yield from _compare(snapshot, settings, digests)
    yield from _findings(snapshot, settings, digests, everything)
    for key in snapshot.lines:
        yield from _line(key, snapshot, settings, digests)


def _assets() -> Unit:
    def make() -> Mapping[str, str]:
        files = {f"assets/{name}": (PACKAGE / "assets" / name).read_text(encoding="utf-8") for name in ASSETS}
        return {**files, "assets/charts.js": charts_script(), "assets/vega.js": vega_script()}

    return Unit("", (*(f"assets/{name}" for name in ASSETS), "assets/charts.js", "assets/vega.js"), make)


def _page(
    path: str,
    template: str,
    inputs: str,
    settings: ReportSettings,
    context: Callable[[], dict[str, object]],
    *,
    charts: bool = False,
    crumbs: Crumbs = (),
) -> Unit:
    return Unit(
        inputs,
        (path,),
        lambda: {path: render(template, path, settings, context(), charts=charts, crumbs=crumbs)},
    )


def _noise(snapshot: Snapshot, settings: ReportSettings, inputs: str) -> Unit:
    def make() -> Mapping[str, str]:
        page = render("noise.html", "noise.html", settings, noise_context(snapshot), charts=True)
        return {"noise.html": page, "noise.csv": noise_csv(snapshot)}

    return Unit(inputs, ("noise.html", "noise.csv"), make)


def _compare(snapshot: Snapshot, settings: ReportSettings, digests: _Digests) -> Iterator[Unit]:
    known = compare.places(snapshot)
    listed = [(server, benchmark, addresses.of_compare(server, benchmark)) for server, benchmark in known]
    yield _page("compare/index.html", "compare_index.html", digest(str(listed)), settings, lambda: {"places": listed})
    for server, benchmark, page in listed:
        crumbs = (("Compare", "compare/index.html"), (f"{benchmark} on {server}", ""))
        csv = page.removesuffix(".html") + ".csv"

        def make(
            server: str = server, benchmark: str = benchmark, page: str = page, csv: str = csv, crumbs: Crumbs = crumbs
        ) -> Mapping[str, str]:
            context = compare.compare_context(server, benchmark, snapshot, settings)
            return {
                page: render("compare.html", page, settings, context, charts=True, crumbs=crumbs),
                csv: compare.compare_csv(server, benchmark, snapshot, settings),
            }

        lines = compare.series_of(snapshot, server, benchmark)
        yield Unit(digest(*(digests.series[one.key.id] for _, series in lines for one in series)), (page, csv), make)


def _findings(snapshot: Snapshot, settings: ReportSettings, digests: _Digests, everything: str) -> Iterator[Unit]:
    for finding in snapshot.findings:
        stem = addresses.stem_of_finding(finding.key)
        crumbs = (("Findings", "findings/index.html"), (f"{finding.dbms} {finding.release} {finding.kind}", ""))

        def make(finding: Finding = finding, stem: str = stem, crumbs: Crumbs = crumbs) -> Mapping[str, str]:
            context = finding_context(finding, snapshot, settings)
            page = f"{stem}.html"
            return {
                page: render("finding.html", page, settings, context, charts=True, crumbs=crumbs),
                f"{stem}.json": data.finding_json(finding),
                f"{stem}.csv": data.moves_csv(finding),
            }

        touched = digest(
            digests.findings[finding.key],
            *(digests.series[move.key.id] for move in finding.moves if move.key.id in digests.series),
        )
        yield Unit(touched, tuple(f"{stem}.{end}" for end in ("html", "json", "csv")), make)


def _line(key: LineKey, snapshot: Snapshot, settings: ReportSettings, digests: _Digests) -> Iterator[Unit]:
    series = snapshot.lines[key]
    marks = marks_of(snapshot.findings_of(key))
    page = addresses.of_line(key)
    folder = addresses.folder(key)

    def make_line() -> Mapping[str, str]:
        context = line_context(key, snapshot, settings)
        crumbs = (("Overview", "index.html"), (key.title, ""))
        return {
            page: render("line.html", page, settings, context, charts=True, crumbs=crumbs),
            f"{folder}/index.json": data.line_json(key, series, marks),
            f"{folder}/index.csv": data.series_csv(series, marks, blocks=False),
        }

    others = digest(*(str(other) for other in snapshot.lines if other[:2] == key[:2]))
    inputs = digest(digests.of_line(snapshot, key, series), others)
    yield Unit(inputs, (page, f"{folder}/index.json", f"{folder}/index.csv"), make_line)
    tests: dict[str, list[Series]] = {}
    for one in series:
        tests.setdefault(one.key.test, []).append(one)
    for test, here in tests.items():
        yield _test(key, test, here, snapshot, settings, digests)


def _test(
    key: LineKey, test: str, series: list[Series], snapshot: Snapshot, settings: ReportSettings, digests: _Digests
) -> Unit:
    stem = addresses.stem_of_test(key, test)

    def make() -> Mapping[str, str]:
        marks = marks_of(snapshot.findings_of(key))
        crumbs = (("Overview", "index.html"), (key.title, addresses.of_line(key)), (test, ""))
        page = f"{stem}.html"
        context = test_context(key, test, snapshot, settings)
        return {
            page: render("test.html", page, settings, context, charts=True, crumbs=crumbs),
            f"{stem}.json": data.test_json(key, test, series, marks),
            f"{stem}.csv": data.series_csv(series, marks, blocks=True),
        }

    return Unit(digests.of_line(snapshot, key, series), tuple(f"{stem}.{end}" for end in ("html", "json", "csv")), make)


def build(store: Store, out: Path, settings: ReportSettings | None = None, *, dry_run: bool = False) -> BuildReport:
    """Write the site of `store` into the folder `out`; with `dry_run` only count what would be written."""
    return write_site(read(store), out, settings or ReportSettings(), dry_run=dry_run)


def write_site(snapshot: Snapshot, out: Path, settings: ReportSettings, *, dry_run: bool = False) -> BuildReport:
    """Write what changed, remove what is gone."""
    report = BuildReport(out, findings=len(snapshot.findings), lines=len(snapshot.lines))
    code = code_digest(settings)
    before = _manifest(out, code)
    files: dict[str, str] = {}
    for unit in units(snapshot, settings):
        files.update(dict.fromkeys(unit.paths, unit.inputs))
        if all(before.get(path) == unit.inputs and (out / path).is_file() for path in unit.paths):
            report.unchanged += len(unit.paths)
        elif dry_run:
            report.written += len(unit.paths)
        else:
            for path, text in unit.make().items():
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
        found: dict[str, str] = json.loads((out / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found


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
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:100]}.tmp")
    temporary.write_bytes(encoded)
    temporary.replace(path)
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
