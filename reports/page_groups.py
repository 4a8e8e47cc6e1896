"""What a site consists of: groups of files that are made, or skipped, together. Pure but for the package's own assets.

A group knows the digest of everything its files depend on, so that a build can leave alone what did not change.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import presentation
from history.model import Finding, Series
from presentation import addresses
from presentation.addresses import LineKey
from presentation.headline import release_name
from presentation.heat import Marks, marks_of
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
from reports.pages.overview import about_context, findings_context, overview_context
from reports.pages.test import test_context
from reports.render import render
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

Crumbs = tuple[tuple[str, str], ...]
"""(label, address) from the overview down; the last has no address."""
Drawn = tuple[dict[str, object], str, str]
"""What a page shows, and the CSV and JSON of what it draws."""

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
    return _Site(snapshot, settings).groups()


class _Site:
    """The groups of one snapshot."""

    def __init__(self, snapshot: Snapshot, settings: ReportSettings) -> None:
        self.snapshot = snapshot
        self.settings = settings
        self.digests = _Digests(snapshot)

    def groups(self) -> Iterator[PageGroup]:
        snapshot, settings, digests = self.snapshot, self.settings, self.digests
        everything = digest(*digests.series.values(), digests.all_findings, digests.ran)
        host_inputs = digest(digests.ran, *(reading.model_dump_json() for reading in snapshot.readings))
        yield self._assets()
        yield self._page("index", "overview", everything, lambda: overview_context(snapshot, settings))
        yield self._page(
            "findings/index",
            "findings",
            digests.all_findings,
            lambda: findings_context(snapshot, settings),
        )
        dated = digest(digests.all_findings, digests.ran)
        yield PageGroup(dated, ("feed.xml",), lambda: {"feed.xml": feed(snapshot, settings)})
        yield self._drawn("noise", "noise", everything, self._noise)
        yield self._page(
            "environment", "environment", host_inputs, lambda: environment_context(snapshot, settings.annotations)
        )
        yield self._page("about", "about", digests.ran, lambda: about_context(snapshot, settings))
        yield from self._compare()
        yield from map(self._finding, snapshot.findings)
        yield from map(self._gone, snapshot.gone)
        for key in snapshot.lines:
            yield from self._line(key)

    def _page(
        self,
        stem: str,
        template: str,
        inputs: str,
        context: Callable[[], dict[str, object]],
        crumbs: Crumbs = (),
        *,
        charts: bool = False,
    ) -> PageGroup:
        """A page without files of its own."""
        path = f"{stem}.html"
        return PageGroup(
            inputs,
            (path,),
            lambda: {path: render(f"{template}.html", path, self.settings, context(), charts=charts, crumbs=crumbs)},
        )

    def _drawn(
        self, stem: str, template: str, inputs: str, make: Callable[[], Drawn], crumbs: Crumbs = ()
    ) -> PageGroup:
        """A page with charts, and the CSV and JSON of what it draws."""
        page, *files = paths = tuple(f"{stem}.{end}" for end in ("html", "csv", "json"))

        def made() -> Mapping[str, str]:
            context, *texts = make()
            text = render(f"{template}.html", page, self.settings, context, charts=True, crumbs=crumbs)
            return {page: text, **dict(zip(files, texts, strict=True))}

        return PageGroup(inputs, paths, made)

    def _assets(self) -> PageGroup:
        def make() -> Mapping[str, str]:
            files = {f"assets/{name}": (PACKAGE / "assets" / name).read_text(encoding="utf-8") for name in ASSETS}
            return {**files, "assets/charts.js": charts_script(), "assets/vega.js": vega_script()}

        return PageGroup("", (*(f"assets/{name}" for name in ASSETS), "assets/charts.js", "assets/vega.js"), make)

    def _noise(self) -> Drawn:
        table = noise_of(self.snapshot)
        return noise_context(table), *noise_files(table)

    def _compare(self) -> Iterator[PageGroup]:
        places = compare.places(self.snapshot, self.settings)
        listed = [(*place, addresses.of_compare(*place)) for place in places]
        yield self._page("compare/index", "compare_index", digest(str(listed)), lambda: {"places": listed})
        for (server, benchmark), lines in places.items():
            inputs = digest(*(self.digests.series[member.key.id] for series in lines.values() for member in series))
            stem = addresses.of_compare(server, benchmark).removesuffix(".html")
            crumbs = (("Compare", "compare/index.html"), (f"{benchmark} on {server}", ""))
            make = partial(compare.compare_page, server, benchmark, lines, self.settings)
            yield self._drawn(stem, "compare", inputs, make, crumbs)

    def _finding(self, finding: Finding) -> PageGroup:
        metrics, digests = self.settings.metrics, self.digests
        inputs = digest(
            digests.findings[finding.key],
            *(digests.releases.get((finding.dbms, side), "") for side in (finding.previous, finding.release)),
            *(digests.series[move.key.id] for move in finding.moves if move.key.id in digests.series),
        )

        def make() -> Drawn:
            context = finding_context(finding, self.snapshot, self.settings)
            return context, data.moves_csv(finding, metrics), data.finding_json(finding, metrics)

        crumbs = (("Findings", "findings/index.html"), (f"{release_name(finding)} {finding.kind}", ""))
        return self._drawn(addresses.stem_of_finding(finding.key), "finding", inputs, make, crumbs)

    def _gone(self, key: str) -> PageGroup:
        """The page of a finding that the newest detection no longer has: its address was linked from issues."""
        events, links = self.snapshot.events.get(key, ()), self.snapshot.links.get(key, ())
        inputs = digest(key, *(event.model_dump_json() for event in (*events, *links)))
        context: dict[str, object] = {"key": key, "events": events, "links": link_labels(links)}
        crumbs = (("Findings", "findings/index.html"), (key, ""))
        return self._page(addresses.stem_of_finding(key), "gone", inputs, lambda: context, crumbs)

    def _line(self, key: LineKey) -> Iterator[PageGroup]:
        snapshot, settings, series = self.snapshot, self.settings, self.snapshot.lines[key]
        marks = marks_of(snapshot.findings_of(key))

        def make() -> Drawn:
            releases = releases_frame(series, marks)
            context = line_context(key, snapshot, settings)
            return context, data.line_csv(releases), data.line_json(key, series, marks)

        others = digest(newest_block(snapshot, key), *(str(other) for other in siblings(key, snapshot)))
        inputs = digest(self.digests.of_line(snapshot, key, series), others)
        folder, overview = addresses.folder(key), ("Overview", "index.html")
        yield self._drawn(f"{folder}/index", "line", inputs, make, (overview, (key.title, "")))
        above = overview, (key.title, addresses.of_line(key))
        if is_insert(key.benchmark):
            yield self._page(
                f"{folder}/insert",
                "insert",
                inputs,
                lambda: insert_context(key, snapshot, settings, snapshot.details),
                (*above, ("Insert Benchmark", "")),
                charts=True,
            )
        tests: dict[str, list[Series]] = {}
        for member in series:
            tests.setdefault(member.key.test, []).append(member)
        for test, of_test in tests.items():
            inputs = self.digests.of_line(snapshot, key, of_test)
            make_test = partial(self._test, key, test, of_test, marks)
            yield self._drawn(addresses.stem_of_test(key, test), "test", inputs, make_test, (*above, (test, "")))

    def _test(self, key: LineKey, test: str, series: list[Series], marks: Marks) -> Drawn:
        releases = releases_frame(series, marks)
        context = test_context(key, test, series, releases, self.snapshot, self.settings)
        return context, data.test_csv(series, releases), data.test_json(key, test, series, marks)
