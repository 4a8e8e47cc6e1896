"""Issue, page, terminal row, site JSON and exports say the same of a finding: of every shipped one, of ones detected in
a history with several blocks a release, and of random ones.

What is printed is read back with parsers of Markdown, HTML and JSON and with regular expressions, and compared with
numbers that this file works out from the blocks and the moves by itself.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import cmarkgfm
import html5lib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.context import context_of
from alerts.render import render
from alerts.settings import AlertSettings
from alerts.subject import subjects
from alerts.trackers import Draft
from detector import DetectorSettings
from history.exporters import write
from history.model import MAJORS, Finding, Move, Point, Series
from history.store import Store
from pointdrop.jobs.detect import find
from presentation.findings import findings_frame
from reports.settings import ReportSettings
from reports.site import build, write_site
from reports.snapshot import Snapshot, grouped_by_line
from tests.alerts.scenarios import majors, regression_throughput, regression_with_improvement
from tests.builders import TESTS, finding, history_of, move, series, series_key

ROOT = Path(__file__).parents[2]
#: Every kind gets an issue, so that every finding is in all places.
SETTINGS = AlertSettings.model_validate(
    {
        "filing": {"kinds": ["regression", "drift", "environment", "improvement"]},
        "text": {"sparklines": 500, "tables": 3},
    }
)
#: Metrics in the order of the registry, read without our own reader.
REGISTRY: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "configs" / "metrics.toml").read_text())
RANK = {name: rank for rank, name in enumerate(REGISTRY)}
NUMBER = re.compile(r"[+−-]?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")


class Places(NamedTuple):
    """Everything that is said of the findings of one history."""

    findings: Sequence[Finding]
    series: dict[str, Series]
    site: Path
    issues: dict[str, Draft]
    """By key of the finding; findings of one boundary share an issue."""


def issues_of(findings: Sequence[Finding], every: Sequence[Series]) -> dict[str, Draft]:
    """In the order in which alerts file them."""
    return {
        subject.finding.key: render(
            subject, context_of(subject.finding, of_line(every, subject.finding), SETTINGS), SETTINGS
        )
        for subject in subjects(findings, SETTINGS.filing.kinds, SETTINGS.metrics)
    }


def of_line(every: Sequence[Series], named: Finding) -> list[Series]:
    return [
        line_series for line_series in every if (line_series.key.dbms, line_series.key.line) == (named.dbms, named.line)
    ]


def places_of(store: Store, site: Path) -> Places:
    findings, every = store.findings(), list(store.series())
    build(store, site, ReportSettings())
    return Places(
        findings, {line_series.key.id: line_series for line_series in every}, site, issues_of(findings, every)
    )


@pytest.fixture(scope="module")
def published_places(published: Store, tmp_path_factory: pytest.TempPathFactory) -> Places:
    return places_of(published, tmp_path_factory.mktemp("published"))


@pytest.fixture(scope="module", params=[majors, regression_throughput, regression_with_improvement])
def detected_store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with Store.open("sqlite://") as store:
        request.param(store)
        store.append_detection(find(list(store.series()), DetectorSettings(), store), "test")
        yield store


# What is printed, read back.


def tables(root: Element) -> list[list[dict[str, str]]]:
    """Each table as rows by the names of its columns."""
    parsed = []
    for table in root.iter("table"):
        rows = [[" ".join("".join(cell.itertext()).split()) for cell in row] for row in table.iter("tr")]
        parsed.append([dict(zip(rows[0], row, strict=True)) for row in rows[1:] if len(row) == len(rows[0])])
    return parsed


def issue_html(draft: Draft) -> Element:
    html: Element = html5lib.parse(
        cmarkgfm.github_flavored_markdown_to_html(draft.body), treebuilder="etree", namespaceHTMLElements=False
    )
    return html


@lru_cache(maxsize=400)
def page(path: Path) -> Element:
    """Sites are never changed here, so a page is parsed once."""
    html: Element = html5lib.parse(path.read_text(encoding="utf-8"), treebuilder="etree", namespaceHTMLElements=False)
    return html


def finding_page(places: Places, named: Finding) -> tuple[Element, dict[str, Any], Path]:
    """The page and the JSON beside it, found by way of the list of findings."""
    links = list_links(places)
    path = places.site / "findings" / links[named.key]
    return page(path), json.loads(path.with_suffix(".json").read_text(encoding="utf-8")), path


def list_links(places: Places) -> dict[str, str]:
    """By key, the links of the list of findings in their order; the key is that of the JSON beside the page."""
    links = {}
    for table in page(places.site / "findings" / "index.html").iter("table"):
        for anchor in table.iter("a"):
            address = unquote(anchor.attrib["href"])
            target = places.site / "findings" / address
            if "/findings/" in f"/{address}" and target.suffix == ".html":
                links[json.loads(target.with_suffix(".json").read_text(encoding="utf-8"))["key"]] = address
    return links


def moves_table(root: Element) -> list[dict[str, str]]:
    return next(table for table in tables(root) if table and "95 % interval" in table[0])


def groups_table(rows_of: list[list[dict[str, str]]]) -> set[tuple[str, ...]]:
    """(server, metric, group, moved of tests) of the first table of groups."""
    first = next(table for table in rows_of if table and {"tests moved", "Tests moved"} & table[0].keys())
    lowered = [{name.lower(): cell for name, cell in row.items()} for row in first]
    return {(row["server"], row["metric"], row["group"], row["tests moved"]) for row in lowered}


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "").replace("−", "-")) for number in NUMBER.findall(text)]


def near(text: str, exact: float) -> bool:
    """Whether a printed percentage is `exact` as far as its decimals go."""
    if not math.isfinite(exact):
        return "inf" in text
    (shown, *_) = numbers(text)
    decimals = len((re.search(r"\.(\d+)", text) or [""])[1]) if "." in text.split(" ")[0] else 0
    return abs(shown - exact) <= 0.501 * 10.0**-decimals


# What is true, worked out here.


def named_for(of: Finding) -> tuple[str, list[Move]]:
    """The metric of the headline and its moves: of those that go the finding's way, the metric that moved in most
    tests; throughput, CPU and instructions before the others."""
    wrong_way = {"regression": "improvement", "drift": "improvement", "improvement": "regression"}.get(of.kind)
    moves = [moved for moved in of.moves if moved.direction != wrong_way] or list(of.moves)
    by_metric: dict[str, list[Move]] = defaultdict(list)
    for moved in moves:
        by_metric[moved.key.metric].append(moved)

    def order(metric: str) -> tuple[bool, int, int, str]:
        entry = REGISTRY.get(metric, {})
        leads = entry.get("kind", "counts") in ("throughput", "cpu", "instructions") and entry.get("evidence", True)
        return not leads, -len(by_metric[metric]), RANK.get(metric, len(RANK)), metric

    metric = min(by_metric, key=order)
    return metric, by_metric[metric]


def level_of(point: Point) -> float:
    return median(value.value for value in point.values)


# The properties.


def check_headlines(places: Places) -> None:
    """Title of the issue, of the page and of the row are one; metric, median, worst test and counts are the moves'."""
    rows = {row["finding"]: row for row in findings_frame(places.findings, SETTINGS.metrics).to_dict("records")}
    for named in places.findings:
        metric, moves = named_for(named)
        root, record, _ = finding_page(places, named)
        row = rows[named.key]
        heading = " ".join("".join(next(root.iter("h1")).itertext()).split())[2:]
        draft = places.issues.get(named.key)
        assert heading == record["headline"]["title"] == row["title"], named.key
        assert draft is None or draft.title == heading[: len(draft.title)].rstrip() or draft.title.endswith("…")
        changes = [moved.change_pct for moved in moves]
        worst = max(moves, key=lambda moved: (abs(moved.change_pct), moved.key.id))
        assert record["headline"]["metric"] == row["metric"] == metric
        assert record["headline"]["median_pct"] == row["median_pct"] == median(changes)
        assert record["headline"]["worst_pct"] == row["worst_pct"] == worst.change_pct
        assert record["headline"]["worst_test"] == row["worst_test"] == worst.key.test
        assert record["headline"]["tests"] == row["tests"] == len({moved.key.test for moved in named.moves})
        servers = [moved.key.server for moved in moves]
        (counted,) = re.findall(r"\((\d[\d,]*)(?: of \d[\d,]*)? tests? moved", heading)
        assert int(counted.replace(",", "")) == max(servers.count(server) for server in servers), heading
        # The worst test leads, then come the tests; a median stands of five or more that moved one way.
        (size,) = re.findall(rf"{re.escape(worst.key.test)} (?:needs|gets) ([\d.,]+ %)", heading)
        assert near(size, abs(worst.change_pct)), heading
        one_way = min(changes) >= 0 or max(changes) <= 0
        typical = re.findall(r"median ([−+]?[\d.,]+ %)", heading)
        if len({(moved.key.benchmark, moved.key.test) for moved in moves}) < 5 or not one_way:
            assert not typical, heading
        else:
            assert near(typical[0], median(changes)), heading
        check_words(named, heading, root)


#: What people read for a tier.
WORDS = {"provisional": "suspected", "confirmed": "confirmed", "unconfirmed": "not seen again"}


def check_words(named: Finding, heading: str, root: Element) -> None:
    """A step between majors is no point release, and a tier is one word, without a probability beside it."""
    facts = {
        "".join(fact.find("dt").itertext()): fact.find("dd") for fact in root.iter("div") if fact.find("dt") is not None
    }  # type: ignore[union-attr]
    assert facts["How sure"].text == WORDS[named.tier]  # type: ignore[union-attr]
    assert "p >" not in "".join(facts["How sure"].itertext())  # type: ignore[union-attr]
    if named.line == MAJORS and named.kind != "drift":
        assert "→" in heading and named.release not in heading.partition(":")[0], heading
    else:
        assert "→" not in heading, heading


def check_order(places: Places) -> None:
    """The list of findings, the terminal and alerts have the same order, point releases before majors."""
    listed = list(list_links(places))
    assert listed == list(findings_frame(places.findings, SETTINGS.metrics)["finding"])
    lines = {named.key: named.line for named in places.findings}
    assert [lines[key] == MAJORS for key in listed] == sorted(lines[key] == MAJORS for key in listed)
    assert [key for key in listed if key in places.issues] == list(places.issues)
    assert set(listed) == {named.key for named in places.findings if named.moves}


def check_intervals(places: Places) -> None:
    """The interval of each move in the issue's trends, the page's table and its JSON is the move's."""
    for named in places.findings:
        root, record, _ = finding_page(places, named)
        by_series = {moved.key.id: moved for moved in named.moves}
        for entry in record["moves"]:
            moved = by_series["|".join(entry["key"].values())]
            assert (entry["low_pct"], entry["high_pct"]) == (moved.low_pct, moved.high_pct)
        shown = moves_table(root)
        assert len(shown) == len(named.moves)
        text = (
            "\n".join("".join(block.itertext()) for block in issue_html(places.issues[named.key]).iter("pre"))
            if (named.key in places.issues)
            else ""
        )
        for moved in named.moves:
            candidates = [
                row
                for row in shown
                if (row["Test"], row["Metric"]) == (moved.key.test, moved.key.metric)
                and row["Server, config"].startswith(f"{moved.key.server} · {moved.key.config}")
            ]
            assert any(
                same_interval(row["95 % interval"], moved) and same_change(row["Change"], moved) for row in candidates
            )
            if text:
                key = moved.key
                columns = " +".join(re.escape(name) for name in (key.test, key.metric, key.server))
                lines = re.findall(rf"(?m)^{columns} .*$", text)
                assert any(same_interval(re.split(r" {2,}", line)[-1], moved) for line in lines), (
                    named.key,
                    moved.key.id,
                )


def same_change(text: str, moved: Move) -> bool:
    """In percent, or near zero as the two levels."""
    if moved.near_zero:
        before, after = (numbers(side)[0] for side in text.split(" → "))
        return "%" not in text and abs(after - before - (moved.after - moved.before)) <= 0.001 * abs(after - before)
    return near(text, moved.change_pct)


def same_interval(text: str, moved: Move) -> bool:
    if moved.near_zero:
        return text == "–"
    low, high = text.split(" to ")
    return near(f"{low} %", moved.low_pct) and near(high, moved.high_pct)


def check_counts(places: Places) -> None:
    """Each group with its tests moved, of so many, in issue, page and JSON."""
    for named in places.findings:
        root, record, _ = finding_page(places, named)
        everywhere = {
            (group["server"], group["metric"], group["group"] or "all tests", f"{group['moved']} of {group['tests']}")
            for group in record["groups"]
        }
        on_page = groups_table(tables(root))
        moved = {row for row in everywhere if not row[3].startswith("0 ")}
        assert moved <= on_page <= everywhere, named.key
        if named.key in places.issues:
            in_issue = groups_table(tables(issue_html(places.issues[named.key])))
            assert in_issue == on_page, named.key


def check_levels(places: Places, exported: dict[tuple[str, str], float] | None = None) -> None:
    """The level of each release is the median of its blocks: on the test page and in its JSON, in the issue's
    per-operation tables, and in what is exported."""
    for named in places.findings:
        root, _, path = finding_page(places, named)
        levels = {
            moved.key.id: {
                point.version: level_of(point) for point in places.series[moved.key.id].points if point.values
            }
            for moved in named.moves
        }
        for row, link in zip(moves_table(root), test_links(root), strict=True):
            target = (path.parent / unquote(link.partition("?")[0])).resolve()
            record = json.loads(target.with_suffix(".json").read_text(encoding="utf-8"))
            (drawn,) = (entry for entry in record["series"] if entry["metric"] == row["Metric"])
            names = ("dbms", "line", "server", "config", "benchmark", "test", "metric")
            exact = levels["|".join(drawn.get(name, record.get(name)) for name in names)]
            assert {point["version"]: point["median"] for point in drawn["points"]} == exact
            section = next(
                element
                for element in page(target).iter("section")
                if element.attrib.get("data-view") and row["Metric"] in "".join(element.itertext())[:400]
                and f"{row['Metric']} by release" in "".join(element.itertext())
            )  # fmt: skip
            medians = {line["Release"]: line["Median"] for line in tables(section)[0]}
            assert medians.keys() == exact.keys()
            for version, value in exact.items():
                assert math.isclose(numbers(medians[version])[0], value, rel_tol=6e-4, abs_tol=1e-300), (version, value)
        if exported is not None and named.line != MAJORS:
            for series_id, of_series in levels.items():
                for version, value in of_series.items():
                    assert exported[series_id, version] == value
        if named.key in places.issues:
            check_operations(places, named)


def test_links(root: Element) -> list[str]:
    for table in root.iter("table"):
        if "95 % interval" in "".join(table.itertext()):
            return [row.find(".//a").attrib["href"] for row in table.iter("tr") if row.find(".//a") is not None]  # type: ignore[union-attr]
    raise AssertionError("no table of moves")


test_links.__test__ = False  # type: ignore[attr-defined]


def check_operations(places: Places, named: Finding) -> None:
    """Each row of the issue's per-operation tables has the levels of its release."""
    root = issue_html(places.issues[named.key])
    title = ""
    for element in root.iter():
        if element.tag == "p":
            title = "".join(element.itertext())
        if element.tag != "pre" or "--- absolute" not in "".join(element.itertext()):
            continue
        place = re.fullmatch(r"(\S+) on (\S+), config (\S+), (\S+)", title)
        if not place:
            continue  # the table of counted instructions, with a column a test
        lines = "".join(element.itertext()).splitlines()
        end = lines.index("--- relative to first result") if "--- relative to first result" in lines else len(lines)
        head = re.split(r" {1,}(?!rows)", lines[1].strip())
        for line in lines[2:end]:
            values, version = line.split(f" {named.dbms} ")[0].split(), line.split(f" {named.dbms} ")[1].split()[0]
            for column, text in zip(head, values, strict=False):
                metrics = [name for name, entry in REGISTRY.items() if entry.get("column", name) == column] or [column]
                ids = [
                    f"{named.dbms}|{named.line}|{place[2]}|{place[3]}|{place[4]}|{place[1]}|{metric}"
                    for metric in metrics
                ]
                levels = [
                    level_of(point)
                    for series_id in ids
                    if series_id in places.series
                    for point in places.series[series_id].points
                    if point.version == version and point.values
                ]
                assert text == "–" or any(
                    math.isclose(numbers(text)[0], level, rel_tol=6e-4, abs_tol=1e-300) for level in levels
                ), (named.key, title, version, column, text, levels)


def exported_levels(store: Store, versions: set[str], path: Path) -> dict[tuple[str, str], float]:
    """By series and release, what Bencher's format has: one value a release."""
    levels = {}
    for version in versions:
        write(store, "bmf", path, {}, version)
        for address, measures in json.loads(path.read_text()).items():
            dbms, release, server, config, benchmark, test = address.split("/", 5)
            for metric, value in measures.items():
                levels[dbms, release, server, config, benchmark, test, metric] = value["value"]
    lines = {
        (line_series.key.dbms, point.version): line_series.key.line
        for line_series in store.series()
        if line_series.key.line != MAJORS
        for point in line_series.points
    }
    return {
        (f"{dbms}|{lines[dbms, release]}|{server}|{config}|{benchmark}|{test}|{metric}", release): value
        for (dbms, release, server, config, benchmark, test, metric), value in levels.items()
    }


CHECKS = (check_headlines, check_order, check_intervals, check_counts)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_shipped_findings_agree(published_places: Places, check: Any) -> None:
    assert len(published_places.findings) > 20
    check(published_places)


@pytest.mark.slow
def test_levels_of_shipped_findings_agree(published: Store, published_places: Places, tmp_path: Path) -> None:
    versions = {point.version for line_series in published_places.series.values() for point in line_series.points}
    check_levels(published_places, exported_levels(published, versions, tmp_path / "levels.json"))


def test_detected_findings_agree(detected_store: Store, tmp_path: Path) -> None:
    places = places_of(detected_store, tmp_path / "site")
    assert places.findings
    for check in CHECKS:
        check(places)
    versions = {point.version for line_series in places.series.values() for point in line_series.points}
    check_levels(places, exported_levels(detected_store, versions, tmp_path / "levels.json"))


# Random findings.

KEYS = st.builds(
    series_key,
    st.sampled_from(TESTS),
    st.sampled_from(["qps", "insn/o", "cpu_us/o", "cs/o", "wKB/o", "not-known"]),
    server=st.sampled_from(["small", "medium"]),
    config=st.sampled_from(["default", "z12a"]),
)
CHANGES = st.floats(-80, 900).filter(lambda change: abs(change) > 0.02)
LEVELS = st.floats(1e-3, 1e6)
BLOCKS = st.lists(st.lists(LEVELS, min_size=1, max_size=4), min_size=4, max_size=4)
RELEASES = ("17.3", "17.4", "17.5", "17.6")


@st.composite
def random_findings(draw: st.DrawFn) -> tuple[list[Finding], list[Series]]:
    findings, every = [], {}
    for release, previous in draw(st.sampled_from([[("17.5", "17.4")], [("17.5", "17.4"), ("17.6", "17.5")]])):
        keys = draw(st.lists(KEYS, min_size=1, max_size=7, unique=True))
        kind = draw(st.sampled_from(["regression", "drift", "environment", "improvement"]))
        tier = draw(st.sampled_from(["confirmed", "provisional", "unconfirmed"]))
        moves = []
        for key in keys:
            change, below, above = draw(CHANGES), draw(st.floats(0, 50)), draw(st.floats(0, 50))
            moved = move(key, draw(LEVELS), change)
            moves.append(moved.model_copy(update={"low_pct": change - below, "high_pct": change + above}))
            every.setdefault(key.id, series(draw(BLOCKS), key, releases=RELEASES))
        findings.append(finding(release, previous, kind=kind, tier=tier, moves=moves))
    return findings, list(every.values())


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(random_findings())
def test_random_findings_agree(generated: tuple[list[Finding], list[Series]]) -> None:
    findings, every = generated
    with TemporaryDirectory() as folder:
        write_site(Snapshot(lines=grouped_by_line(every), findings=tuple(findings)), Path(folder), ReportSettings())
        issues = issues_of(findings, every)
        places = Places(findings, {line_series.key.id: line_series for line_series in every}, Path(folder), issues)
        for check in (*CHECKS, check_levels):
            check(places)


@pytest.mark.parametrize("release", ["版本" * 20, "1.0 beta/../../x", "17.5"])
def test_the_issue_leads_to_the_page_whatever_the_release_is_called(release: str, tmp_path: Path) -> None:
    foreign = finding(release, "17.4", functions=False, plans=False)
    every = history_of(foreign, ("17.3", "17.4", release))
    write_site(Snapshot(lines=grouped_by_line(every), findings=(foreign,)), tmp_path, ReportSettings())
    (draft,) = issues_of([foreign], every).values()
    codes = ["".join(element.itertext()) for element in issue_html(draft).iter("code")]
    (address,) = (text for text in codes if text.startswith("var/site/"))
    assert (tmp_path / address.removeprefix("var/site/")).is_file()
