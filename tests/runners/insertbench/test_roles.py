"""The steps are the published ones, and each becomes the processes it needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.errors import BadSettings
from history.model import Release
from runners.engines import Connection
from runners.insertbench.driver import PAIRED
from runners.insertbench.roles import LUA, commits, role_commands, roles_of
from runners.sessions import plan_session
from runners.settings import Benchmark, InsertSize, Profile, Step, load_benchmark, load_profile, load_server
from runners.settings.profiles import size_of

CONFIGS = Path(__file__).parents[3] / "configs"
POSTGRES = Connection("pgsql", Path("/run/pg"), 5432, "pointdrop", "postgres")
SIZE = InsertSize(rows=30_000_000, replaced={"l.i1": 80_000_000, "l.i2": 20_000_000}, query_s=3600)


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return load_benchmark("insert", CONFIGS)


def test_the_steps_are_the_published_ones_in_their_order(benchmark: Benchmark) -> None:
    names = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000"]
    assert [test.name for test in benchmark.tests] == names
    steps = {test.name: test.step for test in benchmark.tests if test.step}
    assert [steps[name].rows_per_commit for name in ("l.i0", "l.i1", "l.i2", "qr100")] == [100, 50, 5, 50]
    assert [steps[name].rate for name in names[4:]] == [100, 100, 500, 500, 1000, 1000]


def test_storage_is_settled_once_after_the_last_step_that_only_writes(benchmark: Benchmark) -> None:
    from runners.settings.benchmarks import settled_parts

    assert [part[-1].name for part in settled_parts(benchmark.tests)] == ["l.i2", "qp1000"]


def test_the_io_bound_one_has_the_same_steps_at_another_size(benchmark: Benchmark) -> None:
    other = load_benchmark("insert-io", CONFIGS)
    assert other.tests == benchmark.tests
    full = load_profile("full", CONFIGS)
    cached, io_bound = size_of(benchmark, full), size_of(other, full)
    assert cached == SIZE
    assert io_bound == InsertSize(rows=800_000_000, replaced={"l.i1": 4_000_000, "l.i2": 1_000_000}, query_s=1800)


@pytest.mark.parametrize("profile", ["full", "standard", "quick"])
@pytest.mark.parametrize("name", ["insert", "insert-io"])
def test_every_profile_of_the_time_lane_has_both_sizes(name: str, profile: str) -> None:
    assert size_of(load_benchmark(name, CONFIGS), load_profile(profile, CONFIGS)) is not None


def test_a_profile_without_the_size_is_refused(benchmark: Benchmark) -> None:
    with pytest.raises(BadSettings, match=r"instructions has no \[instructions.insert.cached\]"):
        size_of(benchmark, load_profile("instructions", CONFIGS))
    short = Profile(name="p", read_s=1, write_s=1, insert={"cached": SIZE.model_copy(update={"replaced": {}})})
    with pytest.raises(BadSettings, match=r"says nothing of l\.i1, l\.i2"):
        size_of(benchmark, short)


def test_a_step_brings_those_it_starts_from(benchmark: Benchmark) -> None:
    assert [test.name for test in benchmark.select(("qr100", "l.x"))] == ["l.i0", "l.x", "l.i1", "l.i2", "qr100"]


@pytest.mark.parametrize(
    ("step", "roles"),
    [
        ("l.i0", ["insert"]),
        ("l.x", ["index"]),
        ("l.i1", ["insert", "delete"]),
        ("l.i2", ["insert", "delete"]),
        ("qr500", ["query", "insert", "delete"]),
        ("qp500", ["query", "insert", "delete"]),
    ],
)
def test_a_client_has_up_to_three_connections_a_process_each(benchmark: Benchmark, step: str, roles: list[str]) -> None:
    test = next(test for test in benchmark.tests if test.name == step)
    commands = role_commands(POSTGRES, test, SIZE, clients=4, seed=9)
    assert list(commands) == roles, "the measured one first"
    for role, argv in commands.items():
        assert argv[-2].endswith(f"{role}.lua")
        assert "--threads=4" in argv


def test_inserts_behind_queries_keep_the_rate_of_the_name(benchmark: Benchmark) -> None:
    test = next(test for test in benchmark.tests if test.name == "qr500")
    commands = role_commands(POSTGRES, test, SIZE, clients=1, seed=9)
    assert {"--rate=500", "--rows-per-commit=50", "--time=3600", "--commits=36000"} <= set(commands["insert"])
    assert {"--time=3600", "--query=range"} <= set(commands["query"])
    assert "--time=0" in commands["delete"], "deletes end when the inserts have"


@given(rows=st.integers(1, 10**9), each=st.integers(1, 1000))
def test_no_row_is_left_out(rows: int, each: int) -> None:
    number = commits(rows, each)
    assert (number - 1) * each < rows <= number * each


@given(
    does=st.sampled_from(["load", "index", "replace", "range", "point"]),
    rows=st.integers(1, 1000),
)
def test_only_inserts_and_deletes_of_one_step_are_paired(does: str, rows: int) -> None:
    step = Step.model_validate(
        {"does": does, "rows_per_commit": rows, "rate": 100 if does in ("range", "point") else 0}
    )
    roles = roles_of(step, "l.i1", SIZE).keys()
    assert ("delete" in roles) == (set(PAIRED) <= roles)


def test_a_query_without_a_rate_behind_it_is_no_step() -> None:
    with pytest.raises(ValueError, match="has a rate"):
        Step(does="range")
    with pytest.raises(ValueError, match="has a rate"):
        Step(does="load", rate=100)


def test_every_option_of_the_roles_is_one_of_the_scripts(benchmark: Benchmark) -> None:
    options = set(re.findall(r"^   (\w+) = \{ \"", (LUA / "insertbench.lua").read_text(), re.MULTILINE))
    given_options = {
        option.replace("-", "_")
        for test in benchmark.tests
        if test.step
        for role_options in roles_of(test.step, test.name, SIZE).values()
        for option in role_options
    }
    assert given_options - {"time"} <= options


def test_a_session_of_one_step_has_those_it_starts_from(benchmark: Benchmark) -> None:
    release = Release(dbms="postgres", version="17.5", line="17")
    plan = plan_session(
        session_id="s",
        plan="p",
        server=load_server("local", CONFIGS),
        benchmark=benchmark,
        tests=[test for test in benchmark.tests if test.name == "l.i1"],
        profile=load_profile("quick", CONFIGS),
        releases=[release],
        control=release,
        blocks=1,
        seed=1,
    )
    assert [test.name for test in plan.tests] == ["l.i0", "l.x", "l.i1"]
    assert plan.scale.threads == 3, "connections of one client"
    assert plan.size == load_profile("quick", CONFIGS).insert["cached"]
