"""The published figures that ship: what is known to be in them is found, and where nothing is, nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from detector import DetectorSettings, detect
from detector.replay import replay
from history import datasets
from history.datasets import smalldatum
from history.model import Finding, Release, Series
from history.store import Store
from pointdrop.jobs.detect import load_detector_settings
from tests.detector.evidence_check import check

#: The 5.7 line is quiet by its author's word; this share of its boundaries may be flagged.
MOST_FLAGGED = 0.02


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path_factory.mktemp('published')}/history.db") as opened:
        datasets.load(opened, "smalldatum")
        yield opened


@pytest.fixture(scope="module")
def settings(configs: Path) -> DetectorSettings:
    return load_detector_settings(configs)


@pytest.fixture(scope="module")
def published(store: Store) -> list[Series]:
    return list(store.series())


@pytest.fixture(scope="module")
def findings(published: list[Series], store: Store, settings: DetectorSettings) -> list[Finding]:
    return detect(published, settings, store.releases())


def moved(findings: list[Finding], line: str, release: str) -> dict[tuple[str, str], float]:
    return {
        (move.key.test, move.key.metric): move.change_pct
        for finding in findings
        if finding.dbms == "mysql" and finding.line == line and finding.release == release
        for move in finding.moves
        if move.key.config == "cy10a_bee"
    }


def test_the_range_queries_go_down_up_and_down(findings: list[Finding]) -> None:
    """8.0.23 down, 8.0.28 up, 8.0.30 down, each for the three query steps."""
    for release, sign in (("8.0.23", -1), ("8.0.28", 1), ("8.0.30", -1)):
        changes = moved(findings, "8.0", release)
        for test in ("q100.1", "q500.1", "q1000.1"):
            assert 5 < sign * changes[test, "qps"] < 14, (release, test)


def test_8_0_30_costs_cpu_everywhere(findings: list[Finding]) -> None:
    changes = moved(findings, "8.0", "8.0.30")
    assert changes["l.i1", "ips"] == pytest.approx(-11.2, abs=2)
    assert changes["l.i1", "cpupq"] == pytest.approx(12.4, abs=2.5)
    assert changes["l.i0", "ips"] < -4


def test_8_0_35_is_one_finding_that_names_the_releases_in_between(findings: list[Finding]) -> None:
    down = next(f for f in findings if f.key == "mysql/8.0/8.0.35/regression")
    assert down.previous == "8.0.28"
    assert down.unmeasured == ("8.0.30", "8.0.31", "8.0.32", "8.0.33", "8.0.34")
    assert {move.key.test for move in down.moves} >= {"l.i0", "l.i1", "qp100", "qp500", "qp1000"}


def test_tier_a_labels_inside_a_line(findings: list[Finding]) -> None:
    found = {(move.key.id, finding.release) for finding in findings for move in finding.moves}
    inside = [
        label
        for label in smalldatum.labels()
        if label.tier == "A" and label.previous.rpartition(".")[0] == label.version.rpartition(".")[0]
    ]
    seen = [(label.key.id, label.version) in found for label in inside]
    assert len(seen) == 12
    assert sum(seen) >= 11


def test_the_quiet_line_is_quiet(findings: list[Finding], published: list[Series]) -> None:
    """ "5.7 mostly avoids regressions, total drop about 5 % spread over releases": few steps, and a slow drift."""
    quiet = {key.id for key in smalldatum.quiet_series()}
    boundaries = sum(len(one.points) - 1 for one in published if one.key.id in quiet)
    steps = [finding for finding in findings if finding.kind != "drift"]
    flagged = [move for finding in steps for move in finding.moves if move.key.id in quiet]
    assert boundaries == 198
    assert len(flagged) <= MOST_FLAGGED * boundaries
    (drift,) = [finding for finding in findings if finding.kind == "drift"]
    assert (drift.line, drift.previous) == ("5.7", "5.7.10")
    assert all(-6 < move.change_pct < -3 for move in drift.moves)


def test_between_majors_the_step_is_found(findings: list[Finding]) -> None:
    down = next(f for f in findings if f.key == "mysql/majors/8.0.36/regression")
    assert len({move.key.test for move in down.moves}) == 10


def test_replay_files_8_0_30_the_day_it_was_measured(
    published: list[Series], store: Store, settings: DetectorSettings
) -> None:
    line = [one for one in published if one.key.dbms == "mysql" and one.key.line == "8.0"]
    events = {event.finding.key: event for event in replay(line, settings, store.releases("mysql"))}
    event = events["mysql/8.0/8.0.30/regression"]
    assert (event.newest, event.delay, event.stays) == ("8.0.30", 0, True)
    assert len({move.key.test for move in event.finding.moves}) >= 4


def test_every_number_of_the_evidence_is_that_of_the_blocks(findings: list[Finding], published: list[Series]) -> None:
    assert all(check(finding, published) for finding in findings)


def test_what_one_session_published_is_confirmed_by_none(findings: list[Finding]) -> None:
    assert {move.tier for finding in findings if finding.line == "8.0" for move in finding.moves} == {"provisional"}


def test_same_input_same_bytes_in_any_order(published: list[Series], settings: DetectorSettings) -> None:
    line = [one for one in published if one.key.line == "8.0"]
    once = [finding.model_dump_json() for finding in detect(line, settings)]
    again = [finding.model_dump_json() for finding in detect(reversed(line), settings)]
    assert once == again


def test_the_labels_are_of_known_releases(store: Store) -> None:
    known: list[Release] = store.releases("mysql")
    assert {"8.0.28", "8.0.30"} <= {release.version for release in known}
    assert "8.0.29" not in {release.version for release in known}
