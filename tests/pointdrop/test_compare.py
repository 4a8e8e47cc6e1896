"""Compare two of anything: the sides, the verdicts, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.compare import judge
from history.errors import BadSettings
from history.metrics import shipped_metrics
from history.model import TOP_FUNCTIONS, Block, FunctionCost, Measurement, Release
from pointdrop.jobs.arm_values import ArmValues
from pointdrop.jobs.compare import CompareReport, Function, TestRow, moved_functions
from pointdrop.jobs.compare_views import function_sides, headline, junit, markdown, text_lines
from pointdrop.jobs.comparison_sides import parse_side

METRICS = shipped_metrics()


def row(test: str, verdict: str, direction: str, change: float) -> TestRow:
    return TestRow(
        test=test, group="g", metric="insn/o", verdict=verdict, direction=direction, before=100.0,
        after=100.0 + change, change_pct=change, low_pct=change - 0.2, high_pct=change + 0.2, blocks=2,
        functions=({"name": "pg_mblen", "before": 595_000.0, "after": 0.0},) if direction else (),
    )  # fmt: skip


def report(*rows: TestRow, verdict: str = "DIFFERENT", **values: object) -> CompareReport:
    return CompareReport.model_validate(
        {
            "base": "postgres@18.1", "candidate": "postgres@18.2", "server": "local", "lane": "instructions",
            "profile": "instructions", "verdict": verdict, "rounds": 2, "blocks": 8, "minutes": 1.5, "tests": rows,
            **values,
        }
    )  # fmt: skip


REPORT = report(
    row("scan", "DIFFERENT", "regression", 45.0),
    row("insert", "DIFFERENT", "improvement", -1.4),
    row("point-query", "SAME", "", 0.03),
    row("update", "UNKNOWN", "", 0.4),
)


@pytest.mark.parametrize(
    ("text", "kind", "what", "patch", "config"),
    [
        ("postgres@17.4", "release", "17.4", None, "default"),
        ("postgres@17.4+debian#lz4", "release", "17.4+debian", None, "lz4"),
        ("mysql@8.0.39#bl1_sync0_dw1", "release", "8.0.39", None, "bl1_sync0_dw1"),
        ("postgres@git:REL_17_4", "git", "REL_17_4", None, "default"),
        ("postgres@tree:/src/pg", "tree", "/src/pg", None, "default"),
        ("postgres@tree:/src/pg+a.patch#lz4", "tree", "/src/pg", "a.patch", "lz4"),
        ("postgres@prefix:/opt/pg", "prefix", "/opt/pg", None, "default"),
    ],
)
def test_a_side_is_read_and_written(text: str, kind: str, what: str, patch: str | None, config: str) -> None:
    side = parse_side(text)
    assert (side.kind, side.what, side.config) == (kind, what, config)
    assert side.patch == (Path(patch) if patch else None)
    assert str(side) == text


@pytest.mark.parametrize("text", ["", "17.4", "postgres", "postgres@", "postgres@17.4+fix.patch", "p@x#a b"])
def test_what_names_nothing_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(BadSettings, match=r"DBMS@VERSION|needs a source"):
        parse_side(text)


def test_one_percent_of_instructions_is_seen_with_two_blocks_and_nothing_is_seen_in_noise() -> None:
    assert judge([1000.0, 1001.0], [1010.5, 1011.0], "scan", "insn/o", METRICS).verdict == "DIFFERENT"
    assert judge([1000.0, 1001.0], [1000.4, 1000.9], "scan", "insn/o", METRICS).verdict == "SAME"


def test_a_test_that_writes_needs_a_third_block_to_be_the_same() -> None:
    """As docs/pull-requests.md says."""
    for test, blocks, verdict in (("scan", 2, "SAME"), ("insert", 2, "UNKNOWN"), ("insert", 3, "SAME")):
        assert judge([1000.0] * blocks, [1000.01] * blocks, test, "insn/o", METRICS).verdict == verdict


def test_the_text_says_the_family_first_and_names_functions() -> None:
    lines = text_lines(REPORT)
    assert lines[0] == "DIFFERENT: Of 4 tests 1 slower and 1 faster; most scan, +45.0 % insn/o."
    assert any("pg_mblen  595,000 -> 0 instructions" in line for line in lines)
    assert headline(report(row("scan", "SAME", "", 0.1), verdict="SAME")) == "No test differs."


def test_an_interval_tells_what_lies_inside_the_smallest_change() -> None:
    """±0.19 % is the same within 0.2 %, and ±0.24 % is not: to one decimal both were ±0.2."""
    for low, text in ((-0.19, "[-0.19, +0.20]"), (-0.24, "[-0.24, +0.20]")):
        of = row("scan", "SAME", "", 0.0).model_copy(update={"low_pct": low})
        assert any(text in line for line in text_lines(report(of)))
        assert text in markdown(report(of))


def test_a_test_that_moved_in_two_metrics_is_one_test() -> None:
    both = [row("scan", "DIFFERENT", "regression", 45.0), row("scan", "DIFFERENT", "regression", 44.0)]
    both[1] = both[1].model_copy(update={"metric": "cpu_us/o"})
    assert headline(report(*both, row("insert", "SAME", "", 0.1))).startswith("Of 2 tests 1 slower;")


def test_what_is_not_compared_is_said_in_the_text() -> None:
    warning = "qr100: only one side has qps, so it is not compared"
    assert f"note: {warning}" in text_lines(report(row("scan", "SAME", "", 0.0), warnings=(warning,)))


def test_what_a_limit_left_unsettled_is_not_clear() -> None:
    assert not REPORT.clear and not report(row("scan", "SAME", "", 0.0), stopped="the budget is spent").clear
    assert report(row("scan", "SAME", "", 0.0), row("insert", "DIFFERENT", "improvement", -1.4)).clear


def test_rows_of_a_comparison_have_the_columns_of_its_csv() -> None:
    from pointdrop.cli.compare import COMPARED
    from pointdrop.cli.rows import rows_text

    rows = [row.model_dump() for row in REPORT.tests]
    assert all(set(row) == {*COMPARED, "functions"} for row in rows) and len(rows) == 4
    assert rows_text(rows, "csv", COMPARED).splitlines()[1].startswith("scan,g,insn/o,DIFFERENT,regression,100.0,145.0")


def test_junit_counts_regressions_as_failures() -> None:
    suite = ElementTree.fromstring(junit(REPORT))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "1", "1")
    assert suite.find("testcase[@name='scan']/failure") is not None


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)


@given(st.text(min_size=1, max_size=60))
def test_no_name_breaks_out_of_the_markdown(name: str) -> None:
    hostile = report(row(name, "DIFFERENT", "regression", 3.0), base=name, stopped=name)
    tags = _Tags()
    tags.feed(cmarkgfm.github_flavored_markdown_to_html(markdown(hostile)))
    allowed = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary"}
    assert tags.seen <= allowed


def test_what_only_one_side_has_is_said_and_not_compared() -> None:
    values = ArmValues()
    both, void = [
        Block.model_validate(
            {
                "id": f"s/{number}", "run_id": "s", "number": number, "started": "2026-11-01T00:00:00Z",
                "ended": "2026-11-01T00:10:00Z",
                "measurements": [{"test": test, "metric": metric, "value": 9.0} for test, metric in found],
            }
        )
        for number, found in ((1, [("l.i1", "ips"), ("qr100", "qps")]), (2, [("l.i1", "ips")]))
    ]  # fmt: skip
    values.add(0, both, ("qps", "ips"))
    values.add(1, void, ("qps", "ips"))
    assert list(values.shared()) == [("l.i1", "ips")]
    assert values.alone() == ["qr100: only one side has qps, so it is not compared"]


@pytest.mark.parametrize(
    ("quiet_from", "most_rounds", "budget", "rounds", "verdict", "stopped"),
    [
        (9, 5, 1.0, 2, "UNKNOWN", "no block of both sides counts: foreign load 55 %"),
        (9, 1, 1.0, 1, "UNKNOWN", "no block of both sides counts: foreign load 55 %"),
        (9, 5, 0.0, 1, "UNKNOWN", "the budget of 0 minutes is spent; no block of both sides counts: foreign load 55 %"),
        (2, 5, 1.0, 3, "SAME", ""),
    ],
)  # fmt: skip
def test_a_machine_too_busy_to_measure_gets_another_round_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet_from: int, most_rounds: int, budget: float, rounds: int,
    verdict: str, stopped: str,
) -> None:  # fmt: skip
    """Blocks that do not count are no answer; when they are all there is twice, more of them would not help."""
    from types import SimpleNamespace

    from pointdrop.jobs import compare as job
    from runners.settings import load_benchmark, load_profile, load_server

    configs = Path(__file__).parents[2] / "configs"
    sides = [SimpleNamespace(release=Release(dbms="postgres", version=v, line="18")) for v in ("18.1", "18.2")]
    asked = 0

    def session(plan: object, shelf: object, sink: Callable[..., None], **more: object) -> SimpleNamespace:
        nonlocal asked
        asked += 1
        noisy = {"status": "noisy", "reason": "foreign load 55 %"} if asked < quiet_from else {}
        for number, side in enumerate(4 * sides[:1] + 4 * sides[1:]):
            block = Block.model_validate(
                {
                    "id": f"s/{number}", "run_id": "s", "number": 1 + number, "started": "2026-11-01T00:00:00Z",
                    "ended": "2026-11-01T00:10:00Z",
                    "measurements": [{"test": "l.i1", "metric": "ips", "value": 9000.0 + number % 4}],
                    **(noisy if side is sides[0] else {}),
                }
            )  # fmt: skip
            built = {"compiler": "GCC", "compiler_version": "7.5.0" if side is sides[0] else "8.3.1"}
            sink(None, SimpleNamespace(release=side.release, config="default", toolchain=built), block)
        return SimpleNamespace(warnings=[], skipped={}, stopped="")

    monkeypatch.setattr(job, "run_session", session)
    benchmark = load_benchmark("insert", configs)
    told = job.compare_sides(
        job.ComparisonSetup(
            base=(parse_side("postgres@18.1"), sides[0]),  # type: ignore[arg-type]
            candidate=(parse_side("postgres@18.2"), sides[1]),  # type: ignore[arg-type]
            server=load_server("local", configs),
            benchmark=benchmark,
            tests=benchmark.select(("l.i1",)),
            profile=load_profile("quick", configs),
            metrics=METRICS,
            configs=configs,
            state=tmp_path,
            budget_minutes=budget,
            most_rounds=most_rounds,
            seed=1,
        )
    )
    assert (told.verdict, told.rounds, told.stopped) == (verdict, rounds, stopped) and asked == rounds
    assert "Its builder changed the compiler: GCC 7.5.0 before, GCC 8.3.1 after." in told.warnings


@pytest.mark.parametrize(("blocks", "verdict"), [(1, "UNKNOWN"), (2, "DIFFERENT")])
def test_a_difference_is_told_only_after_two_blocks_of_each_side(blocks: int, verdict: str) -> None:
    """Also when a limit ended it before the second."""
    from types import SimpleNamespace

    from pointdrop.jobs.compare import _report

    values = ArmValues()
    values.newest["scan", "insn/o"] = Measurement(test="scan", group="g", metric="insn/o", value=1.0, better="lower")
    for side, level in enumerate((100.0, 145.0)):
        values.sides[side]["scan", "insn/o"] = [level] * blocks
    named = SimpleNamespace(name="x", lane="instructions")
    job = SimpleNamespace(metrics=METRICS, tests=[SimpleNamespace(name="scan")], base=("a",), candidate=("b",),
                          server=named, profile=named)  # fmt: skip
    told = _report(job, values, 1, 1.0, "", ())  # type: ignore[arg-type]
    assert (told.verdict, told.tests[0].verdict, bool(told.regressions)) == (verdict, verdict, blocks > 1)
    values.sides[1]["scan", "insn/o"] = [0.0] * blocks
    assert _report(job, values, 1, 1.0, "", ()).tests[0].after == 0.0  # type: ignore[arg-type]


def test_a_bound_is_shown_as_one() -> None:
    function = Function(name="md5_calc", before=412.4, after=5000.0, at_most="before")
    assert function_sides(function) == ("≤ 412", "5,000")


def test_a_function_pushed_off_the_end_of_a_full_list_is_not_said_to_be_gone() -> None:
    def moved(before: dict[str, float], after: dict[str, float]) -> list[tuple[str, float, float, str]]:
        sides = (
            [FunctionCost(function=name, insn_per_op=insn) for name, insn in side.items()] for side in (before, after)
        )
        return [(one.name, one.before, one.after, one.at_most) for one in moved_functions(*sides)]

    before = {f"f{number}": 1000.0 - number for number in range(TOP_FUNCTIONS)}
    end = 1000.0 - TOP_FUNCTIONS + 1
    after = {**before, "md5_calc": 5000.0}
    del after[f"f{TOP_FUNCTIONS - 1}"]
    new = ("md5_calc", end, 5000.0, "before")
    assert moved(before, after) == [new]
    assert moved(after, before) == [("md5_calc", 5000.0, end, "after")]
    del after["f0"]
    assert moved(before, {**after, "g": 990.0}) == [
        new,
        ("f0", 1000.0, end + 1, "after"),
        ("g", end, 990.0, "before"),
    ]
