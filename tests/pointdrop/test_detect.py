"""`pointdrop detect`, `replay` and `explain` over a history, in one process and on a Dask cluster."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from detector import DetectorSettings
from detector.errors import DetectorError
from detector.replay import Replayed
from history import datasets
from history.errors import BadSettings, UnknownSeries
from history.metrics import shipped_metrics
from history.model import EffectiveSetting, Finding, FindingEvent, FunctionCost, Measurement, StatementPlan
from history.store import Store
from pointdrop.cli.detect_views import replay_score
from pointdrop.cli.main import app
from pointdrop.jobs.detect import explained, load_detector_settings, run_detection
from pointdrop.jobs.option_changes import compare_options, edited_options, parse_options
from presentation.ranking import finding_order
from tests.builders import SESSION, block, finding
from tests.builders import run as run_of

ROOT = Path(__file__).resolve().parents[2]
SERIES = "mysql|8.0|ser4|cy10a_bee|insert|l.i1|ips"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A history with the published figures."""
    found = f"sqlite:///{tmp_path_factory.mktemp('detect')}/history.db"
    with Store.open(found) as store:
        datasets.load(store, "smalldatum")
    return found


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def _bare(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The findings as the detector made them."""
    return [{name: value for name, value in record.items() if name != "headline"} for record in records]


def test_detect_writes_the_detection(url: str, store: Store) -> None:
    dry = json.loads(run("detect", "--history", url, "--format", "json", "--dry-run"))
    assert store.findings() == []
    written = json.loads(run("detect", "--history", url, "--format", "json"))
    assert written == dry
    assert {finding.key for finding in store.findings()} == {finding["key"] for finding in written}
    order = [finding_order(finding, shipped_metrics()) for finding in map(Finding.model_validate, _bare(written))]
    assert order == sorted(order), "what a reader should see first comes first"
    assert "mysql/8.0/8.0.30/regression" in {finding["key"] for finding in written}


def test_a_part_of_the_history_is_looked_at_and_not_written(url: str, store: Store) -> None:
    before = store.findings()
    found = json.loads(run("detect", "--history", url, "--dbms", "mariadb", "--format", "json"))
    assert {finding["dbms"] for finding in found} == {"mariadb"}
    assert store.findings() == before


def test_detect_for_people(url: str, tmp_path: Path) -> None:
    table = run("detect", "--history", url, "--line", "8.0")
    assert "mysql/8.0/8.0.30/regression" in table and " suspected " in table and "provisional" not in table
    assert table.splitlines()[0].split() == ["finding", "how", "sure", "cause", "title"], "one section has no title"
    sections = run("detect", "--history", url, "--dbms", "mysql", "--dry-run")
    assert sections.startswith("Point releases\n\n")
    points, majors = sections.split("\nBetween majors\n")
    assert "/majors/" not in points and "mysql 5.7 → 8.0: " in majors
    rows = list(csv.DictReader(run("detect", "--history", url, "--dry-run", "--format", "csv").splitlines()))
    assert {row["tier"] for row in rows} <= {"provisional", "confirmed", "unconfirmed"}, "files keep their names"
    assert all(("→" in row["title"]) == (row["line"] == "majors") for row in rows if row["kind"] != "drift")
    out = tmp_path / "findings.txt"
    assert run("detect", "--history", url, "--line", "8.0", "--format", "text", "--out", str(out)) == ""
    text = out.read_text()
    assert "not measured in between, and just as suspect: 8.0.30" in text
    assert "noise floor" in text


def test_the_gate(url: str) -> None:
    result = CliRunner().invoke(app, ["detect", "--history", url, "--fail-on", "regression"])
    assert result.exit_code == 3


def test_an_empty_history_has_no_findings(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    assert json.loads(run("detect", "--history", url, "--format", "json")) == []
    told = CliRunner().invoke(app, ["detect", "--history", url])
    assert "No changes." in told.stderr and "The history is empty" in told.stderr
    assert "No changes." not in told.stdout
    assert CliRunner().invoke(app, ["detect", "--history", url, "--quiet"]).stderr == ""


def test_what_an_empty_history_does_not_need_is_not_loaded(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    Store.open(url).close()
    heavy = "{'numba', 'scipy', 'pandas', 'alembic', 'psycopg', 'alerts', 'reports', 'runners'}"
    script = (
        "import sys; from pointdrop.cli.main import app; "
        f"app(['detect', '--quiet', '--history', '{url}'], standalone_mode=False); "
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run((sys.executable, "-c", script), cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")


def test_detect_settles_what_people_asked_for(tmp_path: Path) -> None:
    """Nothing is left to measure at a boundary that the newest detection does not find."""
    url = f"sqlite:///{tmp_path}/asked.db"
    with Store.open(url) as opened:
        opened.append_event(FindingEvent(key="gone", event="rerun-requested", at=SESSION.started))
        run("detect", "--history", url, "--dry-run")
        run("detect", "--history", url, "--dbms", "mysql")
        assert [event.event for event in opened.events()] == ["rerun-requested"], "these write nothing"
        run("detect", "--history", url)
        assert [event.event for event in opened.events()] == ["rerun-requested", "rerun-done"]


@pytest.mark.parametrize("command", ["detect", "replay"])
def test_what_the_history_does_not_hold_is_an_error(url: str, command: str) -> None:
    with pytest.raises(UnknownSeries, match=r"nothing of oracle 23 in this history; it has .*mysql 8\.0, "):
        CliRunner().invoke(app, [command, "--history", url, "--dbms", "oracle", "--line", "23"], catch_exceptions=False)


def test_replay_on_a_fresh_machine() -> None:
    arguments = ("replay", "--dataset", "smalldatum", "--dbms", "mysql", "--line", "8.0")
    events = json.loads(run(*arguments, "--format", "json"))
    (event,) = [event for event in events if event["finding"]["key"] == "mysql/8.0/8.0.30/regression"]
    assert (event["measured"], event["delay"], event["stays"]) == ("8.0.30", 0, True)
    assert "mysql/5.6/" in run("replay", "--dataset", "smalldatum", "--line", "5.6")
    newest = [event for event in events if event["delay"] == 0]
    told = CliRunner().invoke(app, [*arguments]).stderr
    stay = sum(event["stays"] for event in newest)
    assert f"{len(newest)} suspected on the newest release, {stay} of them still there" in told


def test_what_was_confirmed_is_no_suspicion_of_a_replay() -> None:
    seen, suspected = finding(tier="confirmed"), finding(tier="provisional")
    of = ((seen, 0, True), (suspected, 0, True), (suspected, 0, False), (seen, 1, True))
    assert replay_score([Replayed("postgres", "17", "17.5", delay, told, stays) for told, delay, stays in of]) == (
        "2 suspected on the newest release, 1 of them still there; 1 confirmed on the newest release, 1 of them still "
        "there; 1 found later, 1 of them still there."
    )


def test_explain_in_words(url: str) -> None:
    text = run("explain", SERIES, "--history", url)
    assert "noise floor" in text
    (case,) = [line for line in text.splitlines() if "8.0.28 -> 8.0.30: changed" in line]
    assert re.search(r"changed, −[0-9.]+ % \(−[0-9.]+ to −[0-9.]+ %\), probability", case), "as in findings"
    assert "sister tests move at this release" in text
    parsed = json.loads(run("explain", SERIES, "--history", url, "--format", "json"))
    assert parsed["key"] == SERIES
    assert parsed["cases"]


def test_explain_of_nothing(url: str) -> None:
    from detector.errors import UnknownEvidence

    for text in ("no series", SERIES.replace("l.i1", "l.i9")):
        with pytest.raises(UnknownEvidence):
            CliRunner().invoke(app, ["explain", text, "--history", url], catch_exceptions=False)


@pytest.mark.parametrize(
    ("early", "late", "cause", "sentence"),
    [
        ("[mysqld]\njit = on\n", "[mysqld]\njit = on\n", "product", ""),
        ("jit = on\n", "jit = off\n", "config", "An option was changed: jit was on, is off."),
        ("old_size = 5\n", "new-size = 5\n", "product", "Options of one side only: new_size = 5 is set after only"),
    ],
)
def test_an_option_that_was_changed_is_the_cause(
    early: str, late: str, cause: str, sentence: str, tmp_path: Path, configs: Path
) -> None:
    """One session measures ten releases; from 17.6 on a third of the tests is slower, and the options may differ."""
    random = np.random.default_rng(5)
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:
        store.append_session(SESSION)
        for minor in range(10):
            text = early if minor < 6 else late
            row = run_of(f"17.{minor}").model_copy(update={"options": text})
            store.append_run(row)
            for number in (1, 2, 3):
                level = np.where(np.arange(9) < 3, 900.0 if minor >= 6 else 1000.0, 1000.0)
                values = level * np.exp(0.005 * random.standard_normal(9))
                found = tuple(
                    Measurement(test=f"test-{i}", metric="qps", value=value, unit="/s", better="higher")
                    for i, value in enumerate(values.tolist())
                )
                store.append_block(block(row, 1.0, number, measurements=found))
        (finding,) = run_detection(store, load_detector_settings(configs))
    assert (finding.key, finding.cause) == ("postgres/17/17.6/regression", cause)
    assert not sentence or any(sentence in line for line in finding.evidence)


@pytest.mark.parametrize(
    ("late", "cause", "sentence"),
    [
        (EffectiveSetting(value="200", default="200"), "product", "dives 10 → 200 (new default)"),
        (EffectiveSetting(value="200", source="file"), "product", "dives 10 → 200 (set on one side only)"),
        (EffectiveSetting(value="10.0", default="10.0"), "product", ""),
    ],
)
def test_a_new_default_stands_beside_the_boundary(
    late: EffectiveSetting, cause: str, sentence: str, tmp_path: Path, configs: Path
) -> None:
    """The servers say what the option files, which are alike, do not."""
    early = EffectiveSetting(value="10", default="10")
    found = _with_settings(tmp_path, configs, {"dives": early}, {"dives": late})
    assert found.cause == cause
    assert [setting.name for setting in found.settings] == (["dives"] if sentence else [])
    assert (f"Settings that differ: {sentence}." in found.evidence) == bool(sentence)


def test_settings_decide_where_both_sides_have_them(tmp_path: Path, configs: Path) -> None:
    """Somebody's value on both sides is a changed config; what only one release has is told and no cause."""
    early = {"jit": EffectiveSetting(value="on", source="file"), "gone": EffectiveSetting(value="1", source="file")}
    late = {"jit": EffectiveSetting(value="off", source="file"), "came": EffectiveSetting(value="2")}
    found = _with_settings(tmp_path, configs, early, late)
    assert found.cause == "config"
    assert "An option was changed: jit was on, is off." in found.evidence
    assert "Options of one side only: gone = 1 is set before only." in found.evidence
    assert _with_settings(tmp_path, configs, early, {}).settings == (), "a history of before has none"


def _with_settings(
    folder: Path, configs: Path, early: dict[str, EffectiveSetting], late: dict[str, EffectiveSetting]
) -> Finding:
    """The finding of a history whose runs kept these settings before and after 17.6."""
    random = np.random.default_rng(5)
    with Store.open(f"sqlite:///{folder}/{len(list(folder.iterdir()))}.db") as store:
        store.append_session(SESSION)
        for minor in range(10):
            row = run_of(f"17.{minor}").model_copy(update={"options": "jit = on\n"})
            store.append_run(row)
            for number in (1, 2, 3):
                level = np.where(np.arange(9) < 3, 900.0 if minor >= 6 else 1000.0, 1000.0)
                values = level * np.exp(0.005 * random.standard_normal(9))
                found = tuple(
                    Measurement(test=f"test-{i}", metric="qps", value=value, unit="/s", better="higher")
                    for i, value in enumerate(values.tolist())
                )
                settings = {} if number > 1 else early if minor < 6 else late
                store.append_block(block(row, 1.0, number, measurements=found, settings=settings))
        (finding,) = run_detection(store, load_detector_settings(configs))
    return finding


def test_a_config_edited_between_two_sessions_is_the_cause(tmp_path: Path) -> None:
    """The control shows it: an option that only one side has is a change when the control has it on one side only."""
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:
        for name, versions, text in (("s", ("17.1",), "work_mem = 4\n"), ("t", ("17.1", "17.2"), "jit = off\n")):
            store.append_session(SESSION.model_copy(update={"id": name}))
            for version in versions:
                row = run_of(version, session=name).model_copy(update={"options": text})
                store.append_run(row)
                store.append_block(block(row, 1.0))
        first, *_, last = store.runs()
        assert compare_options(parse_options(first.options), parse_options(last.options))[0] == []
        assert sorted(edited_options(first, last, store)) == [
            "jit = off is set after only",
            "work_mem = 4 is set before only",
        ]
        assert list(edited_options(last, last, store)) == []


@pytest.mark.slow
def test_a_cluster_of_two_workers_says_the_same(store: Store, configs: Path) -> None:
    from distributed import LocalCluster

    settings = load_detector_settings(configs)
    here = run_detection(store, settings, write=False)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        there = run_detection(store, settings, scheduler=cluster.scheduler_address, write=False)
    assert [finding.model_dump_json() for finding in there] == [finding.model_dump_json() for finding in here]
    assert here


def test_both_sides_of_what_explains_a_finding_are_of_one_place(tmp_path: Path) -> None:
    """A newer block of one side in another config or lane has other plans and functions, and explains nothing."""
    cheap, dear = (FunctionCost(function="pg_mblen", insn_per_op=value) for value in (100.0, 900.0))
    here, there = (StatementPlan(statement="SELECT", digest=digest, text=digest) for digest in ("seq", "index"))
    sides = [run_of(version, lane="instructions") for version in ("17.1", "17.2")]
    others = [
        sides[1].model_copy(update={"id": f"{name}", name: value})
        for name, value in (("lane", "time"), ("config", "big"))
    ]
    with Store.open(f"sqlite:///{tmp_path / 'h.db'}") as store:
        store.append_session(SESSION)
        for number, of in enumerate([*sides, *others]):
            started = SESSION.started + number * timedelta(hours=1)
            cost, plan = (cheap, here) if of in sides else (dear, there)
            store.append_run(of)
            store.append_block(
                block(of, 1.0, started=started, ended=started, functions={"scan": (cost,)}, plans={"scan": (plan,)})
            )
        moved = finding("17.2", "17.1", changes={"scan": 5.0}, servers=("small",), functions=False, plans=False)
        found = explained(moved, [], store, shipped_metrics())
    assert found.plans == () and found.functions == () and found.cause == "product"


def test_metrics_that_are_wrong_are_told_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text('[qps]\nunit = "/s"\nbetter = "up"\n')
    with pytest.raises(BadSettings, match=r"metrics\.toml: qps.better: Input should be 'higher' or 'lower'"):
        load_detector_settings(tmp_path)


def test_a_scheduler_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(address: str, **_: object) -> None:
        raise OSError(f"Timed out trying to connect to {address}")

    monkeypatch.setattr("distributed.Client", silent)
    with (
        Store.open(f"sqlite:///{tmp_path / 'h.db'}") as store,
        pytest.raises(DetectorError, match=r"no Dask scheduler answers at tcp://10\.0\.0\.1:8786: Timed out"),
    ):
        run_detection(store, DetectorSettings(), scheduler="tcp://10.0.0.1:8786", write=False)
