"""Compiler or code: two builders make the cause `toolchain`, a vendor's other compiler is said and stays `product`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from alerts.settings import load_settings
from alerts.subject import subjects
from alerts.sync import sync
from alerts.trackers.files import FilesTracker
from history.metrics import shipped_metrics
from history.model import Block, Finding, Measurement, Run, Session
from history.store import Store
from pointdrop.jobs.detect import load_detector_settings, run_detection
from presentation.commands import commands
from presentation.headline import headline
from presentation.sentences import summary, suspect_range
from reports.settings import ReportSettings
from reports.site import build
from runners.cores import Cores
from runners.releases import Catalogue
from runners.sessions import run_session
from tests.builders import NOW, SESSION, block
from tests.builders import run as run_of
from tests.folders import open_folder
from tests.small_plans import CONFIGS, release, small_plan

METRICS = shipped_metrics()
POSTGRES = "https://github.com/postgres/postgres/compare/REL_{previous_}...REL_{release_}"
GCC_7 = {"builder": "Oracle", "compiler": "GCC", "compiler_version": "7.3.1", "flags": "-O2 -g", "libc": "glibc 2.36"}
GCC_8 = GCC_7 | {"compiler_version": "8.3.1"}
DEBIAN = {"builder": "Debian", "libc": "glibc 2.41", "openssl": "OpenSSL 3.5.1", "build_id": "aa"}

Toolchain = Mapping[str, str]


#: As the catalogue names another vendor's builds of releases that are there already.
OF_DEBIAN = tuple(f"17.{minor}+debian" for minor in range(5, 9))


def history(folder: Path, before: Toolchain, after: Toolchain, newer: tuple[str, ...] = ()) -> Store:
    """One session measured ten releases: from 17.6 (or the first of `newer`) on a third of the tests is slower, and
    built otherwise."""
    random = np.random.default_rng(5)
    store = Store.open(f"sqlite:///{folder}/history.db")
    store.append_session(SESSION)
    versions = [*(f"17.{minor}" for minor in range(6)), *(newer or (f"17.{minor}" for minor in range(6, 10)))]
    for minor, version in enumerate(versions):
        row = run_of(version).model_copy(update={"toolchain": dict(before if minor < 6 else after)})
        store.append_run(row)
        for number in (1, 2, 3):
            level = np.where(np.arange(9) < 3, 900.0 if minor >= 6 else 1000.0, 1000.0)
            values = level * np.exp(0.005 * random.standard_normal(9))
            found = tuple(
                Measurement(test=f"test-{i}", metric="qps", value=value, unit="/s", better="higher")
                for i, value in enumerate(values.tolist())
            )
            store.append_block(block(row, 1.0, number, measurements=found))
    return store


@pytest.fixture
def found(tmp_path: Path) -> Callable[[Toolchain, Toolchain], Finding]:
    def detected(before: Toolchain, after: Toolchain) -> Finding:
        with history(tmp_path, before, after) as store:
            (finding,) = run_detection(store, load_detector_settings(CONFIGS))
            assert store.findings() == [finding], "it is stored as it is"
        assert finding.key == "postgres/17/17.6/regression"
        return finding

    return detected


@pytest.fixture
def place() -> Iterator[Path]:
    """A state directory that the account of the servers can enter."""
    with open_folder() as folder:
        yield folder


@pytest.fixture
def catalogue(download_state: Path) -> Iterator[Catalogue]:
    catalogue = Catalogue(CONFIGS, download_state)
    yield catalogue
    catalogue.close()


def said(finding: Finding) -> str:
    lead = headline(finding, METRICS)
    assert lead is not None
    return summary(finding, lead)


def test_two_builders_are_the_cause_and_nothing_is_filed(found: Callable[[Toolchain, Toolchain], Finding]) -> None:
    finding = found(GCC_7, DEBIAN)
    assert finding.cause == "toolchain"
    assert "The two sides are two builds: Oracle before, Debian after." in finding.evidence
    assert "Linked to other libraries: libc glibc 2.36 before, glibc 2.41 after." in finding.evidence
    assert "; the two are builds of Oracle and of Debian, and how much of it is the compiler's is not known. " in said(
        finding
    )
    assert "only builds of both with one compiler can show" in suspect_range(finding)
    assert subjects([finding], ["regression"], METRICS) == []
    words = [shlex.split(command.line)[1:] for command in commands(finding, METRICS, source=POSTGRES)]
    assert words[:2] == [
        ["releases", "build", "postgres", "--commit", "REL_17_5"],
        ["releases", "build", "postgres", "--commit", "REL_17_6"],
    ]
    assert words[2][:3] == ["compare", "postgres@git:REL_17_5", "postgres@git:REL_17_6"]
    assert "bisect" not in {word[0] for word in words}


def test_one_version_of_two_builders_is_all_the_build_s(tmp_path: Path) -> None:
    with history(tmp_path, GCC_7, DEBIAN, OF_DEBIAN) as store:
        (finding,) = run_detection(store, load_detector_settings(CONFIGS))
    assert (finding.previous, finding.release, finding.cause) == ("17.5", "17.5+debian", "toolchain")
    assert "; the two are builds of one version, by Oracle and by Debian, so none of it is the code's. " in said(
        finding
    )
    assert "code" not in suspect_range(finding)
    assert "releases" not in {shlex.split(one.line)[1] for one in commands(finding, METRICS, source=POSTGRES)}
    other = finding.model_copy(update={"release": "17.6+debian"})
    assert "--commit REL_17_6" in " ".join(one.line for one in commands(other, METRICS, source=POSTGRES))
    assert "with one compiler can show" in suspect_range(other)


def test_a_vendor_s_other_compiler_is_filed_and_said_in_the_first_sentence(
    found: Callable[[Toolchain, Toolchain], Finding],
) -> None:
    finding = found(GCC_7, GCC_8)
    assert finding.cause == "product"
    assert (
        "; the compiler changed too, from GCC 7.3.1 to GCC 8.3.1, so part of the step may be the compiler's. "
        in said(finding)
    )
    assert "Its builder changed the compiler: GCC 7.3.1 before, GCC 8.3.1 after." in finding.evidence
    assert len(subjects([finding], ["regression"], METRICS)) == 1
    assert "releases" not in {shlex.split(command.line)[1] for command in commands(finding, METRICS, source=POSTGRES)}


def test_a_vendor_s_other_flags_are_said_too(found: Callable[[Toolchain, Toolchain], Finding]) -> None:
    finding = found(GCC_7, GCC_7 | {"flags": "-Wall -O3 -g"})
    assert finding.cause == "product"
    assert "; the compiler changed too, from -O2 to -O3, so part" in said(finding)


def test_a_library_is_evidence_alone(found: Callable[[Toolchain, Toolchain], Finding]) -> None:
    finding = found(GCC_7, GCC_7 | {"allocator": "libjemalloc 2", "libc": "glibc 2.41"})
    assert (finding.cause, len(finding.toolchain)) == ("product", 1), "the allocator of one side is not known"
    assert "compiler" not in said(finding) and "build" not in said(finding)
    assert "Linked to other libraries: libc glibc 2.36 before, glibc 2.41 after." in finding.evidence


@pytest.mark.parametrize("after", [GCC_7, GCC_7 | {"build_id": "other", "configure": "--prefix=/elsewhere"}, {}])
def test_the_same_build_and_one_that_says_nothing_are_the_product_s(
    found: Callable[[Toolchain, Toolchain], Finding], after: Toolchain
) -> None:
    finding = found(GCC_7, after)
    assert (finding.cause, finding.toolchain) == ("product", ())


def test_an_edited_option_does_not_hide_that_the_builders_differ(
    found: Callable[[Toolchain, Toolchain], Finding],
) -> None:
    assert found(GCC_7 | {"assertions": "off"}, GCC_7 | {"assertions": "on"}).cause == "toolchain"


def test_charts_and_tables_mark_the_boundary(tmp_path: Path) -> None:
    with history(tmp_path, GCC_7, DEBIAN) as store:
        findings = run_detection(store, load_detector_settings(CONFIGS))
        build(store, tmp_path / "site", ReportSettings())
    texts = {str(path): path.read_text() for path in (tmp_path / "site").rglob("*.html")}
    marked = {name for name, text in texts.items() if "built by Debian, before by Oracle" in text}
    (line,) = (name for name, text in texts.items() if "data-heat" in text)
    assert line in marked
    assert '17.6</span><i title="built by Debian, before by Oracle">a</i>' in texts[line]
    assert any(name.endswith("test-1.html") for name in marked)
    (finding,) = findings
    page = next(text for text in texts.values() if "Known of postgres 17.6" in text)
    assert "Known of postgres 17.6: built by Debian, before by Oracle" in page
    assert "builds of Oracle and of Debian" in page and finding.cause == "toolchain"


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_builders_of_real_postgres_are_told_and_not_filed(
    catalogue: Catalogue, tmp_path: Path, place: Path
) -> None:
    """Counted for real: 10.23 is EnterpriseDB's (GCC 4.4.7, -O2), 11.22 is zonky's (GCC 7.5.0, -Os)."""
    versions = ("9.6.24", "10.23", "11.22", "12.22")
    plan = small_plan("instructions", versions, "10.23", ("point-query.range100", "hot-points.range100"))
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:

        def sink(session: Session, run: Run, of: Block) -> None:
            line = run.release.version.rpartition(".")[0]
            row = run.model_copy(update={"release": release(run.release.version).model_copy(update={"line": line})})
            store.append_session(session)
            store.append_run(row)
            store.append_block(of)

        outcome = run_session(plan, catalogue, sink, configs=CONFIGS, state=place, cores=Cores(tmp_path))
        assert outcome.complete, outcome
        builders = {run.release.version: run.toolchain["builder"] for run in store.runs()}
        assert builders == {"9.6.24": "EnterpriseDB", "10.23": "EnterpriseDB", "11.22": "zonky", "12.22": "zonky"}
        findings = run_detection(store, load_detector_settings(CONFIGS))
        at_11 = [finding for finding in findings if (finding.line, finding.release) == ("majors", "11.22")]
        assert at_11 and {finding.cause for finding in at_11} == {"toolchain"}
        assert {finding.cause for finding in findings if finding.release in ("10.23", "12.22")} <= {"product"}
        tracker = FilesTracker(tmp_path / "issues")
        sync(store, tracker, load_settings(CONFIGS), now=NOW)
        filed = [key for issue in tracker.issues() for key in issue.keys]
        assert not [key for key in filed if key.startswith("postgres/majors/11/")], "12 may be there, which is code"
