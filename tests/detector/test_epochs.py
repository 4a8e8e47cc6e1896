"""Counts of hosts whose CPU or C library differs: joined through the control release, never by their raw values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from detector import DetectorSettings, detect
from detector.attribution import control_shift
from detector.explanation import explain
from detector.releases.epochs import scales_of
from history.metrics import shipped_metrics
from history.model import Block, Finding, Fingerprint, Measurement, Release, Run, Series, Session
from history.store import Store
from tests.detector.evidence_check import check

START = datetime(2026, 1, 5, tzinfo=UTC)
TESTS = {"point-query": 45_000.0, "insert": 165_000.0, "update-index": 115_000.0, "scan": 3_200_000.0}
#: What a host counts more of each test than the first one: another libc, and no SSE4.2 for the checksums of writes.
HOSTS = {
    "amd": {},
    "intel": {"point-query": 1.008, "insert": 1.11, "update-index": 1.085, "scan": 1.0002},
    "third": {"point-query": 0.98, "insert": 0.97, "update-index": 0.96, "scan": 0.99},
}
FACTS = {
    "amd": {"cpu_model": "AMD EPYC", "libc": "glibc 2.36", "counted_cpu": "valgrind avx avx2"},
    "intel": {"cpu_model": "Intel Xeon 5150", "libc": "glibc 2.43", "counted_cpu": "valgrind ssse3"},
    "third": {"cpu_model": "Intel Xeon 6", "libc": "glibc 2.41", "counted_cpu": "valgrind avx avx2"},
}
LINE = [f"17.{number}" for number in range(9)]


class History:
    """Counted sessions of Postgres on several hosts."""

    def __init__(self, code: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """`code`: by version and test, by how much a release counts more than the first; it lasts until the next."""
        self.store = Store.open("sqlite://")
        self.code = code or {}
        self.sessions = 0

    def value(self, host: str, version: str, test: str) -> float:
        factor = 1.03 if version.startswith("18") else 1.0
        for since in LINE:
            if LINE.index(since) <= (LINE.index(version) if version in LINE else -1):
                factor *= 1.0 + self.code.get(since, {}).get(test, 0.0)
        return TESTS[test] * HOSTS[host].get(test, 1.0) * factor

    def session(self, host: str, versions: Sequence[str], control: str = "", lost: str = "") -> None:
        """One session that counts `versions` and, where there is one, the control; a test that it `lost` there."""
        self.sessions += 1
        session = Session(
            id=f"s{self.sessions}", host=host, server="local", fingerprint=Fingerprint(facts=FACTS[host]),
            started=START + timedelta(days=self.sessions), control=control,
        )  # fmt: skip
        self.store.append_session(session)
        for version in sorted({*versions, control} - {""}):
            run = Run(
                id=f"{session.id}-{version}", session_id=session.id, config="default", benchmark="sysbench",
                release=Release(dbms="postgres", version=version, line=version.split(".")[0]), lane="instructions",
            )  # fmt: skip
            self.store.append_run(run)
            rows = tuple(
                Measurement(
                    test=test, group="writes", metric="insn/o", value=self.value(host, version, test), unit="",
                    better="lower",
                )
                for test in TESTS
                if (version, test) != (control, lost)
            )  # fmt: skip
            at = session.started + timedelta(minutes=5)
            self.store.append_block(
                Block(id=f"{run.id}-1", run_id=run.id, number=1, started=at, ended=at, status="ok", measurements=rows)
            )

    def findings(self) -> list[Finding]:
        return detect(self.series(), settings=DetectorSettings())

    def series(self) -> list[Series]:
        return [series for series in self.store.series() if series.key.line == "17"]


def changes(findings: Sequence[Finding]) -> dict[tuple[str, str, str], dict[str, float]]:
    """By (kind, cause, release), the change of each test in percent."""
    return {
        (finding.kind, finding.cause, finding.release): {m.key.test: round(m.change_pct, 1) for m in finding.moves}
        for finding in findings
    }


def test_two_hosts_with_a_control_show_the_product_alone() -> None:
    history = History()
    history.session("amd", LINE[:5], control="17.0")
    history.session("intel", LINE[5:], control="17.0")
    assert history.findings() == []


def test_two_hosts_without_a_control_are_never_a_regression() -> None:
    history = History()
    history.session("amd", LINE[:5])
    history.session("intel", LINE[5:])
    assert {(finding.kind, finding.cause) for finding in history.findings()} == {("environment", "epoch")}


@pytest.mark.parametrize("step", [0.09, 0.15])
def test_a_step_where_the_host_changes_has_its_own_size(step: float) -> None:
    """The raw insert is 11 % dearer on the new host whatever the release; the control says so, and is not taken for
    the cause of what is left."""
    history = History({"17.5": {"insert": step, "update-index": step}})
    history.session("amd", LINE[:5], control="17.0")
    history.session("intel", LINE[5:], control="17.0")
    expected = {"insert": round(100 * step, 1), "update-index": round(100 * step, 1)}
    assert changes(history.findings()) == {("regression", "product", "17.5"): expected}


def test_controls_of_two_lines_are_not_compared_with_each_other() -> None:
    """Counted sessions hold several lines, and the control is of the newest that they measure: 18.0 counts 3 % more
    than 17.0, which is no difference of the hosts. 17.0 was measured on both."""
    history = History()
    history.session("amd", [*LINE[:5], "18.1"], control="18.0")
    history.session("intel", LINE[5:], control="17.0")
    assert history.findings() == []
    for series in history.series():
        scales = scales_of(series, shipped_metrics())
        ratio = HOSTS["intel"][series.key.test]
        assert sorted(scales.factors.values()) == pytest.approx(sorted([1.0, 1.0 / ratio]))
        assert scales.sentence == "local: 2 epochs are compared through the control release."
        assert control_shift(series, "17.4", "17.5", shipped_metrics()) is None, (
            "the two sessions have no control in common"
        )


def test_an_epoch_may_be_joined_through_another_and_one_that_is_not_leaves_the_rest_joined() -> None:
    history = History()
    history.session("amd", LINE[:3], control="17.1")
    history.session("intel", [*LINE[3:6], "17.1"], control="17.3")
    history.session("third", LINE[6:], control="17.3")
    assert history.findings() == []

    history = History()
    history.session("amd", LINE[:3])
    history.session("intel", LINE[3:6], control="17.3")
    history.session("third", LINE[6:], control="17.3")
    (series,) = [series for series in history.series() if series.key.test == "insert"]
    scales = scales_of(series, shipped_metrics())
    assert sorted(scales.factors.values()) == pytest.approx([1.0, 1.11 / 0.97])
    assert scales.sentence == (
        "local: 1 of 3 epochs has no control release in common with the newest, and is not compared with it."
    )
    assert set(changes(history.findings())) == {("environment", "epoch", "17.3")}


def test_what_nothing_joins_neither_hides_a_step_of_the_rest_nor_joins_it() -> None:
    """The control of the new host has no insert, whose counts are 11 % apart on the two hosts; the rest is joined."""
    history = History({"17.5": {"point-query": 0.05, "scan": 0.04}})
    history.session("amd", LINE[:5], control="17.0")
    history.session("intel", LINE[5:], control="17.0", lost="insert")
    assert changes(history.findings()) == {
        ("regression", "product", "17.5"): {"point-query": 5.0, "scan": 4.0},
        ("environment", "epoch", "17.5"): {"insert": 11.0},
    }


def test_a_step_of_one_host_is_found_whatever_host_comes_after_it() -> None:
    """Each host is judged by itself: the one that was replaced, whose releases nothing joins, keeps its findings."""
    history = History({"17.2": {"point-query": 0.05}, "17.7": {"scan": 0.04}})
    history.session("amd", LINE[:5])
    history.session("intel", LINE[5:])
    found = changes(history.findings())
    assert found.pop(("environment", "epoch", "17.5"))["insert"] == 11.0
    assert found == {
        ("regression", "product", "17.2"): {"point-query": 5.0},
        ("regression", "product", "17.7"): {"scan": 4.0},
    }
    series = history.series()
    told = {member.key.test: explain(series, member.key) for member in series}
    assert [case.release for case in told["point-query"].cases if case.listed] == ["17.2"]
    assert [case.release for case in told["scan"].cases if case.listed] == ["17.7"]
    assert "1 of 2 epochs has no control release in common with" in told["insert"].notes[0]
    assert not [case for case in told["insert"].cases if case.listed]


def test_a_boundary_that_two_hosts_show_is_told_once() -> None:
    history = History({"17.5": {"point-query": 0.05}})
    history.session("amd", LINE)
    history.session("intel", LINE[1:])
    (finding,) = history.findings()
    assert changes([finding]) == {("regression", "product", "17.5"): {"point-query": 5.0}}
    assert finding.tier == "confirmed" and [group.tests for group in finding.groups] == [4]


def test_what_an_older_host_alone_shows_at_a_boundary_is_told_beside_another_release_too() -> None:
    """The new host measured 17.3 before 17.5, and no scan of what came before; the old one has both, and 17.4."""
    history = History({"17.5": {"point-query": 0.05, "scan": 0.04}})
    history.session("amd", LINE[:8])
    history.session("intel", [version for version in LINE if version != "17.4"])
    series = []
    for member in history.series():
        if member.key.test == "scan":
            points = (
                point.model_copy(
                    update={
                        "values": tuple(
                            block for block in point.values if block.session_id == "s1" or point.version >= "17.5"
                        )
                    }
                )
                for point in member.points
            )
            member = member.model_copy(update={"points": tuple(points)})
        series.append(member)
    (finding,) = [one for one in detect(series) if one.kind == "regression"]
    check(finding, series)
    assert changes([finding]) == {("regression", "product", "17.5"): {"point-query": 5.0, "scan": 4.0}}
    assert finding.previous == "17.4" and [group.tests for group in finding.groups] == [4]
