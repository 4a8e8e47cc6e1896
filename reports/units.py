"""What a site consists of: units of files that are made, or skipped, together. Pure but for the package's own assets.

A unit knows the digest of everything its files depend on, so that a build can leave alone what did not change.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from history.model import Finding, Series
from presentation import addresses
from presentation.addresses import LineKey
from reports import data
from reports.charts import charts_script, vega_script
from reports.feed import feed
from reports.heat import marks_of
from reports.insert import is_insert
from reports.pages import compare
from reports.pages.environment import environment_context
from reports.pages.finding import finding_context, link_labels
from reports.pages.insert import insert_context
from reports.pages.line import line_context, newest_block, siblings
from reports.pages.noise import noise_context, noise_files
from reports.pages.overview import about_context, finding_summaries, overview_context
from reports.pages.test import test_context
from reports.render import render
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

Crumbs = tuple[tuple[str, str], ...]
"""(label, address) from the overview down; the last has no address."""

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


def _control(one: Series) -> str:
    """The control's values, in no order of arrival."""
    return repr([(session, sorted(one.control[session])) for session in sorted(one.control)])


class _Digests:
    """Digest of every part of a snapshot, each computed once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.series = {
            one.key.id: digest(one.model_dump_json(exclude={"control"}), _control(one))
            for series in snapshot.lines.values()
            for one in series
        }
        self.findings = {
            one.key: digest(
                one.model_dump_json(),
                *(event.model_dump_json() for event in snapshot.events_of(one)),
                *(link.model_dump_json() for link in snapshot.links_of(one)),
            )
            for one in snapshot.findings
        }
        by_release: dict[tuple[str, str], list[str]] = defaultdict(list)
        for one in snapshot.ran:
            text = f"{one.run.model_dump_json()}{one.session.model_dump_json()}{one.statuses}{one.reasons}{one.ended}"
            by_release[one.run.release.dbms, one.run.release.version].append(text)
        self.releases = {release: digest(*texts) for release, texts in by_release.items()}
        self.ran = digest(*(text for texts in by_release.values() for text in texts))
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
        lambda: {"findings": finding_summaries(snapshot, settings)},
    )
    yield Unit(digest(digests.all_findings, digests.ran), ("feed.xml",), lambda: {"feed.xml": feed(snapshot, settings)})
    yield _noise(snapshot, settings, everything)
    yield _page(
        "environment.html",
        "environment.html",
        digest(digests.ran, *(one.model_dump_json() for one in snapshot.readings)),
        settings,
        lambda: environment_context(snapshot, settings.annotations),
    )
    yield _page("about.html", "about.html", digests.ran, settings, lambda: about_context(snapshot, settings))
    yield from _compare(snapshot, settings, digests)
    yield from _findings(snapshot, settings, digests)
    for gone in snapshot.gone:
        yield _gone(gone, snapshot, settings)
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
        return {"noise.html": page, **noise_files(snapshot)}

    return Unit(inputs, ("noise.html", "noise.csv", "noise.json"), make)


def _compare(snapshot: Snapshot, settings: ReportSettings, digests: _Digests) -> Iterator[Unit]:
    known = compare.places(snapshot)
    listed = [(server, benchmark, addresses.of_compare(server, benchmark)) for server, benchmark in known]
    yield _page("compare/index.html", "compare_index.html", digest(str(listed)), settings, lambda: {"places": listed})
    for server, benchmark, page in listed:
        crumbs = (("Compare", "compare/index.html"), (f"{benchmark} on {server}", ""))
        stem = page.removesuffix(".html")

        def make(
            server: str = server,
            benchmark: str = benchmark,
            page: str = page,
            stem: str = stem,
            crumbs: Crumbs = crumbs,
        ) -> Mapping[str, str]:
            context = compare.compare_context(server, benchmark, snapshot, settings)
            files = compare.compare_files(server, benchmark, snapshot, settings)
            return {
                page: render("compare.html", page, settings, context, charts=True, crumbs=crumbs),
                **{f"{stem}.{end}": text for end, text in files.items()},
            }

        lines = compare.series_of(snapshot, server, benchmark)
        inputs = digest(*(digests.series[one.key.id] for _, series in lines for one in series))
        yield Unit(inputs, tuple(f"{stem}.{end}" for end in ("html", "csv", "json")), make)


def _findings(snapshot: Snapshot, settings: ReportSettings, digests: _Digests) -> Iterator[Unit]:
    for finding in snapshot.findings:
        stem = addresses.stem_of_finding(finding.key)
        crumbs = (("Findings", "findings/index.html"), (f"{finding.dbms} {finding.release} {finding.kind}", ""))

        def make(finding: Finding = finding, stem: str = stem, crumbs: Crumbs = crumbs) -> Mapping[str, str]:
            context = finding_context(finding, snapshot, settings)
            page = f"{stem}.html"
            return {
                page: render("finding.html", page, settings, context, charts=True, crumbs=crumbs),
                f"{stem}.json": data.finding_json(finding, settings.metrics),
                f"{stem}.csv": data.moves_csv(finding, settings.metrics),
            }

        touched = digest(
            digests.findings[finding.key],
            *(digests.releases.get((finding.dbms, side), "") for side in (finding.previous, finding.release)),
            *(digests.series[move.key.id] for move in finding.moves if move.key.id in digests.series),
        )
        yield Unit(touched, tuple(f"{stem}.{end}" for end in ("html", "json", "csv")), make)


def _gone(key: str, snapshot: Snapshot, settings: ReportSettings) -> Unit:
    """The page of a finding that the newest detection no longer has: its address was linked from issues."""
    events, links = snapshot.events.get(key, ()), snapshot.links.get(key, ())
    inputs = digest(key, *(one.model_dump_json() for one in (*events, *links)))
    return _page(
        addresses.of_finding(key),
        "gone.html",
        inputs,
        settings,
        lambda: {"key": key, "events": events, "links": link_labels(links)},
        crumbs=(("Findings", "findings/index.html"), (key, "")),
    )


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

    others = digest(newest_block(snapshot, key), *(str(other) for other in siblings(key, snapshot)))
    inputs = digest(digests.of_line(snapshot, key, series), others)
    yield Unit(inputs, (page, f"{folder}/index.json", f"{folder}/index.csv"), make_line)
    if is_insert(key.benchmark):
        yield _page(
            addresses.of_insert(key),
            "insert.html",
            inputs,
            settings,
            lambda: insert_context(key, snapshot, settings, snapshot.details),
            charts=True,
            crumbs=(("Overview", "index.html"), (key.title, page), ("Insert Benchmark", "")),
        )
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
