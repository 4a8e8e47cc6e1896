"""What a night does first, what it leaves, and that the plan that is shipped fits one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from typer.testing import CliRunner

from history.errors import BadSettings
from history.model import Release
from history.settings import read_model
from history.store import Store
from pointdrop.cli.forecast import forecast, print_forecast
from pointdrop.cli.main import app
from pointdrop.jobs import measurement
from pointdrop.jobs.measurement import Measured, MeasurementSetup, measure_all
from pointdrop.jobs.night_schedule import fits, in_night_order, postponed_text, within_budget
from pointdrop.jobs.planned_work import named_work, planned_work
from pointdrop.jobs.release_selection import Work, pick
from pointdrop.jobs.session_estimates import estimates
from pointdrop.jobs.session_records import new_record, write_record
from pointdrop.jobs.work_matrix import matrix_rows
from runners.cores import usable_cores
from runners.releases import Catalogue
from runners.releases.manifest import Manifest, manifest_path
from runners.sessions import Estimate
from runners.settings import Measure, Plan, adapted, load_plan, narrowed

CONFIGS = Path(__file__).parents[2] / "configs"
#: The newest two lines of each, with two releases: the control and a new one.
KNOWN = {
    "postgres": ("17.0", "17.5", "18.0", "18.2"),
    "mysql": ("8.4.0", "8.4.6", "9.7.0", "9.7.1"),
    "mariadb": ("10.11.2", "10.11.9", "11.8.2", "11.8.4"),
    "myrocks": ("10.11.2", "10.11.9"),
}


def releases(dbms: str) -> list[Release]:
    return [Release(dbms=dbms, version=v, line=v.rpartition(".")[0]) for v in KNOWN[dbms]]


def all_work(plan: Plan, dbms: str = "") -> list[Work]:
    return [
        one
        for measure in plan.measure
        if dbms in ("", measure.dbms)
        for one in pick(measure, "default", releases(measure.dbms), {})
    ]


class Known:
    """A catalogue that knows the releases above and asks nobody."""

    def discover(self, dbms: str) -> None:
        pass

    def manifest(self, dbms: str) -> Manifest:
        return read_model(manifest_path(CONFIGS, dbms), Manifest)

    def list(self, dbms: str) -> Any:
        return [SimpleNamespace(release=release, state="pinned", cached=True) for release in releases(dbms)]


def bench(tmp_path: Path, configs: Path) -> MeasurementSetup:
    return MeasurementSetup(configs, tmp_path, cast("Any", Known()), Store.open(f"sqlite:///{tmp_path / 'history.db'}"))


def test_what_costs_minutes_comes_first_then_the_newest_line_of_each(configs: Path) -> None:
    order = [
        (one.measure.lane[0], one.measure.dbms, one.line, one.measure.benchmark)
        for one in in_night_order(all_work(load_plan("nightly", configs)))
    ]
    four = ["postgres", "mysql", "mariadb", "myrocks"]
    newest = ["18", "9.7", "11.8", "10.11"]
    assert [(lane, dbms) for lane, dbms, *_ in order[:4]] == [("i", dbms) for dbms in four]
    assert order[4:12] == [
        ("t", dbms, line, benchmark)
        for benchmark in ("sysbench", "insert")
        for dbms, line in zip(four, newest, strict=True)
    ]
    assert {line for _, _, line, _ in order[12:]} == {"17", "8.4", "10.11"}, "the oldest lines last"


@pytest.mark.parametrize("server", ["small", "medium"])
@pytest.mark.parametrize("dbms", KNOWN)
def test_a_night_holds_a_new_release_of_any_dbms_whole(tmp_path: Path, configs: Path, dbms: str, server: str) -> None:
    """Microbenchmarks in both lanes, timed beside the line before, and the Insert Benchmark, with the control."""
    plan = load_plan("nightly", configs)
    line = releases(dbms)[-1].line
    work = [one for one in all_work(plan, dbms) if one.measure.lane == "instructions" or one.line == line]
    assert {(one.measure.benchmark, one.measure.lane) for one in work} == {
        ("sysbench", "time"), ("insert", "time"), ("sysbench", "instructions"),
    }  # fmt: skip
    with bench(tmp_path, configs).store as store:
        here = MeasurementSetup(configs, tmp_path, cast("Any", None), store)
        wanted = estimates(here, plan, server, work, workers=1)
    assert plan.budget_minutes is not None and sum(one.high_s for one in wanted) / 60 <= plan.budget_minutes


def test_what_does_not_fit_is_not_begun_and_what_is_shorter_still_may() -> None:
    hour, block = Estimate(4, 3000.0, 4200.0, 0, 900.0), Estimate(1, 1800.0, 1800.0, 0, 1800.0)
    assert within_budget([hour, hour, block], None) == [True, True, True]
    assert within_budget([hour, hour, block], 60) == [True, False, False]
    assert within_budget([hour, block, hour], 80) == [True, False, True], (
        "a block of 15 minutes fits, one of 30 does not"
    )
    assert within_budget([hour, block], 60, before_s=2400.0) == [True, False], "what was begun goes on first"
    assert within_budget([hour, block], 60, before_s=5000.0) == [False, False]
    assert fits(Estimate(0, 0.0, 0.0, 0, 900.0), 0.0), "nothing is left of it"


def test_what_is_begun_has_time_for_a_block_however_many_cores_there_are(tmp_path: Path, configs: Path) -> None:
    """Blocks beside each other do not end sooner, and a session begins none that would not end."""
    plan = load_plan("nightly", configs)
    work = [one for one in all_work(plan, "postgres") if one.measure.lane == "instructions"]
    here = bench(tmp_path, configs)
    with here.store:
        (one,) = estimates(here, plan, "small", work, workers=8)
    assert one.middle_s / one.blocks < one.block_s
    assert fits(one, one.block_s) and not fits(one, 0.99 * one.block_s)


def test_a_night_names_what_it_leaves_and_fetches_none_of_it(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, began = [0.0], list[str]()

    def fetch(here: MeasurementSetup, wanted: Any, measured: Measured) -> dict[str, Release]:
        return {release.version: release for release in wanted}

    def run(here: MeasurementSetup, begun: Any, measured: Measured, left: float, **options: Any) -> None:
        began.append(begun.measure.dbms)
        clock[0] += 180.0

    monkeypatch.setattr(measurement, "_fetch", fetch)
    monkeypatch.setattr(measurement, "_run", run)
    monkeypatch.setattr(measurement.time, "monotonic", lambda: clock[0])
    plan = load_plan("nightly", configs)
    here = bench(tmp_path, configs)
    with here.store:
        measured = measure_all(here, plan, "small", in_night_order(all_work(plan, "postgres")), budget_minutes=20)
    assert began == ["postgres"], "counted instructions"
    assert measured.incomplete == [
        "left for the next night, since 20 minutes do not hold it: postgres 18 sysbench default, "
        "postgres 18 insert default, postgres 17 sysbench default, postgres 17 insert default"
    ]


@pytest.mark.parametrize("server", ["small", "medium"])
def test_the_jobs_of_a_first_night_are_instructions_and_the_newest_lines(
    tmp_path: Path, configs: Path, server: str
) -> None:
    plan = load_plan("nightly", configs)
    here = bench(tmp_path, configs)
    with here.store:
        rows, later = matrix_rows(here, plan, [server], ())
        whole, nothing = matrix_rows(here, plan.model_copy(update={"budget_minutes": None}), [server], ())
        work = planned_work(here, plan, server)
    keys = ("lane", "dbms", "line", "benchmark", "releases")
    first = [
        ("instructions", "postgres", "17,18", "sysbench", "17.5,18.2"),
        ("instructions", "mysql", "8.4,9.7", "sysbench", "8.4.6,9.7.1"),
        ("instructions", "mariadb", "10.11,11.8", "sysbench", "10.11.9,11.8.4"),
        ("instructions", "myrocks", "10.11", "sysbench", "10.11.9"),
        ("time", "postgres", "18", "sysbench", "18.2"),
        ("time", "mysql", "9.7", "sysbench", "9.7.1"),
        ("time", "mariadb", "11.8", "sysbench", "11.8.4"),
        ("time", "myrocks", "10.11", "sysbench", "10.11.9"),
    ]
    fits = first[:6] if server == "medium" else [*first[:6], first[7]]  # there is no line before the one of MyRocks
    assert [tuple(row[key] for key in keys) for row in rows] == fits
    assert later[0] == f"{server} mariadb 11.8 sysbench time default" and len(later) == len(work) - len(rows)
    assert nothing == [] and [(row["lane"], row["dbms"], row["benchmark"]) for row in whole] == [
        (one.measure.lane, one.measure.dbms, one.measure.benchmark) for one in work
    ], "as on one machine"


def test_each_server_gets_a_job_though_its_night_holds_none(tmp_path: Path, configs: Path) -> None:
    plan = load_plan("nightly", configs).model_copy(update={"budget_minutes": 0.1})
    here = bench(tmp_path, configs)
    with here.store:
        rows, _ = matrix_rows(here, plan, ["small", "medium"], ())
    assert [(row["server"], row["lane"]) for row in rows] == [("small", "instructions"), ("medium", "instructions")]


def test_a_job_does_not_repeat_what_the_history_holds(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine that gets the job has no history: its row says what is missing, and the workflow passes that on."""

    def measured(store: Store, dbms: str, config: str, benchmark: str, lane: str, server: str) -> dict[str, int]:
        lacks = {"18.2"} if benchmark == "insert" else set[str]()
        return {version: 2 for versions in KNOWN.values() for version in versions if version not in lacks}

    monkeypatch.setattr(Store, "measured", measured)
    plan = load_plan("nightly", configs)
    here = bench(tmp_path, configs)
    with here.store:
        (row,), later = matrix_rows(here, plan, ["small"], ())
        job = narrowed(plan, row["benchmark"], row["lane"], row["config"])
        (work,) = named_work(here, job, (row["dbms"],), row["releases"].split(","))
    assert later == [] and (row["dbms"], row["line"], row["benchmark"]) == ("postgres", "18", "insert")
    assert (work.measure.benchmark, work.measure.lane, work.line) == ("insert", "time", "18")
    assert row["timeout_minutes"] == pytest.approx(60 + 2 * 407, abs=60)
    steps = yaml.safe_load((configs.parent / ".github" / "workflows" / "nightly.yml").read_text())["jobs"]["bench"]
    assert set(re.findall(r"matrix\.(\w+)", yaml.dump(steps, width=1000))) == row.keys()
    (measure,) = [step for step in steps["steps"] if step["name"] == "Measure"]
    for option in ("server", "dbms", "benchmark", "lane", "config", "releases"):
        assert f'--{option} "${option.upper()}"' in measure["run"] and f"matrix.{option} " in str(measure["env"])


def test_a_plan_is_narrowed_to_what_it_measures(configs: Path) -> None:
    plan = load_plan("config-matrix", configs)
    assert {one.configs for one in narrowed(plan, config="bl1_sync0_dw1").measure} == {("bl1_sync0_dw1",)}
    assert narrowed(plan) == plan
    with pytest.raises(BadSettings, match="measures nothing of this: insert, instructions lane; it measures: sys"):
        narrowed(plan, "insert", "instructions")


def test_a_forecast_holds_to_the_budget_and_counts_what_was_begun(tmp_path: Path, configs: Path) -> None:
    plan = load_plan("nightly", configs)
    here = bench(tmp_path, configs)
    with here.store:
        work = planned_work(here, plan, "small", ("postgres",))

        def told(budget: float) -> list[tuple[Any, ...]]:
            rows = forecast(here, plan, "small", work, budget)
            return [(row["lane"], row["line"], row["benchmark"], row["resumed"], row["tonight"]) for row in rows]

        megabytes = [one.disk_bytes // 10**6 for one in estimates(here, plan, "small", work, len(usable_cores()))]
        assert [row["disk_mb"] for row in forecast(here, plan, "small", work, 20)] == megabytes
        assert [tonight for *_, tonight in told(20)] == [True, False, False, False, False]
        assert [tonight for *_, tonight in told(300)] == [True, True, False, False, False]
        newest = next(one for one in work if one.measure.lane == "time")
        write_record(tmp_path, new_record(plan, "small", newest, datetime.now(UTC)))
        assert told(450) == [
            ("time", "18", "sysbench", True, True),
            ("instructions", "", "sysbench", False, True),
            ("time", "18", "insert", False, False),
            ("time", "17", "sysbench", False, False),
            ("time", "17", "insert", False, False),
        ], "what goes on first is not measured twice, and leaves so much less"


def test_bench_forecasts_the_budget_it_is_given(tmp_path: Path, configs: Path) -> None:
    """Twenty minutes hold counted instructions and no block of time; the plan's 1,200 hold more."""
    words = ["bench", "--plan", "nightly", "--server", "small", "--dbms", "postgres", "--dry-run", "--offline"]
    environment = {"POINTDROP_STATE": str(tmp_path), "POINTDROP_CONFIGS": str(configs), "POINTDROP_HISTORY": ""}

    def told(*more: str) -> tuple[int, int]:
        result = CliRunner().invoke(app, [*words, *more], env=environment)
        assert result.exit_code == 0, result.output
        return result.stdout.count("time lane"), result.stdout.count("does not fit any more")

    sessions, left = told("--budget-minutes", "20")
    assert sessions == left > 0
    assert told()[1] < left
    assert told("--budget-minutes", "20", "--lane", "instructions") == (0, 0)


def test_tests_of_one_benchmark_leave_the_other_out(configs: Path) -> None:
    plan = load_plan("nightly", configs)
    assert {one.benchmark for one in adapted(plan, configs, tests="32").measure} == {"sysbench"}
    assert {one.benchmark for one in adapted(plan, configs, tests="qr100").measure} == {"insert"}


def test_nothing_is_begun_when_fetching_took_the_time_of_a_block(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that was begun and stopped with nothing done would come first the next night."""
    clock, began = [0.0], list[str]()

    def fetch(here: MeasurementSetup, wanted: Any, measured: Measured) -> dict[str, Release]:
        clock[0] += 1190.0
        return {release.version: release for release in wanted}

    monkeypatch.setattr(measurement, "_fetch", fetch)
    monkeypatch.setattr(measurement, "_run", lambda here, begun, measured, left, **options: began.append(begun.id))
    monkeypatch.setattr(measurement.time, "monotonic", lambda: clock[0])
    plan = load_plan("nightly", configs)
    work = [one for one in all_work(plan, "postgres") if one.measure.lane == "instructions"]
    here = bench(tmp_path, configs)
    with here.store:
        measured = measure_all(here, plan, "small", work, budget_minutes=20)
    assert began == []
    assert measured.incomplete == [
        "left for the next night, since 20 minutes do not hold it: postgres sysbench default"
    ]


@pytest.mark.parametrize(("spent_s", "begins"), [(0.0, True), (300.0, False)])
def test_a_whole_night_begins_a_block_whatever_is_expected_of_it(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch, spent_s: float, begins: bool
) -> None:
    """Else what is expected would never change, and the work be left for the next night for ever."""
    clock, began = [0.0], list[bool]()

    def fetch(here: MeasurementSetup, wanted: Any, measured: Measured) -> dict[str, Release]:
        clock[0] += 30.0
        return {release.version: release for release in wanted}

    def run(here: MeasurementSetup, begun: Any, measured: Measured, left: float, *, begin_one: bool) -> None:
        began.append(begin_one)
        clock[0] += 3600.0

    monkeypatch.setattr(measurement, "_fetch", fetch)
    monkeypatch.setattr(measurement, "_run", run)
    monkeypatch.setattr(measurement.time, "monotonic", lambda: clock[0])
    plan = load_plan("nightly", configs)
    work = [one for one in all_work(plan, "postgres") if one.measure.lane == "time"]
    here = bench(tmp_path, configs)
    with here.store:
        measured = measure_all(here, plan, "small", work, budget_minutes=20, spent_s=spent_s)
        forecasts = within_budget(estimates(here, plan, "small", work, 1), 20, spent_s)
    assert began == [True] * begins and len(measured.incomplete) == 1
    assert forecasts == [begins, *[False] * (len(work) - 1)], "and the dry run says so"


def test_what_is_left_is_told_with_config_and_benchmark() -> None:
    (release,) = releases("postgres")[:1]
    one = Work(Measure(dbms="postgres", profile="quick"), "x", "17", (release,), release)
    assert (
        postponed_text([one], 60) == "left for the next night, since 60 minutes do not hold it: postgres 17 sysbench x"
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("bench", "--dbms", "postgres,mysq"), "measures postgres, not mysq"),
        (
            ("bench", "--releases", "17.4", "--confirm", "local/postgres/default/sysbench/time/17.4..17.5"),
            "one of them",
        ),
        (("bench", "--list", "--releases", "17.4"), "one of them"),
        (("bench", "--confirm", "small/postgres/default/sysbench/time/17.4..17.5"), "none of the suspects is of local"),
        (("nightly", "--server", "small"), "the plan local is for local"),
    ],
)
def test_what_the_plan_does_not_have_is_refused(tmp_path: Path, asked: tuple[str, ...], said: str) -> None:
    code, told = _told(tmp_path, *asked, "--dry-run")
    assert said in " ".join(told.replace("│", " ").split())
    assert code == 2


def test_releases_that_are_named_and_not_known_are_not_done(tmp_path: Path) -> None:
    code, told = _told(tmp_path, "bench", "--releases", "99.9")
    assert (code, "not done: 99.9: no final release" in told) == (4, True)


def test_a_budget_of_nothing_begins_nothing(tmp_path: Path) -> None:
    code, told = _told(tmp_path, "bench", "--releases", "17.4", "--budget-minutes", "0", "--dry-run")
    assert (code, "none of it begun this night" in told) == (0, True)


def _told(tmp_path: Path, *words: str, offline: bool = True) -> tuple[int, str]:
    """The exit code that `pointdrop` would have, and everything it would say."""
    environment = {"POINTDROP_STATE": str(tmp_path), "POINTDROP_HISTORY": ""}
    result = CliRunner().invoke(app, [*words, *["--offline"] * offline], env=environment)
    failed = result.exception if isinstance(result.exception, BadSettings) else None
    return (failed.exit_code if failed else result.exit_code), f"{result.output} {failed or ''}"


def test_a_dry_run_asks_no_source_unless_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Catalogue, "_ask", lambda self, dbms, settings: asked.append(dbms))
    for words in (("bench",), ("bench", "--releases", "17.4"), ("nightly",)):
        code, told = _told(tmp_path, *words, "--dry-run", offline=False)
        assert (code, asked) == (0, [])
        assert "Releases of postgres as pinned, since no source was asked yet; --discover asks the sources." in told
    code, told = _told(tmp_path, "bench", "--dry-run", "--discover", offline=False)
    assert code == 0 and set(asked) == {"postgres"} and "--discover" not in told


ROW = {
    "dbms": "postgres", "benchmark": "sysbench", "lane": "instructions", "line": "17", "config": "default",
    "profile": "instructions", "releases": ["17.4", "17.5"], "control": "17.0", "beside": [], "blocks": 3,
    "minutes_low": 1.2, "minutes_high": 3.9, "known_blocks": 12, "downloads": [], "disk_mb": 1_100, "resumed": False,
    "tonight": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (
            [ROW],
            """\
postgres, line 17, sysbench, instructions lane, profile instructions, config default
    2 releases: 17.4 17.5 (control 17.0)
    3 blocks, 1 to 4 minutes (learned from 12 blocks of this host), up to 1.1 GB on disk

Together 1 to 4 minutes of machine time, downloads not included. Suspects that the detector finds are measured again \
on top of that.
""",
        ),
        (
            [
                ROW | {"minutes_low": 0.1, "minutes_high": 0.4, "known_blocks": 1, "resumed": True},
                ROW
                | {"line": "", "known_blocks": 0, "downloads": ["17.0", "17.4"], "tonight": False, "beside": ["16.9"]},
            ],
            """\
postgres, line 17, sysbench, instructions lane, profile instructions, config default
    2 releases: 17.4 17.5 (control 17.0)
    begun before: its missing 3 blocks, 5 to 25 seconds (learned from 1 block of this host), up to 1.1 GB on disk
postgres, sysbench, instructions lane, profile instructions, config default
    2 releases: 17.4 17.5 (control 17.0, beside 16.9)
    3 blocks, 1 to 4 minutes (no such block of this host yet), up to 1.1 GB on disk
    to download first: 17.0 17.4
    does not fit any more: left for a later night

Together 1 to 5 minutes of machine time, 5 to 25 seconds of it in what this night begins, downloads not included. \
Suspects that the detector finds are measured again on top of that.
""",
        ),
    ],
    ids=["learned", "begun before, and new"],
)
def test_a_forecast_in_words(rows: list[dict[str, Any]], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_forecast(rows, "text")
    assert capsys.readouterr().out == text
