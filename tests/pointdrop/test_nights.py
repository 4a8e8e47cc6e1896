"""What a night does first, what it leaves, and that the plan that is shipped fits one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from history.model import Release
from history.store import Store
from pointdrop.cli.forecast import forecast
from pointdrop.jobs import listing as listings
from pointdrop.jobs import measuring
from pointdrop.jobs.measuring import Bench, Measured, begin, estimates, measure_all, planned
from pointdrop.jobs.nights import begins, in_turn, left_out, tonight
from pointdrop.jobs.picks import Work, pick
from runners.sessions import Estimate
from runners.settings import Measure, Plan, adapted, load_plan

#: The newest two lines of each, with two releases: the control and a new one.
KNOWN = {
    "postgres": ("17.0", "17.5", "18.0", "18.2"),
    "mysql": ("8.4.0", "8.4.6", "9.4.0", "9.4.1"),
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

    def list(self, dbms: str) -> Any:
        return [SimpleNamespace(release=release, state="pinned") for release in releases(dbms)]


def bench(tmp_path: Path, configs: Path) -> Bench:
    return Bench(configs, tmp_path, cast("Any", Known()), Store.open(f"sqlite:///{tmp_path / 'history.db'}"))


def test_what_costs_minutes_comes_first_then_the_newest_line_of_each(configs: Path) -> None:
    order = [
        (one.measure.lane[0], one.measure.dbms, one.line, one.measure.benchmark)
        for one in in_turn(all_work(load_plan("nightly", configs)))
    ]
    four = ["postgres", "mysql", "mariadb", "myrocks"]
    newest = ["18", "9.4", "11.8", "10.11"]
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
    """Microbenchmarks in both lanes and the Insert Benchmark, with the control; and one more release besides."""
    plan = load_plan("nightly", configs)
    line = releases(dbms)[-1].line
    work = [one for one in all_work(plan, dbms) if one.measure.lane == "instructions" or one.line == line]
    assert {(one.measure.benchmark, one.measure.lane) for one in work} == {
        ("sysbench", "time"), ("insert", "time"), ("sysbench", "instructions"),
    }  # fmt: skip
    with bench(tmp_path, configs).store as store:
        here = Bench(configs, tmp_path, cast("Any", None), store)
        minutes = sum(one.seconds for one in estimates(here, plan, server, work, workers=1)) / 60
    assert plan.budget_minutes is not None and 2 * minutes <= plan.budget_minutes


def test_what_does_not_fit_is_not_begun_and_what_is_shorter_still_may() -> None:
    hour, block = Estimate(4, 3600.0, 0, 900.0), Estimate(1, 1800.0, 0, 1800.0)
    assert tonight([hour, hour, block], None) == [True, True, True]
    assert tonight([hour, hour, block], 60) == [True, False, False]
    assert tonight([hour, block, hour], 80) == [True, False, True], "a block of 15 minutes fits, one of 30 does not"
    assert tonight([hour, block], 60, before_s=2400.0) == [True, False], "what was begun goes on first"
    assert tonight([hour, block], 60, before_s=5000.0) == [False, False]
    assert begins(Estimate(0, 0.0, 0, 900.0), 0.0), "nothing is left of it"


def test_what_is_begun_has_time_for_a_block_however_many_cores_there_are(tmp_path: Path, configs: Path) -> None:
    """Blocks beside each other do not end sooner, and a session begins none that would not end."""
    plan = load_plan("nightly", configs)
    work = [one for one in all_work(plan, "postgres") if one.measure.lane == "instructions"]
    here = bench(tmp_path, configs)
    with here.store:
        (one,) = estimates(here, plan, "small", work, workers=8)
    assert one.seconds / one.blocks < one.block_seconds
    assert begins(one, one.block_seconds) and not begins(one, 0.99 * one.block_seconds)


def test_a_night_names_what_it_leaves_and_fetches_none_of_it(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []

    def fetch(here: Bench, wanted: Any, measured: Measured) -> dict[str, Release]:
        return {release.version: release for release in wanted}

    monkeypatch.setattr(measuring, "_fetch", fetch)
    monkeypatch.setattr(measuring, "_run", lambda here, begun, measured, left: began.append(f"{begun.measure.dbms}"))
    monkeypatch.setattr(measuring.time, "monotonic", lambda: 0.0)
    plan = load_plan("nightly", configs)
    here = bench(tmp_path, configs)
    with here.store:
        measured = measure_all(here, plan, "small", in_turn(all_work(plan, "postgres")), budget_minutes=20)
    assert began == ["postgres"], "counted instructions"
    assert measured.incomplete == [
        "left for the next night, since 20 minutes do not hold it: postgres 18 sysbench default, "
        "postgres 18 insert default, postgres 17 sysbench default, postgres 17 insert default"
    ]


def test_a_server_gets_a_night_of_jobs_and_hears_what_is_left(
    tmp_path: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = load_plan("nightly", configs)
    work = in_turn(all_work(plan))
    monkeypatch.setattr(listings, "planned", lambda here, plan, server, dbms: work)
    monkeypatch.setattr(
        listings,
        "named",
        lambda here, plan, dbms, versions: [
            one for one in work if one.measure.dbms in dbms and one.measure.lane == "time"
            and {release.version for release in one.candidates} & set(versions)
        ],
    )  # fmt: skip
    here = bench(tmp_path, configs)
    with here.store:
        rows, later = listings.listing(here, plan, ["small", "medium"], ())
        tight = plan.model_copy(update={"budget_minutes": 1.0})
        assert [row["server"] for row in listings.listing(here, tight, ["small", "medium"], ())[0]] == [
            "small",
            "medium",
        ], "a server's first row is always there"
        whole, nothing = listings.listing(here, plan.model_copy(update={"budget_minutes": None}), ["small"], ())
    by_server = {server: [row for row in rows if row["server"] == server] for server in ("small", "medium")}
    assert all(0 < len(found) <= 2 for found in by_server.values())
    assert len(later) == 2 * 7 - len(rows) and nothing == [] and len(whole) == 7


def test_a_forecast_holds_to_the_budget_and_counts_what_was_begun(tmp_path: Path, configs: Path) -> None:
    plan = load_plan("nightly", configs)
    here = bench(tmp_path, configs)
    with here.store:
        work = planned(here, plan, "small", ("postgres",))

        def told(budget: float) -> list[tuple[Any, ...]]:
            rows = forecast(here, plan, "small", work, budget)
            return [(row["lane"], row["line"], row["benchmark"], row["resumed"], row["tonight"]) for row in rows]

        assert [tonight for *_, tonight in told(20)] == [True, False, False, False, False]
        assert [tonight for *_, tonight in told(300)] == [True, True, False, False, False]
        newest = next(one for one in work if one.measure.lane == "time")
        measuring._record(tmp_path, begin(plan, "small", newest, datetime.now(UTC)))
        assert told(300) == [
            ("time", "18", "sysbench", True, True),
            ("instructions", "", "sysbench", False, True),
            ("time", "18", "insert", False, False),
            ("time", "17", "sysbench", False, False),
            ("time", "17", "insert", False, False),
        ], "what goes on first is not measured twice, and leaves so much less"


def test_tests_of_one_benchmark_leave_the_other_out(configs: Path) -> None:
    plan = load_plan("nightly", configs)
    assert {one.benchmark for one in adapted(plan, configs, tests="32").measure} == {"sysbench"}
    assert {one.benchmark for one in adapted(plan, configs, tests="qr100").measure} == {"insert"}


def test_what_is_left_is_told_with_config_and_benchmark() -> None:
    (release,) = releases("postgres")[:1]
    one = Work(Measure(dbms="postgres", profile="quick"), "x", "17", (release,), release)
    assert left_out([one], 60) == "left for the next night, since 60 minutes do not hold it: postgres 17 sysbench x"
