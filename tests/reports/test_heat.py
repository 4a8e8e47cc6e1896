"""The heat table, steps and noise: what the pages draw, from series made by hand."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from history.model import BlockValue, Finding, Move, Point, Series, SeriesKey
from presentation.ordering import by_catalogue, step_order
from presentation.steps import steps
from reports.heat import heat_table, marks_of, overall
from reports.noise import last_aa, noise
from reports.spark import HEIGHT, spark
from reports.views import VIEWS, offered, pick

THROUGHPUT = VIEWS[0]


def series(values: dict[str, list[float]], test: str = "scan", metric: str = "qps", group: str = "range") -> Series:
    return Series(
        key=SeriesKey(
            dbms="mysql", line="8.0", server="small", config="z12a", benchmark="sysbench", test=test, metric=metric
        ),
        group=group,
        better="higher" if metric in ("qps", "ips") else "lower",
        points=tuple(
            Point(
                version=version,
                position=position,
                values=tuple(
                    BlockValue(value=value, block_id=f"{version}-{i}", session_id="s", host="h", epoch="e")
                    for i, value in enumerate(blocks)
                ),
            )
            for position, (version, blocks) in enumerate(values.items())
        ),
    )


def finding(one: Series, release: str, previous: str) -> Finding:
    move = Move(
        key=one.key, before=100, after=90, change_pct=-10, low_pct=-11, high_pct=-9, direction="regression",
        probability=0.99, noise_pct=0.5, mde_pct=1.5,
    )  # fmt: skip
    return Finding(
        key=f"mysql/8.0/{release}/regression", kind="regression", tier="confirmed", dbms="mysql", line="8.0",
        previous=previous, release=release, moves=(move,),
    )  # fmt: skip


def test_cells_are_medians_relative_to_the_base() -> None:
    one = series({"8.0.27": [100, 101, 300], "8.0.28": [95, 96, 97], "8.0.30": [50.5]})
    table = heat_table([one], THROUGHPUT)
    assert table.versions == ("8.0.27", "8.0.28", "8.0.30")
    assert table.rows[0].values == (101, 96, 50.5)
    assert table.rows[0].ratios() == [1.0, 96 / 101, 0.5]
    assert heat_table([one], THROUGHPUT, base="8.0.28").rows[0].ratios()[1] == 1.0


def test_a_test_without_the_base_is_relative_to_its_own_first_and_left_out_of_medians() -> None:
    old = series({"8.0.27": [100], "8.0.28": [90]})
    new = series({"8.0.28": [50], "8.0.30": [40]}, test="hot-points")
    new = new.model_copy(
        update={"points": tuple(p.model_copy(update={"position": p.position + 1}) for p in new.points)}
    )
    table = heat_table([old, new], THROUGHPUT, base="8.0.27")
    rows = {row.test: row for row in table.rows}
    assert rows["hot-points"].ratios() == [None, 1.0, 0.8]
    assert table.groups[0].medians == (1.0, 0.9, None)


def test_groups_and_tests_keep_the_catalogue_order() -> None:
    all_series = [series({"1": [1]}, test=name, group=group) for name, group in
                  (("b10", "writes"), ("b9", "writes"), ("z", "point, part 1"), ("a", ""))]  # fmt: skip
    table = heat_table(all_series, THROUGHPUT, order={"b10": 0, "b9": 1})
    assert [group.name for group in table.groups] == ["point, part 1", "writes", "all tests"]
    assert [row.test for row in table.rows] == ["z", "b10", "b9", "a"]


def test_an_overlong_line_drops_its_oldest_releases() -> None:
    one = series({str(i): [float(i + 1)] for i in range(50)})
    table = heat_table([one], THROUGHPUT, max_cells=20)
    assert (len(table.versions), table.older, table.versions[-1]) == (20, 30, "49")


def test_marks_stand_where_a_finding_moves_that_series_only() -> None:
    one, other = series({"8.0.28": [100], "8.0.30": [90]}), series({"8.0.28": [5], "8.0.30": [5]}, test="insert")
    marks = marks_of([finding(one, "8.0.30", "8.0.28")])
    rows = {row.test: row for row in heat_table([one, other], THROUGHPUT, marks=marks).rows}
    assert list(rows["scan"].marks) == [1]
    assert not rows["insert"].marks


def test_overall_is_the_median_over_all_tests() -> None:
    table = heat_table([series({"1": [10], "2": [r]}, test=f"t{r}") for r in (8, 9, 12)], THROUGHPUT)
    whole = overall(table)
    assert whole is not None
    assert whole.medians == (1.0, 0.9)


def test_throughput_prefers_the_query_rate_of_a_read_write_step() -> None:
    background, queries = series({"1": [100]}, "qr100", "ips"), series({"1": [5000]}, "qr100", "qps")
    assert pick([background, queries], THROUGHPUT) == [queries]


def test_the_fullest_view_comes_first() -> None:
    found = offered([series({"1": [1]}), series({"1": [1], "2": [1]}, metric="insn/o")])
    assert [view.id for view in found] == ["insn", "throughput"]


LEVELS = st.lists(st.lists(st.floats(min_value=1, max_value=1e6), min_size=1, max_size=4), min_size=1, max_size=12)


@given(LEVELS, st.sets(st.integers(min_value=0, max_value=11)))
def test_steps_partition_the_releases_and_hold_their_level(blocks: list[list[float]], cuts: set[int]) -> None:
    one = series({str(i): values for i, values in enumerate(blocks)})
    found = steps(one, {str(cut) for cut in cuts})
    covered = [i for step in found for i in range(step.start, step.end + 1)]
    assert covered == list(range(len(blocks)))
    assert sum(step.blocks for step in found) == sum(len(values) for values in blocks)
    for step in found:
        assert step.start == 0 or str(step.start) in {str(cut) for cut in cuts}
        if step.low is not None and step.high is not None:
            assert step.low <= step.level * (1 + 1e-9)
            assert step.level <= step.high * (1 + 1e-9)


def test_the_interval_is_the_textbook_one() -> None:
    found = steps(series({"1": [100], "2": [102], "3": [98], "4": [50], "5": [51]}), {"4"})
    logs = [math.log(v) for v in (100, 102, 98)]
    mean = sum(logs) / 3
    scatter = sum((x - mean) ** 2 for x in logs) + (math.log(51) - math.log(50)) ** 2 / 2
    half = 3.182446305 * math.sqrt(scatter / 3 / 3)  # t(0.975, 3) of any table
    assert math.isclose(found[0].low or 0, math.exp(mean - half), rel_tol=1e-8)
    assert math.isclose(found[1].level, math.sqrt(50 * 51), rel_tol=1e-12)


def test_one_release_a_stretch_has_no_interval() -> None:
    assert steps(series({"1": [100], "2": [90]}), {"2"})[0].low is None


def test_zeroes_take_arithmetic_means() -> None:
    found = steps(series({"1": [0], "2": [4]}, metric="r/o"), set())
    assert found[0].level == 2


def test_a_step_does_not_inflate_the_noise() -> None:
    quiet = {str(i): [100 * (1.001 if i % 2 else 1.0)] for i in range(12)}
    stepped = {version: [values[0] * (0.8 if int(version) >= 6 else 1)] for version, values in quiet.items()}
    assert abs((noise(series(stepped)).release_pct or 0) - (noise(series(quiet)).release_pct or 0)) < 0.01
    assert noise(series({"1": [1], "2": [2]})).release_pct is None
    assert noise(series({"1": [100, 102]})).block_pct is not None


def test_last_aa_compares_the_last_two_sessions_of_the_control() -> None:
    found = last_aa({"a": (100.0,), "c": (110.0, 111.0, 112.0), "b": (111.0,)}, ["a", "b", "c"])
    assert found is not None
    assert (found.earlier, found.later, found.change_pct, found.blocks) == ("b", "c", 0.0, (1, 3))
    assert last_aa({"a": (100.0,)}, ["a"]) is None


def test_insert_benchmark_steps_run_in_their_order() -> None:
    steps_by_name = ["qp1000", "qr500", "l.i2", "qp100", "l.x", "qr1000", "l.i1", "qr100", "qp500", "l.i0"]
    assert sorted(steps_by_name, key=step_order) == [
        "l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
    ]  # fmt: skip
    assert sorted(["a", "b", "c"], key=by_catalogue({"c": 0, "b": 1})) == ["c", "b", "a"]


@given(st.lists(st.one_of(st.none(), st.floats(min_value=0.01, max_value=100)), max_size=30))
def test_sparklines_stay_in_their_box(ratios: list[float | None]) -> None:
    for pair in spark(ratios).split():
        x, y = (float(part) for part in pair.split(","))
        assert 0 <= x <= 5 * len(ratios)
        assert 0 <= y <= HEIGHT
