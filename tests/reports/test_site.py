"""The site as files: deterministic, incremental, valid, linked, safe, and every number the history's."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import random
import re
import statistics
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import html5lib
import pytest

from alerts.lifecycle import EVENTS
from history.model import FindingEvent, Fingerprint, IssueLink, Measurement, Release, Run, Session
from history.store import Store
from presentation import addresses
from presentation.addresses import LineKey
from presentation.number_format import grouped, signed
from presentation.ranking import finding_order
from reports.feed import feed
from reports.pages.finding import effects, move_rows
from reports.pages.finding_summary import HAPPENED
from reports.settings import MAX_PAGE_BYTES, ReportSettings
from reports.site import build
from reports.snapshot import Snapshot, read
from tests.builders import START, Writer

from .conftest import copy, readings

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)


def files(site: Path) -> dict[str, bytes]:
    return {str(path.relative_to(site)): path.read_bytes() for path in sorted(site.rglob("*")) if path.is_file()}


def pages(site: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(site.rglob("*.html")):
        yield str(path.relative_to(site)), path.read_text(encoding="utf-8")


def test_the_same_history_in_any_order_of_arrival_gives_the_same_bytes(
    history: Store, built: Path, settings: ReportSettings, tmp_path: Path
) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        copy(history, other, random.Random(3))
        build(other, tmp_path / "again", settings)
    assert files(tmp_path / "again") == files(built)


def test_a_second_build_writes_nothing(store: Store, site: Path, settings: ReportSettings) -> None:
    report = build(store, site, settings)
    assert (report.written, report.removed) == (0, 0)
    assert report.unchanged == len(files(site)) - 1  # the manifest


def test_a_new_result_rebuilds_its_line_only(
    store: Store, site: Path, settings: ReportSettings, tmp_path: Path
) -> None:
    before = files(site)
    writer = Writer(store, 9)
    writer.runs = 500
    session = writer.session("s-9", "ser4", 9)
    release = Release(dbms="mysql", version="8.0.33", line="8.0", build="published")
    measured = [Measurement(test="l.i0", metric="ips", value=70_000.0, unit="/s", better="higher")]
    writer.run(session, release, "cy10a_bee", "insert", lambda rng: measured, blocks=1)
    build(store, site, settings)
    changed = {path for path, text in files(site).items() if before.get(path) != text}
    assert "lines/mysql/8.0/ser4/cy10a_bee/insert/l.i0.html" in changed
    assert not any(path.startswith("lines/postgres/17/") for path in changed)
    fresh = tmp_path / "fresh"
    build(store, fresh, settings)
    assert files(fresh) == files(site)


def test_a_new_run_is_on_the_page_of_its_finding_also_without_new_values(
    store: Store, site: Path, settings: ReportSettings, tmp_path: Path
) -> None:
    """A page that was left alone would differ from the same page of a fresh build."""
    (run,) = store.runs(dbms="postgres", version="17.5", config="default")
    session = next(one for one in store.sessions() if one.id == run.session_id)
    later = session.model_copy(update={"id": "s-later", "started": session.started + timedelta(days=30)})
    again = run.model_copy(update={"id": "run-later", "session_id": "s-later", "bundle": {"seed": "1"}})
    store.append_session(later)
    store.append_run(again)
    (block,) = store.blocks(run.id)[:1]
    empty = {
        "id": "run-later-1",
        "run_id": "run-later",
        "measurements": (),
        "functions": {},
        "plans": {},
        "samples": {},
    }
    store.append_block(block.model_copy(update={**empty, "started": later.started, "ended": later.started}))
    build(store, site, settings)
    assert "pointdrop repeat run-later" in (site / "findings/postgres/17/17.5/regression.html").read_text("utf-8")
    build(store, tmp_path / "fresh", settings)
    assert files(tmp_path / "fresh") == files(site)


def test_what_is_gone_is_removed_and_what_is_not_ours_stays(store: Store, site: Path, settings: ReportSettings) -> None:
    (site / "CNAME").write_text("perf.example.org\n", encoding="utf-8")
    store.append_detection([], "test")
    report = build(store, site, settings)
    assert report.removed > 0
    assert (site / "CNAME").is_file()
    assert not (site / "findings/postgres/17/17.5/regression.html").exists()


def test_a_finding_that_went_keeps_its_address(store: Store, site: Path, settings: ReportSettings) -> None:
    store.append_detection([], "test")
    build(store, site, settings)
    text = (site / "findings/mysql/8.0/8.0.30/regression.html").read_text(encoding="utf-8")
    assert "no longer has this finding" in text
    assert "https://github.com/me/db/issues/12" in text


def test_a_damaged_manifest_only_costs_a_full_build(store: Store, site: Path, settings: ReportSettings) -> None:
    before = files(site)
    (site / ".pointdrop-site.json").write_text("{", encoding="utf-8")
    assert build(store, site, settings).unchanged == 0
    assert files(site) == before


def test_pages_of_a_build_that_was_stopped_are_not_taken_for_those_of_an_earlier_one(
    store: Store, site: Path, settings: ReportSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(site)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("reports.page_groups.noise_files", stopped)
        with pytest.raises(KeyboardInterrupt):
            build(store, site, replace(settings, title="Another"))
    assert files(site)["index.html"] != before["index.html"]
    build(store, site, settings)
    assert files(site) == before


def test_two_builds_of_one_folder_go_one_after_the_other(
    store: Store, site: Path, settings: ReportSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []

    def looked(of: Store) -> Snapshot:
        folder = os.open(site, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(True)
        finally:
            os.close(folder)
        return read(of)

    monkeypatch.setattr("reports.site.read", looked)
    build(store, site, settings)
    assert held == [True]  # nobody else could begin while this one reads and writes
    build(store, site, settings)
    assert held == [True, True]  # and it was given back


def test_a_manifest_cannot_delete_outside_the_site(store: Store, site: Path, settings: ReportSettings) -> None:
    outside = site.parent / "precious.txt"
    outside.write_text("keep", encoding="utf-8")
    manifest = json.loads((site / ".pointdrop-site.json").read_text(encoding="utf-8"))
    manifest["files"]["../precious.txt"] = "x"
    (site / ".pointdrop-site.json").write_text(json.dumps(manifest), encoding="utf-8")
    build(store, site, settings)
    assert outside.read_text(encoding="utf-8") == "keep"


def test_a_dry_run_writes_nothing(store: Store, settings: ReportSettings, tmp_path: Path) -> None:
    report = build(store, tmp_path / "dry", settings, dry_run=True)
    assert report.written > 20
    assert not (tmp_path / "dry").exists()


def test_an_empty_history_makes_a_site_that_says_what_to_do(settings: ReportSettings, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'empty.db'}") as empty:
        build(empty, tmp_path / "empty", settings)
    text = (tmp_path / "empty/index.html").read_text(encoding="utf-8")
    assert "pointdrop nightly" in text
    check_pages(tmp_path / "empty")


class _Tags(HTMLParser):
    """Collects what a page must not have: handlers and styles in attributes, inline scripts and styles, images."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.refused += [f"{tag} {name}" for name in names if name.startswith("on") or name == "style"]
        self.refused += [f"{tag} {value}" for value in names.values() if (value or "").startswith("javascript:")]
        if tag in ("style", "img", "iframe", "object", "base"):
            self.refused.append(tag)
        if tag == "script" and "src" not in names and names.get("type") != "application/json":
            self.refused.append("inline script")


def check_pages(site: Path) -> None:
    """Valid HTML, the policy, links that lead somewhere, size, one h1, captions and scopes."""
    for name, text in pages(site):
        html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
        assert len(text.encode()) <= MAX_PAGE_BYTES, name
        assert f'content="{CSP}"' in text, name
        assert text.count("<h1") == 1, name
        parsed = _Tags()
        parsed.feed(text)
        assert not parsed.refused, (name, parsed.refused)
        tables = text.split("<table")[1:]
        assert all("<caption" in table.split("</table>")[0] for table in tables), name
        heads = re.findall(r"<th(?=[\s>])[^>]*>", text)
        assert all("scope=" in head for head in heads), name
        ids = re.findall(r'\sid="([^"]+)"', text)
        assert len(ids) == len(set(ids)), name
        for link in re.findall(r'(?:href|src)="([^"]*)"', text):
            parts = urlsplit(link.replace("&amp;", "&"))
            if parts.scheme or not parts.path:
                assert parts.scheme in ("https", "http", "") and not (parts.scheme and "<script src" in link), name
                continue
            target = (site / name).parent / unquote(parts.path)
            assert target.is_file(), f"{name} links to {link}"


def test_every_page_is_valid_linked_and_small(built: Path) -> None:
    check_pages(built)


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    for name, text in pages(built):
        loaded = re.findall(r'<(?:script|img|link rel="(?:stylesheet|icon)")[^>]*?(?:src|href)="([^"]+)"', text)
        assert loaded, name
        assert not [link for link in loaded if "//" in link], name
    assert "http" not in (built / "assets/site.css").read_text(encoding="utf-8")


def cells(text: str, table: str) -> list[list[str]]:
    """Rows of the first table after the text `table`."""
    start = text.rindex("<", 0, text.index(table))
    tree = html5lib.parse(text[start:], namespaceHTMLElements=False)
    found = tree.find(".//table")
    assert found is not None
    return [["".join(cell.itertext()).strip() for cell in row] for row in found.iter("tr")]


def test_every_number_of_a_line_page_is_the_history_s(history: Store, built: Path) -> None:
    rng = random.Random(5)
    for key in [LineKey(*line) for line in history.lines()]:
        text = (built / addresses.of_line(key)).read_text(encoding="utf-8")
        for view, metric, decimals in (("instructions-op", "insn/o", 3), ("throughput", "qps", 2)):
            series = list(history.series(**key._asdict(), metric=metric))
            if f'data-heat="{view}"' not in text or not series:
                continue
            rows = {row[0].split("†")[0]: row for row in cells(text, f'data-heat="{view}"')}
            names = [re.sub(r"\d{4}-\d\d$", "", head.split("\n")[-1].strip()) for head in next(iter(rows.values()))]
            for one in rng.sample(series, min(4, len(series))):
                values = {p.version: statistics.median(b.value for b in p.values) for p in one.points}
                row = rows[one.key.test]
                base = next(iter(values.values()))
                for point in rng.sample(one.points, min(4, len(one.points))):
                    at = next(i for i, name in enumerate(names) if name.endswith(point.version))
                    assert row[at] == f"{values[point.version] / base:.{decimals}f}", (key, one.key.id, point.version)


def test_every_number_of_a_test_page_is_the_history_s(history: Store, built: Path) -> None:
    rng = random.Random(6)
    for one in rng.sample(list(history.series()), 12):
        key = LineKey.of(one.key)
        text = (built / addresses.of_test(key, one.key.test)).read_text(encoding="utf-8")
        rows = cells(text, f'data-view="{addresses.part(one.key.metric)}"')
        head, body = rows[0], {row[0]: row for row in rows[1:]}
        for point in one.points:
            values = [block.value for block in point.values]
            row = body[point.version]
            assert row[head.index("Median")] == grouped(statistics.median(values))
            assert row[head.index("Blocks")] == str(len(values))


def test_finding_pages_say_what_the_finding_says(history: Store, built: Path) -> None:
    for finding in history.findings():
        text = (built / addresses.of_finding(finding.key)).read_text(encoding="utf-8")
        rows = cells(text, 'aria-label="Series that moved"')
        assert len(rows) == len(finding.moves) + 1
        for move in finding.moves:
            row = next(row for row in rows if row[0] == move.key.test and row[1] == move.key.metric)
            assert signed(move.change_pct) in row
            assert grouped(move.before) in row and grouped(move.after) in row
        for sentence in finding.evidence:
            assert sentence in text


def test_steps_of_two_benchmarks_with_one_name_are_told_apart(history: Store, settings: ReportSettings) -> None:
    finding, move = next(
        (finding, move) for finding in history.findings() for move in finding.moves if move.key.benchmark == "insert"
    )
    both = [move, move.model_copy(update={"key": move.key.model_copy(update={"benchmark": "insert-io"})})]
    shown = [finding.model_copy(update={"moves": moves}) for moves in (both, both[:1])]
    two, alone = (move_rows(of_benchmarks, settings.metrics) for of_benchmarks in shown)
    assert len({effect["name"] for effect in effects(both)["effects"]}) == 2
    assert len({row["place"] for row in two}) == 2
    assert "insert" not in alone[0]["place"]


def test_csv_and_json_are_what_is_drawn_and_the_history_s(history: Store, built: Path) -> None:
    one = next(iter(history.series(dbms="postgres", line="17", test="scan", metric="insn/o")))
    stem = built / addresses.stem_of_test(LineKey.of(one.key), "scan")
    table = json.loads(Path(f"{stem}.json").read_text(encoding="utf-8"))
    assert table["schema"] == "pointdrop.test/1"
    drawn = next(row for row in table["series"] if row["metric"] == "insn/o")
    assert [[block["value"] for block in point["blocks"]] for point in drawn["points"]] == [
        [block.value for block in point.values] for point in one.points
    ]
    rows = list(csv.DictReader(io.StringIO(Path(f"{stem}.csv").read_text(encoding="utf-8"))))
    mine = [row for row in rows if row["metric"] == "insn/o"]
    assert [float(row["value"]) for row in mine] == [block.value for point in one.points for block in point.values]
    assert {row["changepoint"] for row in mine if row["version"] == "17.5"} == {"postgres/17/17.5/regression"}


HOSTILE = '</script><img src=x onerror="alert(1)"> & \' "quoted" ../../x?#%00 {{ 7*7 }} <!--'


def test_figures_in_metrics_that_no_view_shows_have_their_pages(settings: ReportSettings, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'foreign.db'}") as store:
        writer = Writer(store, 1)
        session = writer.session("s", "local", 0)
        for number in range(3):
            release = Release(dbms="postgres", version=f"1.{number}", line="1")
            measured = [Measurement(test="startup", metric="latency", value=9.0 + number)]
            writer.run(session, release, "default", "imported", lambda rng, measured=measured: measured)
        build(store, tmp_path / "site", settings)
    check_pages(tmp_path / "site")
    line = (tmp_path / "site/lines/postgres/1/local/default/imported/index.html").read_text(encoding="utf-8")
    assert '<a href="startup.html">startup</a>' in line
    assert "data-controls" not in line  # there is no table to control


def test_hostile_names_stay_text(settings: ReportSettings, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'hostile.db'}") as store:
        store.append_session(
            Session(
                id="s", host=HOSTILE, server=HOSTILE, fingerprint=Fingerprint(facts={HOSTILE: HOSTILE}), started=START
            )
        )
        writer = Writer(store, 1)
        session = store.sessions()[0]
        for version in ("1.0", "1.1", HOSTILE):
            release = Release(dbms=HOSTILE, version=version, line=HOSTILE)
            measured = [
                Measurement(test=HOSTILE, group=HOSTILE, metric=m, value=1.0, unit=HOSTILE) for m in ("insn/o", HOSTILE)
            ]
            writer.run(session, release, HOSTILE, "insert", lambda rng, measured=measured: measured, failed=1)
        gone = f"{HOSTILE}/regression"
        store.append_event(FindingEvent(key=gone, event=HOSTILE, at=START, actor=HOSTILE))
        for reading in readings(HOSTILE):
            store.append_reading(reading.model_copy(update={"session_id": HOSTILE, "reasons": (HOSTILE,)}))
        build(store, tmp_path / "hostile", settings)
    check_pages(tmp_path / "hostile")
    for name, text in pages(tmp_path / "hostile"):
        assert HOSTILE not in text, name
    ET.parse(tmp_path / "hostile/feed.xml")
    assert all(path.is_relative_to(tmp_path / "hostile") for path in (tmp_path / "hostile").rglob("*"))


def test_the_canary_of_each_host_is_in_the_environment_log(
    built: Path, store: Store, site: Path, settings: ReportSettings
) -> None:
    """Each reading with its verdict; a host is in quarantine while its newest reading says so."""
    text = (built / "environment.html").read_text(encoding="utf-8")
    bee, well = text.split('id="canary"')[1].split("<h3>")[1:3]
    assert "in quarantine since 2026-11-01 16:00" in bee and "in quarantine since" not in well
    rows = re.findall(r'<tr><th scope="row">.*?</tr>', bee)
    assert len(rows) == 14 and ">133.0<" in rows[0] and "differs: quarantine" in rows[0] and "usually 100.0" in rows[0]
    assert bee.count("differs: quarantine") == 1 and bee.count("<polyline") == 3
    before = files(site)
    store.append_reading(readings()[-1].model_copy(update={"at": START + timedelta(days=10)}))
    build(store, site, settings)
    changed = {name for name, content in files(site).items() if before.get(name) != content}
    assert changed == {"environment.html", ".pointdrop-site.json"}


def test_a_history_without_readings_says_nothing_of_a_canary(settings: ReportSettings, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'history.db'}") as plain:
        Writer(plain, 1).session("s-1", "local", 0)
        build(plain, tmp_path / "site", settings)
    assert "canary" not in (tmp_path / "site/environment.html").read_text(encoding="utf-8")


def test_the_feed_is_atom_and_links_to_the_pages(history: Store, built: Path) -> None:
    atom = "{http://www.w3.org/2005/Atom}"
    root = ET.parse(built / "feed.xml").getroot()
    assert root.tag == f"{atom}feed"
    entries = root.findall(f"{atom}entry")
    assert len(entries) == len(history.findings())
    for entry in entries:
        link = entry.find(f"{atom}link")
        assert link is not None
        assert (built / link.attrib["href"]).is_file()
    assert "urn:pointdrop:finding:mysql/8.0/8.0.30/regression" in {e.findtext(f"{atom}id") for e in entries}


def test_mysql_8_0_shows_its_two_drops_at_a_glance(built: Path) -> None:
    text = (built / "lines/mysql/8.0/ser4/cy10a_bee/insert/index.html").read_text(encoding="utf-8")
    rows = cells(text, 'data-heat="throughput"')
    head = rows[0]
    for version, ratio in (("8.0.27", "1.00"), ("8.0.28", "0.95"), ("8.0.30", "0.85")):
        at = next(i for i, name in enumerate(head) if version in name)
        assert sum(row[at] == ratio for row in rows[1:]) >= 4, version
    assert text.count('class="w2 cp"') + text.count('class="w3 cp"') >= 4
    assert "withdrawn" in text
    report = (built / "lines/mysql/8.0/ser4/cy10a_bee/insert/insert.html").read_text(encoding="utf-8")
    assert "SLA 80 %" in report


def test_what_did_not_run_is_said_with_its_reason(built: Path) -> None:
    text = (built / "index.html").read_text(encoding="utf-8")
    assert "What did not run, and why" in text


def test_runs_of_one_release_in_two_sessions_are_one_column(history: Store, built: Path) -> None:
    runs: list[Run] = history.runs(dbms="postgres", version="17.2")
    assert len(runs) == 2
    key = LineKey("postgres", "17", "local", "default", "sysbench")
    head = cells((built / addresses.of_line(key)).read_text(encoding="utf-8"), 'data-heat="instructions-op"')[0]
    assert sum("17.2" in name for name in head) == 1


def test_what_happened_to_an_issue_is_on_the_page_of_its_finding(
    store: Store, settings: ReportSettings, tmp_path: Path
) -> None:
    """A drift's issue has a key of its own; digests and deliveries are no findings and no states."""
    (regression, *others) = store.findings()
    drift = regression.model_copy(
        update={"key": "postgres/17/17.6/drift", "kind": "drift", "previous": "17.0", "release": "17.6"}
    )
    store.append_detection([regression, drift, *others], "test")
    happened = datetime(2026, 11, 20, tzinfo=UTC)
    for minute, event in enumerate(("detected", "filed", "heard", "notified")):
        at = happened + timedelta(minutes=minute)
        store.append_event(FindingEvent(key="postgres/17/drift", event=event, at=at, actor="somebody-else"))
    for key in (drift.key, "postgres/17/drift", "digest/2026-11-20", "environment/bee/2026-11-20"):
        store.append_link(IssueLink(key=key, tracker="github:me/db", number=31))
    build(store, tmp_path, settings)
    text = (tmp_path / "findings/postgres/17/17.6/drift.html").read_text(encoding="utf-8")
    assert "somebody-else" in text and text.count("github:me/db #31") == 1
    assert re.search(r"<dt>State</dt><dd>filed ", text)
    assert not (tmp_path / "findings/postgres/17/drift.html").exists()
    assert not (tmp_path / "findings/digest").exists() and not (tmp_path / "findings/environment").exists()


def test_a_feed_of_names_that_xml_forbids_is_a_feed(store: Store) -> None:
    strange = store.findings()[0].model_copy(update={"dbms": "a\x01b", "release": "2\ufffe"})
    ET.fromstring(feed(Snapshot(lines={}, findings=(strange,)), ReportSettings()))


def test_states_are_those_of_alerts() -> None:
    assert frozenset(EVENTS) == HAPPENED


def test_what_costs_users_stands_before_what_costs_the_disk(store: Store) -> None:
    first, *_ = store.findings()
    move = first.moves[0]
    written = move.model_copy(
        update={"key": move.key.model_copy(update={"metric": "wKB/o"}), "after": 9 * move.before, "change_pct": 800.0}
    )
    disk = first.model_copy(update={"key": "postgres/17/17.3/regression", "moves": (written,)})
    metrics = ReportSettings().metrics
    ordered = sorted([disk, first], key=lambda finding: finding_order(finding, metrics))
    assert [finding.key for finding in ordered] == [first.key, disk.key]


@pytest.mark.parametrize(
    ("stem", "rows"), [("noise", "series"), ("compare/local/sysbench", "values"), ("compare/ser4/insert", "values")]
)
def test_csv_and_json_of_what_is_drawn_are_the_same_numbers(built: Path, stem: str, rows: str) -> None:
    table = list(csv.DictReader(io.StringIO((built / f"{stem}.csv").read_text(encoding="utf-8"))))
    found = json.loads((built / f"{stem}.json").read_text(encoding="utf-8"))
    assert table and found["schema"] == f"pointdrop.{stem.split('/')[0]}/1"
    assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in found[rows]] == table
    assert f'href="{stem.rsplit("/", 1)[-1]}.json" download' in (built / f"{stem}.html").read_text(encoding="utf-8")


def test_published_figures_are_cited_and_measured_on_the_readers_own_machine(built: Path) -> None:
    assert "Small Datum 2023-09-18" in (built / "about.html").read_text(encoding="utf-8")
    text = (built / "findings/mysql/8.0/8.0.30/regression.html").read_text(encoding="utf-8")
    assert "on a machine of your own" in text and "--server ser4" not in text
    own = (built / "findings/postgres/17/17.5/regression.html").read_text(encoding="utf-8")
    assert "--server local --config default" in own
    bisect = re.search(r"pointdrop bisect [^<]*", own)
    assert bisect and "--benchmark sysbench" in bisect[0] and "--server local" in bisect[0]
    assert "qr100" not in "".join(re.findall(r"pointdrop compare [^<]*", text)), "not a test of the catalogue there"
    assert "pointdrop bisect" not in text, "nobody here can bisect what somebody else measured"
