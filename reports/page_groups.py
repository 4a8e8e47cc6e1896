"""What a site consists of: groups of files that are made, or skipped, together. Pure but for the package's own assets.

A group knows the digest of everything its files depend on, so that a build can leave alone what did not change.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import presentation
from history.model import Finding, Series
from presentation import addresses
from presentation.addresses import LineKey
from presentation.comparison import Lines
from presentation.heat import marks_of
from presentation.insert import is_insert
from presentation.releases import releases_frame
from reports import data
from reports.charts import charts_script, vega_script
from reports.feed import feed
from reports.pages import compare
from reports.pages.environment import environment_context
from reports.pages.finding import finding_context, link_labels
from reports.pages.insert import insert_context
from reports.pages.line import line_context, newest_block, siblings
from reports.pages.noise import noise_context, noise_files, noise_of
from reports.pages.overview import about_context, finding_summaries, overview_context
from reports.pages.test import test_context
from reports.render import render
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

Crumbs = tuple[tuple[str, str], ...]
"""(label, address) from the overview down; the last has no address."""

PACKAGE = Path(__file__).parent
ASSETS = ("site.css", "site.js", "theme.js", "icon.svg")
#: What changes the bytes of a site: the code of these folders, and the versions of these libraries.
ROOMS = (PACKAGE, Path(presentation.__file__).parent)
SUFFIXES = (".py", ".html", ".css", ".js", ".svg")
LIBRARIES = ("altair", "jinja2", "pandas", "vl-convert-python")


@dataclass(frozen=True)
class PageGroup:
    """Files that are made, or skipped, together."""

    inputs: str
    """Digest of everything the files depend on."""
    paths: tuple[str, ...]
    make: Callable[[], Mapping[str, str]]


def digest(*parts: str) -> str:
    """sha256 over length-prefixed parts, so that ("a", "bc") and ("ab", "c") differ."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(b"%d:" % len(encoded))
        digest.update(encoded)
    return digest.hexdigest()[:32]


def code_digest(settings: ReportSettings) -> str:
    """Of the code, templates and assets of pages, of the libraries and of the settings."""
    files = [path for room in ROOMS for path in sorted(room.rglob("*")) if path.suffix in SUFFIXES]
    versions = [metadata.version(name) for name in LIBRARIES]
    return digest(*(path.read_text(encoding="utf-8") for path in files), *versions, repr(settings))


def _control(series: Series) -> str:
    """The control's values, in no order of arrival."""
    return repr([(session, sorted(series.control[session])) for session in sorted(series.control)])


class _Digests:
    """Digest of every part of a snapshot, each computed once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.series = {
            member.key.id: digest(member.model_dump_json(exclude={"control"}), _control(member))
            for series in snapshot.lines.values()
            for member in series
        }
        self.findings = {
            finding.key: digest(
                finding.model_dump_json(),
                *(event.model_dump_json() for event in snapshot.events_of(finding)),
                *(link.model_dump_json() for link in snapshot.links_of(finding)),
            )
            for finding in snapshot.findings
        }
        by_release: dict[tuple[str, str], list[str]] = defaultdict(list)
        for ran in snapshot.ran:
            text = f"{ran.run.model_dump_json()}{ran.session.model_dump_json()}{ran.statuses}{ran.reasons}{ran.ended}"
            by_release[ran.run.release.dbms, ran.run.release.version].append(text)
        self.releases = {release: digest(*texts) for release, texts in by_release.items()}
        self.ran = digest(*(text for texts in by_release.values() for text in texts))
        self.all_findings = digest(*self.findings.values())

    def of_line(self, snapshot: Snapshot, key: LineKey, series: Iterable[Series]) -> str:
        findings = (self.findings[finding.key] for finding in snapshot.findings_of(key))
        return digest(*(self.series[member.key.id] for member in series), *findings)


def page_groups(snapshot: Snapshot, settings: ReportSettings) -> Iterator[PageGroup]:
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
    yield PageGroup(
        digest(digests.all_findings, digests.ran), ("feed.xml",), lambda: {"feed.xml": feed(snapshot, settings)}
    )
    yield _noise(snapshot, settings, everything)
    yield _page(
        "environment.html",
        "environment.html",
        digest(digests.ran, *(reading.model_dump_json() for reading in snapshot.readings)),
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


def _assets() -> PageGroup:
    def make() -> Mapping[str, str]:
        files = {f"assets/{name}": (PACKAGE / "assets" / name).read_text(encoding="utf-8") for name in ASSETS}
        return {**files, "assets/charts.js": charts_script(), "assets/vega.js": vega_script()}

    return PageGroup("", (*(f"assets/{name}" for name in ASSETS), "assets/charts.js", "assets/vega.js"), make)


def _page(
    path: str,
    template: str,
    inputs: str,
    settings: ReportSettings,
    context: Callable[[], dict[str, object]],
    *,
    charts: bool = False,
    crumbs: Crumbs = (),
) -> PageGroup:
    return PageGroup(
        inputs,
        (path,),
        lambda: {path: render(template, path, settings, context(), charts=charts, crumbs=crumbs)},
    )


def _noise(snapshot: Snapshot, settings: ReportSettings, inputs: str) -> PageGroup:
    def make() -> Mapping[str, str]:
        table = noise_of(snapshot)
        page = render("noise.html", "noise.html", settings, noise_context(table), charts=True)
        return {"noise.html": page, **noise_files(table)}

    return PageGroup(inputs, ("noise.html", "noise.csv", "noise.json"), make)


def _compare(snapshot: Snapshot, settings: ReportSettings, digests: _Digests) -> Iterator[PageGroup]:
    places = compare.places(snapshot, settings)
    listed = [(server, benchmark, addresses.of_compare(server, benchmark)) for server, benchmark in places]
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
            lines: Lines = places[server, benchmark],
        ) -> Mapping[str, str]:
            compared = compare.compared(lines, settings)
            context = compare.compare_context(server, benchmark, compared, settings)
            files = compare.compare_files(server, benchmark, compared)
            return {
                page: render("compare.html", page, settings, context, charts=True, crumbs=crumbs),
                **{f"{stem}.{end}": text for end, text in files.items()},
            }

        lines = places[server, benchmark].values()
        inputs = digest(*(digests.series[member.key.id] for series in lines for member in series))
        yield PageGroup(inputs, tuple(f"{stem}.{end}" for end in ("html", "csv", "json")), make)


def _findings(snapshot: Snapshot, settings: ReportSettings, digests: _Digests) -> Iterator[PageGroup]:
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
        yield PageGroup(touched, tuple(f"{stem}.{end}" for end in ("html", "json", "csv")), make)


def _gone(key: str, snapshot: Snapshot, settings: ReportSettings) -> PageGroup:
    """The page of a finding that the newest detection no longer has: its address was linked from issues."""
    events, links = snapshot.events.get(key, ()), snapshot.links.get(key, ())
    inputs = digest(key, *(event.model_dump_json() for event in (*events, *links)))
    return _page(
        addresses.of_finding(key),
        "gone.html",
        inputs,
        settings,
        lambda: {"key": key, "events": events, "links": link_labels(links)},
        crumbs=(("Findings", "findings/index.html"), (key, "")),
    )


def _line(key: LineKey, snapshot: Snapshot, settings: ReportSettings, digests: _Digests) -> Iterator[PageGroup]:
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
            f"{folder}/index.csv": data.line_csv(releases_frame(series, marks)),
        }

    others = digest(newest_block(snapshot, key), *(str(other) for other in siblings(key, snapshot)))
    inputs = digest(digests.of_line(snapshot, key, series), others)
    yield PageGroup(inputs, (page, f"{folder}/index.json", f"{folder}/index.csv"), make_line)
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
    for member in series:
        tests.setdefault(member.key.test, []).append(member)
    for test, of_test in tests.items():
        yield _test(key, test, of_test, snapshot, settings, digests)


def _test(
    key: LineKey, test: str, series: list[Series], snapshot: Snapshot, settings: ReportSettings, digests: _Digests
) -> PageGroup:
    stem = addresses.stem_of_test(key, test)

    def make() -> Mapping[str, str]:
        marks = marks_of(snapshot.findings_of(key))
        crumbs = (("Overview", "index.html"), (key.title, addresses.of_line(key)), (test, ""))
        page = f"{stem}.html"
        releases = releases_frame(series, marks)
        context = test_context(key, test, series, releases, snapshot, settings)
        return {
            page: render("test.html", page, settings, context, charts=True, crumbs=crumbs),
            f"{stem}.json": data.test_json(key, test, series, marks),
            f"{stem}.csv": data.test_csv(series, releases),
        }

    return PageGroup(
        digests.of_line(snapshot, key, series), tuple(f"{stem}.{end}" for end in ("html", "json", "csv")), make
    )
