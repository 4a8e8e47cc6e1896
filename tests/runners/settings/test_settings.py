"""The committed files load, say what the published studies say, and a bad file is refused with file, key and remedy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from history.errors import BadSettings
from history.metrics import load_metrics
from history.settings import read_toml
from runners.settings import Benchmark, adapted, load_benchmark, load_plan, load_profile, load_server
from runners.settings.benchmarks import settled_parts

CONFIGS = Path(__file__).parents[3] / "configs"
SERVERS = sorted(path.stem for path in (CONFIGS / "servers").glob("*.toml"))
PLANS = sorted(path.stem for path in (CONFIGS / "plans").glob("*.toml"))


@pytest.fixture(scope="module")
def sysbench() -> Benchmark:
    return load_benchmark("sysbench", CONFIGS)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SERVERS)
def test_every_server_loads_and_is_named_like_its_file(name: str) -> None:
    assert load_server(name, CONFIGS).name == name


def test_small_and_medium_are_the_published_scales() -> None:
    small, medium = load_server("small", CONFIGS), load_server("medium", CONFIGS)
    assert (small.threads, small.tables, small.rows) == (1, 1, 50_000_000)
    assert (medium.threads, medium.tables, medium.rows) == (12, 8, 10_000_000)


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_loads_with_all_it_names(name: str) -> None:
    assert load_plan(name, CONFIGS).name == name


def test_a_plan_can_be_made_smaller_from_the_command_line() -> None:
    plan = load_plan("mysql-8.0", CONFIGS)
    small = adapted(
        plan, CONFIGS, lines=["5.6", "9.7"], tests="insert.range100,delete.range100", profile="quick", blocks=1
    )
    [measure] = small.measure
    assert (measure.lines, measure.tests, measure.lane, measure.blocks) == (
        ("5.6", "9.7"), ("insert.range100", "delete.range100"), "time", 1
    )  # fmt: skip
    assert adapted(plan, CONFIGS, tests="local").measure[0].tests == "local"
    assert adapted(plan, CONFIGS) is plan


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tests": "inserts"}, "no test inserts"),
        ({"profile": "quik"}, "no profile 'quik'"),
        ({"profile": "instructions"}, "nothing in it is of the instructions lane"),
    ],
)
def test_what_a_plan_cannot_become_is_refused(change: dict[str, str], words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        adapted(load_plan("config-matrix", CONFIGS), CONFIGS, **change)  # type: ignore[arg-type] # one string each


@pytest.mark.parametrize("name", sorted(read_toml(CONFIGS / "profiles.toml")))
def test_every_profile_loads(name: str) -> None:
    assert load_profile(name, CONFIGS).name == name


def test_the_full_profile_is_the_published_one() -> None:
    full = load_profile("full", CONFIGS)
    assert (full.read_s, full.write_s) == (300, 600)


def test_sets_have_the_published_sizes_and_groups(sysbench: Benchmark) -> None:
    groups = Counter(test.group for test in sysbench.select("42") if test.reported)
    assert groups == {"point, part 1": 11, "point, part 2": 6, "range, part 1": 9, "range, part 2": 6, "writes": 10}
    assert sum(test.reported for test in sysbench.select("32")) == 32
    assert len({test.group for test in sysbench.select("local")}) == 5


def test_the_32_set_has_no_reads_before_writes_and_five_more_read_only_tests(sysbench: Benchmark) -> None:
    only_32 = {test.name for test in sysbench.select("32")} - {test.name for test in sysbench.select("42")}
    assert only_32 == {f"read-only-{kind}.range1000" for kind in ("simple", "sum", "order", "distinct", "count")}
    assert not [test.name for test in sysbench.select("32") if test.phase == "pre"]


def test_insert_is_last_and_postwrite_follows_the_last_write_before_the_reads(sysbench: Benchmark) -> None:
    assert sysbench.tests[-1].name == "insert.range100"
    assert [part[-1].name for part in settled_parts(sysbench.select("42"))] == [
        "point-query.warm.range100",
        "read-write.range100",
        "insert.range100",
    ]
    assert [len(part) for part in settled_parts(sysbench.select("local"))] == [1, 7]


def test_every_family_has_its_script(sysbench: Benchmark) -> None:
    scripts = Path(__file__).parents[3] / "runners" / "sysbench" / "lua"
    assert not [test.script for test in sysbench.tests if not (scripts / f"{test.script}.lua").is_file()]


def test_selecting_keeps_run_order_and_names_what_is_missing(sysbench: Benchmark) -> None:
    wanted = ("insert.range100", "scan.range100")
    assert [test.name for test in sysbench.select(wanted)] == ["scan.range100", "insert.range100"]
    with pytest.raises(BadSettings, match=r"no test skan\.range100; there are: .*scan\.range100"):
        sysbench.select(("skan.range100",))
    with pytest.raises(BadSettings, match="no set '43'; there are: 42, 32, local, all"):
        sysbench.select("43")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'name = "x"\nthreads = 0\ntables = 1\nrows = 1000\npool_mib = 64\nlog_mib = 64',
            r"threads: .*equal to 1 \(got 0\)",
        ),
        ('name = "x"\nthread = 1', r"thread: unknown key; allowed: .*cores, .*labels, .*threads"),
        ('name = "x"\nthreads = 1', r"rows: missing"),
        ("name = ", r"not TOML: Invalid value"),
    ],
)
def test_a_bad_server_names_file_key_and_what_is_allowed(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, "x.toml", text)
    with pytest.raises(BadSettings, match=message) as caught:
        load_server(path, CONFIGS)
    assert str(path) in str(caught.value)


MEASURE = 'name = "p"\nservers = ["local"]\n[[measure]]\ndbms = "postgres"\nprofile = "quick"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MEASURE + 'profil = "x"', r"measure\.0\.profil: unknown key; allowed: backfill, benchmark"),
        (MEASURE + 'lane = "cpu"', r"measure\.0\.lane: Input should be 'time' or 'instructions' \(got 'cpu'\)"),
        (MEASURE + 'lane = "instructions"', r"measure\.0\.profile: quick is of the time lane"),
        (MEASURE + 'tests = "41"', r"measure\.0: benchmark sysbench: no set '41'"),
        (MEASURE + 'lines = ["17"]\nsupported_lines = true', r"supported_lines chooses lines, which lines or versions"),
        (MEASURE + 'lines = ["17"]\nversions = ["17.2"]', r"only one of lines, newest_lines and versions"),
        (MEASURE.replace('"local"', '"lokal"'), r"servers/lokal\.toml: no such file; there are: local, medium, small"),
        (MEASURE.replace('"quick"', '"quik"'), r"no profile 'quik'; there are: full, instructions, quick, standard"),
        (
            MEASURE + 'configs = ["sync9"]',
            r"measure\.0\.configs: postgres has no config sync9; there are: base, default",
        ),
        (MEASURE.replace("postgres", "oracle"), r"measure\.0\.dbms: Input should be 'postgres'"),
    ],
)
def test_a_bad_plan_names_file_key_and_what_is_allowed(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        load_plan(write(tmp_path, "p.toml", text), CONFIGS)


def test_an_unknown_plan_lists_the_plans() -> None:
    with pytest.raises(BadSettings, match=r"no such file; there are: .*local.*nightly"):
        load_plan("nightli", CONFIGS)


def test_a_doubled_test_is_refused(tmp_path: Path) -> None:
    test = (
        '[[test]]\nname = "t"\ngroup = "g"\nscript = "scan"\nsql = "s"\nphase = "post"\nkind = "read"\n'
        "counted_events = 1\n"
    )
    with pytest.raises(BadSettings, match="named twice: t"):
        load_benchmark(write(tmp_path, "b.toml", 'name = "b"\ndriver = "sysbench"\n' + test * 2), CONFIGS)


def test_what_is_wrong_with_one_of_many_tables_names_the_table(tmp_path: Path) -> None:
    (tmp_path / "metrics.toml").write_text("qps = 1\n")
    with pytest.raises(BadSettings, match=r"metrics\.toml: qps: a table \[qps\] is wanted here \(got 1\)"):
        load_metrics(tmp_path)
    (tmp_path / "profiles.toml").write_text('[quick]\nlane = "gpu"\n')
    with pytest.raises(BadSettings, match=r"profiles\.toml: quick\.lane: Input should be 'time' or 'instructions'"):
        load_profile("quick", tmp_path)
