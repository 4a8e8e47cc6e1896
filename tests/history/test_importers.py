"""Foreign formats: real captured files give the right figures, damaged ones give a reason and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from history.errors import InvalidRecord
from history.importers import FORMATS, import_any, recognise
from history.importers.figures import About, Figure, records
from history.importers.smalldatum import label
from history.importing import ImportReport, Rejection
from history.store import Store

CAPTURED = Path(__file__).with_name("captured")
ABOUT = About(dbms="postgres", version="17.2", test="point-query")
COMMIT = About(dbms="demo")


def values(store: Store) -> dict[str, dict[str, list[float]]]:
    """Values by `test metric`, then version."""
    found: dict[str, dict[str, list[float]]] = {}
    for one in store.series():
        for point in one.points:
            here = found.setdefault(f"{one.key.test} {one.key.metric}", {})
            here[point.version] = sorted(block.value for block in point.values)
    return found


def put(store: Store, name: str, about: About) -> ImportReport:
    return import_any(store, CAPTURED / name, about)


def write(folder: Path, text: str) -> Path:
    path = folder / "in"
    path.write_text(text)
    return path


@pytest.fixture
def memory() -> Store:
    return Store.open("sqlite://")


CAPTURES = {
    "asv.json": "asv",
    "gobench.txt": "benchstat",
    "otava.csv": "otava",
    "pytest-benchmark.json": "pytest-benchmark",
    "smalldatum.tsv": "smalldatum",
    "smalldatum-configs.txt": "smalldatum",
    "sysbench-cpu.txt": "sysbench",
    "sysbench.json": "sysbench",
    "sysbench.txt": "sysbench",
    "bmf.json": "bmf",
    "github-action-benchmark.json": "github-action-benchmark",
    "github-action-benchmark.js": "github-action-benchmark",
}


@pytest.mark.parametrize(("name", "format_name"), CAPTURES.items())
def test_the_format_is_told_from_the_file(name: str, format_name: str) -> None:
    assert recognise((CAPTURED / name).read_bytes()) == format_name


def test_every_format_has_a_captured_file() -> None:
    assert set(CAPTURES.values()) == set(FORMATS)
    assert set(CAPTURES) == {path.name for path in CAPTURED.iterdir()}


@pytest.mark.parametrize("name", CAPTURES)
def test_twice_is_once(store: Store, name: str) -> None:
    about = ABOUT if name.startswith(("sys", "go", "bmf")) or name.endswith("benchmark.json") else COMMIT
    first, again = put(store, name, about), put(store, name, about)
    assert first.stored, first
    assert first.new["block"] == again.unchanged - first.new["session"] - first.new["run"]
    assert again.new == {}


def test_sysbench_text(memory: Store) -> None:
    put(memory, "sysbench.txt", ABOUT)
    assert values(memory) == {
        "point-query latency_avg": {"17.2": [0.07]},
        "point-query latency_max": {"17.2": [57.4]},
        "point-query latency_p95": {"17.2": [0.02]},
        "point-query qps": {"17.2": [13663.56]},
        "point-query tps": {"17.2": [13663.56]},
    }
    (qps,) = memory.series(metric="qps")
    assert (qps.unit, qps.better, qps.key.line) == ("/s", "higher", "17")
    assert memory.blocks(memory.runs()[0].id)[0].measurements[3].operations == 41095


def test_sysbench_without_sql(memory: Store) -> None:
    put(memory, "sysbench-cpu.txt", ABOUT)
    assert values(memory)["point-query events/s"] == {"17.2": [607.86]}


def test_sysbench_json_keeps_its_seconds(memory: Store) -> None:
    put(memory, "sysbench.json", ABOUT)
    seconds = (13956.19, 12785.83)
    assert values(memory)["point-query qps"] == {"17.2": [sum(seconds) / 2]}
    block = memory.blocks(memory.runs()[0].id)[0]
    assert memory.samples(block.id)["point-query"]["qps"] == seconds


def test_go_benchmarks_are_blocks_by_repetition(memory: Store) -> None:
    put(memory, "gobench.txt", ABOUT)
    found = values(memory)
    assert found["Sort-2 ns/op"] == {"17.2": [46221, 73650, 85580]}
    assert found["Sort-2 sorts/s"] == {"17.2": [11685, 13578, 21636]}
    (rate,) = memory.series(metric="MB/s")
    assert rate.better == "higher"


def test_pytest_benchmark(memory: Store) -> None:
    report = put(memory, "pytest-benchmark.json", COMMIT)
    assert "give --release" in report.rejected[0].reason, "the tree had no commit"
    put(memory, "pytest-benchmark.json", ABOUT)
    captured = json.loads((CAPTURED / "pytest-benchmark.json").read_text())
    expected = {f"{one['fullname']} time": {"17.2": [one["stats"]["median"]]} for one in captured["benchmarks"]}
    assert values(memory) == expected


def test_asv_leaves_out_what_was_skipped(memory: Store) -> None:
    put(memory, "asv.json", COMMIT)
    version = "20261121.102233+8c38be22a0"
    assert values(memory) == {
        "b.Suite.time_sort(10, 'up') time": {version: [2.6289999368600547e-06]},
        "b.Suite.time_sort(1000, 'up') time": {version: [1.0058000043500215e-05]},
        "b.Suite.time_sort(1000, 'down') time": {version: [1.1721000191755593e-05]},
        "b.peakmem_list memory": {version: [36954112]},
        "b.track_size value": {version: [42.5]},
    }
    assert {one.key.line for one in memory.series()} == {"main"}


def test_otava(memory: Store) -> None:
    put(memory, "otava.csv", COMMIT)
    found = values(memory)
    assert list(found["throughput throughput"].values()) == [[61.0], [63.0], [55.0]]
    assert list(found["latency latency"].values()) == [[10.43], [11.0]], "an empty cell is no value"
    (rate,) = memory.series(metric="throughput")
    assert [point.version for point in rate.points] == [
        "20240101.020000+aaa0",
        "20240102.020000+aaa1",
        "20240103.020000+aaa2",
    ]
    assert rate.better == "higher"


def test_bencher_metric_format(memory: Store) -> None:
    put(memory, "bmf.json", ABOUT)
    assert values(memory) == {"point-query qps": {"17.2": [13663.56]}, "point-query latency": {"17.2": [0.07]}}


def test_github_action_benchmark(memory: Store) -> None:
    put(memory, "github-action-benchmark.json", ABOUT)
    assert values(memory) == {"point-query qps": {"17.2": [13663.56]}}
    put(memory, "github-action-benchmark.js", COMMIT)
    (rate,) = memory.series(dbms="demo")
    assert (rate.key.benchmark, rate.better, rate.key.line) == ("Suite", "higher", "main")
    assert [block.value for point in rate.points for block in point.values] == [100.5, 90.25]


def test_small_datum_tables(memory: Store) -> None:
    put(memory, "smalldatum.tsv", COMMIT)
    found = values(memory)
    assert found["update-index.range100 qps"]["10.2.44"] == [2268.0]
    assert found["update-index.range100 cpu/o"]["11.4.1"] == [0.006733]
    assert len([one for one in memory.series() if one.key.line != "majors"]) == 84, "2 tests, 7 releases, 6 metrics"
    put(memory, "smalldatum-configs.txt", COMMIT)
    keys = {one.key for one in memory.series(dbms="postgres", test="update-index")}
    assert {(key.line, key.config, key.metric) for key in keys} == {("17", "sync0_comp0_fpi0", "qps")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.ma101107_rel.z11a_bee.pk1", ("mariadb", "10.11.7", "z11a_bee")),
        ("my8036_rel.cz10a_bee", ("mysql", "8.0.36", "cz10a_bee")),
        ("my5651_rel.cz10a_bee", ("mysql", "5.6.51", "cz10a_bee")),
        ("fbmy8028_rel_221222.cza1_bee", ("myrocks", "8.0.28", "cza1_bee")),
        ("pg162_def.cx9a2a_bee", ("postgres", "16.2", "cx9a2a_bee")),
        ("pg17rc1 sync0_comp0_fpi0", ("postgres", "17rc1", "sync0_comp0_fpi0")),
    ],
)
def test_labels(text: str, expected: tuple[str, str, str]) -> None:
    assert label(text) == expected


ASV = '{"version": 2, "date": 1, "commit_hash": "a", "result_columns": ["result", "params"], "results": {"b": %s}}'
OTAVA = "time,commit,version,throughput\n"


@pytest.mark.parametrize(
    ("format_name", "text", "line", "reason"),
    [
        ("sysbench", "sysbench 1.0.20\nRunning the test", 0, "did not finish"),
        ("sysbench", (CAPTURED / "sysbench.txt").read_text() * 2, 0, "more than one run"),
        ("sysbench", "sysbench 1.0.20\n    events per second:  1.2.3\n", 0, "did not finish"),
        ("sysbench", f"sysbench 1.0.20\n    queries: {'9' * 5000} (7.0 per sec.)\n", 0, "did not finish"),
        ("sysbench", '[{"tps": 1}]', 1, "report_json"),
        ("sysbench", "[]", 1, "no entries"),
        ("otava", OTAVA + "yesterday,a,17.1,5\n", 2, "no time"),
        ("otava", OTAVA + "2026-01-05,a,17.1,fast\n", 2, "no number"),
        ("otava", OTAVA + "2026-01-05,a,17.1,nan\n", 2, "not finite"),
        ("otava", OTAVA + "2026-01-05,a,17.1\n", 2, "3 cells"),
        ("otava", OTAVA + "999999999999999,a,17.1,5\n", 2, "out of range"),
        ("otava", OTAVA + "²,a,17.1,5\n", 2, "²"),
        ("otava", OTAVA + "0001-01-01T00:00:00+23:00,a,17.1,5\n", 2, "years 1 to 9999"),
        ("otava", "when,throughput\n", 1, "`time` first"),
        ("otava", "time,a,a\n", 1, "each once"),
        ("bmf", '{"a": {"b": {"value": NaN}}}', 1, "Bencher"),
        ("bmf", '{"a": {"b": {"value": "1"}}}', 1, "Bencher"),
        ("bmf", '{"a": 7}', 1, "Bencher"),
        ("github-action-benchmark", '[{"name": "a", "unit": "s"}]', 1, "github-action-benchmark"),
        ("github-action-benchmark", '{"entries": {"S": [{"commit": {"id": "a"}, "date": 1000000000000000000, '
                                    '"benches": []}]}}', 1, "the date 1000000000000000000"),
        ("asv", '{"version": 1}', 1, "format 2"),
        ("asv", '{"version": 2, "date": 1, "commit_hash": "a", "result_columns": ["result", "params"], '
                '"results": {"b": [[1, 2], []]}}', 1, "2 values for 1"),
        ("asv", ASV % f"[[1], {json.dumps([['x'] * 1000] * 9)}]", 1, "1 values for 1" + "000" * 9),
        ("asv", ASV % f"[[{10**400}], []]", 1, "too large"),
        ("asv", "[" * 100_000, 1, "asv"),
        ("benchstat", "BenchmarkA x 7 ns/op\n", 1, "NAME ITERATIONS"),
        ("benchstat", "BenchmarkA 7 7\n", 1, "NAME ITERATIONS"),
        ("benchstat", "BenchmarkA ² 7 ns/op\n", 1, "NAME ITERATIONS"),
        ("benchstat", f"BenchmarkA {'9' * 5000} 7 ns/op\n", 1, "NAME ITERATIONS"),
        ("benchstat", "BenchmarkA 7 fast ns/op\n", 1, "no number"),
        ("pytest-benchmark", '{"machine_info": {}}', 1, "pytest-benchmark"),
        ("pytest-benchmark", '{"datetime": "0001-01-01T00:00:00+23:00", "commit_info": {"id": "abc"}, '
                             '"benchmarks": []}', 1, "years 1 to 9999"),
        ("smalldatum", "a b dbms\n1 2 nothing\n", 2, "no label"),
        ("smalldatum", "a b dbms\n1 x my8030\n", 2, "no number"),
        ("smalldatum", "nothing here\n", 0, "no figures"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_for_certain_is_told_and_nothing_stored(
    memory: Store, tmp_path: Path, format_name: str, text: str, line: int, reason: str
) -> None:
    report = import_any(memory, write(tmp_path, text), ABOUT, format_name)
    assert not report.stored
    assert reason in report.rejected[0].reason, report
    assert line in (0, report.rejected[0].line)
    assert memory.sessions() == []


def test_a_file_of_no_known_format_names_those_that_are(memory: Store, tmp_path: Path) -> None:
    report = import_any(memory, write(tmp_path, "dear diary"), ABOUT)
    assert "name it with --from" in report.rejected[0].reason
    report = import_any(memory, write(tmp_path, "x"), ABOUT, "excel")
    assert "no format excel" in report.rejected[0].reason


def test_what_the_file_does_not_say_has_to_be_told(memory: Store) -> None:
    assert "--dbms" in put(memory, "gobench.txt", About(dbms="")).rejected[0].reason
    assert "--release" in put(memory, "gobench.txt", About(dbms="demo")).rejected[0].reason
    assert "--test" in put(memory, "sysbench.txt", About(dbms="demo", version="1.2")).rejected[0].reason


def test_the_same_measurement_again_needs_a_label(memory: Store, tmp_path: Path) -> None:
    put(memory, "sysbench.txt", ABOUT)
    again = write(tmp_path, (CAPTURED / "sysbench.txt").read_text().replace("13663.56", "13700.00"))
    assert "other contents" in import_any(memory, again, ABOUT).rejected[0].reason
    about = About(dbms="postgres", version="17.2", test="point-query", label="second")
    assert import_any(memory, again, about).stored
    assert values(memory)["point-query qps"] == {"17.2": [13663.56, 13700.0]}


def test_a_direction_can_be_told(memory: Store) -> None:
    put(memory, "bmf.json", About(dbms="demo", version="1.2", better={"qps": "lower"}))
    assert next(memory.series(metric="qps")).better == "lower"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(CAPTURES)),
    st.floats(0, 1),
    st.sampled_from([b"", b"\0", b"NaN", b"\xff", b"]", b"}", b"\n", b",", b"-", b"1e999", b"[[[["]),
    st.integers(0, 40),
)
@pytest.mark.parametrize("format_name", FORMATS)
def test_no_damage_gets_past_an_importer(format_name: str, name: str, where: float, put_in: bytes, cut: int) -> None:
    """Any file in any format gives figures and reasons, and no other error."""
    content = (CAPTURED / name).read_bytes()
    at = int(where * len(content))
    damaged = content[:at] + put_in + content[at + cut :]
    try:
        parsed = list(FORMATS[format_name].parse(damaged, ABOUT))
    except InvalidRecord as error:
        assert "UTF-8" in str(error)
        return
    for one in parsed:
        assert isinstance(one, Figure | Rejection)
    for line in records(format_name, parsed, ABOUT):
        assert (line.record is None) == bool(line.reason)


def test_moments_without_a_zone_are_utc() -> None:
    from history.importers.otava import moment

    assert moment("2026-01-05") == moment("1767571200") == datetime(2026, 1, 5, tzinfo=UTC)
    assert moment("2024.01.01 3:00:00 +0100") == datetime(2024, 1, 1, 2, tzinfo=UTC)
