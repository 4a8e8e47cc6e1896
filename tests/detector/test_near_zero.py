"""From nothing to something there is no percentage: such a change is told in units, and makes no finding by itself."""

from __future__ import annotations

import numpy as np
import pytest

from alerts.context import context_of
from alerts.render import render
from alerts.settings import AlertSettings
from alerts.subject import subjects
from detector import DetectorSettings, detect
from detector.explanation import explain
from history.metrics import Metric, MetricRegistry, shipped_metrics
from history.model import Finding, Series
from pointdrop.cli.detect_views import explanation_text, finding_text
from presentation.headline import headline, title
from presentation.releases import releases_frame
from presentation.sentences import summary
from presentation.tables import records_of
from reports.pages.test import release_rows
from tests.builders import series, series_key

METRICS = shipped_metrics()
RELEASES = 10


def counted(test: str, metric: str, before: float, after: float, seed: int = 4) -> Series:
    """Levels with half a percent of noise, another one from the sixth release on."""
    values = np.array([before] * 6 + [after] * 4)[:, None]
    values = values * np.exp(0.005 * np.random.default_rng(seed).standard_normal((RELEASES, 2)))
    return series(values.tolist(), test=test, metric=metric)


def suite(*moved: Series) -> list[Series]:
    """Eight tests whose CPU and reads stand still, but for what is given."""
    given = {(one.key.test, one.key.metric) for one in moved}
    still = [
        counted(f"test-{n}", metric, level, level, seed=10 * n + len(metric))
        for n in range(8)
        for metric, level in (("cpu_us/o", 50.0), ("r/o", 0.0))
        if (f"test-{n}", metric) not in given
    ]
    return [*moved, *still]


def test_reads_from_nothing_are_no_finding() -> None:
    assert detect(suite(counted("test-0", "r/o", 0.0, 0.05))) == []
    assert detect(suite(counted("test-0", "r/o", 0.0, 50.0), counted("test-1", "r/o", 50.0, 0.0))) == []


@pytest.mark.parametrize(("before", "after", "moved"), [(0.0, 0.015, 0), (0.001, 0.018, 0), (0.5, 1.0, 1)])
def test_from_none_to_none_is_no_change(before: float, after: float, moved: int) -> None:
    found = detect(suite(counted("test-0", "r/o", before, after), counted("test-0", "cpu_us/o", 50.0, 60.0)))
    (finding,) = found
    assert sum(move.key.metric == "r/o" for move in finding.moves) == moved
    assert not any(move.near_zero for move in finding.moves)


@pytest.fixture(scope="module")
def beside() -> Finding:
    """A test that needs a fifth more CPU, and reads where it read nothing."""
    (finding,) = detect(suite(counted("test-0", "r/o", 0.0, 0.05), counted("test-0", "cpu_us/o", 50.0, 60.0)))
    return finding


def test_beside_another_move_it_is_told_in_units(beside: Finding) -> None:
    lead = headline(beside, METRICS)
    assert lead is not None and lead.metric == "cpu_us/o" and lead.others == ()
    (reads,) = [move for move in beside.moves if move.key.metric == "r/o"]
    assert reads.near_zero and reads.before == 0.0 and reads.after == pytest.approx(0.05, rel=0.02)
    (group,) = [group for group in beside.groups if group.metric == "r/o" and group.moved]
    assert (group.median_pct, group.worst_pct, group.worst_test) == (0.0, 0.0, "test-0")
    assert group.worst_levels == (reads.before, reads.after)
    said = [sentence for sentence in beside.evidence if "storage reads" in sentence]
    assert said and said[0].startswith("Near zero, so told in units: storage reads per operation 0 → 0.0")
    assert Finding.model_validate_json(beside.model_dump_json()) == beside


def test_nobody_is_told_a_percentage_of_nothing(beside: Finding) -> None:
    lead = headline(beside, METRICS)
    assert lead is not None
    lines = finding_text(beside, METRICS).splitlines()
    (line,) = [line for line in lines if "test-0 r/o: " in line]
    assert "0 -> 0.0" in line and "%" not in line
    assert "100 %" not in "\n".join((title(beside, lead), summary(beside, lead), *lines))
    assert "reads" not in title(beside, lead)
    (subject,) = subjects([beside], ["regression"], METRICS)
    assert subject.lead == lead


def test_the_issue_and_the_tables_of_pages_tell_units(beside: Finding) -> None:
    made = suite(counted("test-0", "r/o", 0.0, 0.05), counted("test-0", "cpu_us/o", 50.0, 60.0))
    (subject,) = subjects([beside], ["regression"], METRICS)
    settings = AlertSettings()
    body = render(subject, context_of(beside, made, settings), settings).body
    rows = [line for line in body.splitlines() if "r/o" in line and "0 → 0.0" in line]
    assert len(rows) == 2 and not any("%" in row for row in rows), "a row of the groups, and one of the trends"
    (reads,) = [one for one in made if (one.key.test, one.key.metric) == ("test-0", "r/o")]
    releases = records_of(releases_frame([reads], {}))
    changes = [row["change"] for row in release_rows(reads, releases, {}, METRICS["r/o"])]
    assert changes[:6] == ["", *["+0"] * 5] and changes[6].startswith("+0.0"), changes
    assert changes[7].endswith(" %"), "between two levels that are something"


def test_explain_tells_the_levels() -> None:
    made = suite(counted("test-0", "r/o", 0.0, 0.05), counted("test-0", "cpu_us/o", 50.0, 60.0))
    found = explain(made, series_key("test-0", "r/o", server="small"))
    (case,) = [case for case in found.cases if case.listed]
    assert case.near_zero
    (line,) = [line for line in explanation_text(found).splitlines() if "17.5 -> 17.6: changed" in line]
    assert "changed, 0 → 0.0" in line and "%" not in line


def test_the_floor_is_the_registrys() -> None:
    """With a floor of 0.2 reads a change from 0.1 is told in units, without one in percent."""

    def near_zero(floor: float) -> set[bool]:
        changed = METRICS.root["r/o"].model_copy(update={"near_zero": floor})
        made = suite(counted("test-0", "r/o", 0.1, 0.4), counted("test-0", "cpu_us/o", 50.0, 60.0))
        findings = detect(made, DetectorSettings(metrics=MetricRegistry(METRICS.root | {"r/o": changed})))
        return {move.near_zero for finding in findings for move in finding.moves if move.key.metric == "r/o"}

    assert (near_zero(0.2), near_zero(0.0)) == ({True}, {False})


def test_whatever_can_be_nothing_has_a_floor() -> None:
    """What an operation may not need at all: storage, switches, memory. Of a rate or of instructions there is none."""
    kinds = ("io", "memory")
    assert all(metric.near_zero > 0 for metric in METRICS if metric.kind in kinds and metric.evidence)
    assert not any(metric.near_zero for metric in METRICS if metric.kind in ("throughput", "instructions"))
    unknown = Metric(name="a foreign one")
    assert unknown.is_none(0.0) and not unknown.is_none(1e-9)
