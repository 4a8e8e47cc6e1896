"""The text of an issue: golden files by scenario, every required field, the budget, and hostile names."""

from __future__ import annotations

import re
from pathlib import Path

import cmarkgfm
import html5lib
import pytest
from alerts.words import beside_in_words, headline
from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.collective_issues import Listed, digest_draft
from alerts.context import Context, context_of
from alerts.errors import IncompleteIssue
from alerts.issue_updates import news, told
from alerts.render import BODY_BUDGET, REQUIRED, Section, address, render, slug, within_budget
from alerts.safetext import Markdown
from alerts.settings import AlertSettings, Links
from alerts.subject import Subject, subjects
from alerts.trackers import Draft
from history.model import Finding, FunctionChange, GroupSummary, Series, SeriesKey
from pointdrop.jobs.room_settings import measurable
from presentation.commands import Measurable
from tests.alerts.examples import (
    field_series,
    finding,
    group_summaries,
    history_of,
    move,
    series,
    series_key,
    step,
)
from tests.alerts.test_safetext import GITHUB_LINKS, HOSTILE, outside_code

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
SETTINGS = AlertSettings()
CHANGES = {"point-query": 3.1, "hot-points": 4.9, "range-covered": 1.2}
#: A test and the one server it moved on.
PLACES = (("point-query", "local"), ("insert", "medium"))


def issue(
    one: Finding,
    *more: Finding,
    history: list[Series] | None = None,
    settings: AlertSettings = SETTINGS,
    can: Measurable | None = None,
) -> Draft:
    (subject,) = subjects([one, *more], settings.filing.kinds)
    known = history if history is not None else [*history_of(one), *field_series("hot-points")]
    return render(subject, context_of(one, known, settings.text), settings, can=can)


def throughput_finding() -> Finding:
    """The time lane: QPS down, CPU up, one release withdrawn in between."""
    moves = []
    for test, percent in {"point-query": -5.6, "range-covered": -12.5, "update-index": -2.6, "insert": -4.0}.items():
        moves.append(
            move(series_key(test, "qps", dbms="mysql", line="8.0", server="small"), 20_000.0, percent, better="higher")
        )
        moves.append(move(series_key(test, "cpu/o", dbms="mysql", line="8.0", server="small"), 0.0006, -percent * 1.02))
    base = finding("8.0.30", "8.0.28", dbms="mysql", line="8.0", unmeasured=("8.0.29",), functions=False, plans=False)
    return base.model_copy(update={"moves": tuple(moves), "groups": group_summaries(moves)})


def published_finding() -> Finding:
    """Figures of a server that nobody has here, with a test that the catalogue has by no such name."""
    moves = [
        move(SeriesKey.parse(f"mysql|8.0|ser4|cy10a_bee|insert|{test}|cpupq"), 150.0, percent)
        for test, percent in {"l.i1": 13.0, "q100.1": 9.1, "l.i0": 3.0}.items()
    ]
    base = finding("8.0.30", "8.0.28", dbms="mysql", line="8.0", functions=False, plans=False)
    quiet = GroupSummary(
        server="ser4", metric="cpupq", group="index", moved=0, tests=2, median_pct=0.0, worst_pct=0.0, worst_test=""
    )
    return base.model_copy(update={"moves": tuple(moves), "groups": (*group_summaries(moves, 1), quiet)})


MYSQL = ("8.0.26", "8.0.27", "8.0.28", "8.0.30", "8.0.31")


def mysql_history(one: Finding, session: str = "s") -> list[Series]:
    found = [series(m.key, step(m.before, m.change_pct, 3, MYSQL), MYSQL) for m in one.moves]
    return [
        one.model_copy(
            update={
                "points": tuple(
                    point.model_copy(update={"values": tuple(v._replace(session_id=session) for v in point.values)})
                    for point in one.points
                )
            }
        )
        for one in found
    ]


SCENARIOS: dict[str, Draft] = {
    "regression-instructions": issue(finding(changes=CHANGES)),
    "regression-with-improvement": issue(
        finding(changes=CHANGES), finding(kind="improvement", changes={"insert": 7.0})
    ),
    "regression-throughput": issue(throughput_finding(), history=mysql_history(throughput_finding())),
    "published": issue(
        published_finding(),
        history=mysql_history(published_finding(), "smalldatum/2023-08-07/ser4/cpu-bound"),
        can=measurable(ROOT / "configs"),
    ),
    "drift": issue(finding("17.6", "17.0", kind="drift", changes=CHANGES, functions=False, plans=False)),
    "environment": issue(finding(kind="environment", changes=CHANGES, functions=False, plans=False)),
    "majors": issue(finding("17.5", "17.4", line="majors", changes=CHANGES, functions=False, plans=False)),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_golden(name: str) -> None:
    draft = SCENARIOS[name]
    text = f"{draft.title}\n{', '.join(sorted(draft.labels))}\n\n{draft.body}\n"
    path = GOLDEN / f"{name}.md"
    assert path.exists() and text == path.read_text(), f"run `python -m tests.alerts.test_render` if {name} is right"


def test_every_section_is_there() -> None:
    body = SCENARIOS["regression-instructions"].body
    for part in [
        "<!-- pointdrop:v1 key=postgres/17/17.5/regression -->",
        "need **3.1 % more instructions** per operation than on `17.4`",
        "3 of 22 tests",
        "| server | metric | group | tests moved | median | worst |",
        "▁▁▁▁▁|██",
        "**Evidence**",
        "4 of 4 blocks of 17.5",
        "`17.4` is the last measured release at the old level",
        "https://github.com/postgres/postgres/compare/REL_17_4...REL_17_5",
        "`ExecInterpExpr` | 2,100 | 2,950 | +850",
        "Seq Scan on sbtest1",
        "cpu/o    cs/o    r/o     rKB/o   wKB/o   o/s     dbms",
        "--- relative to first result",
        "1.04     1.02    1       inf",
        "**Instructions per operation**",
        "pointdrop compare postgres@17.4 postgres@17.5",
        "findings/postgres/17/17.5/regression.html",
        "`/snooze N`",
    ]:
        assert part in body, part


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"moves": ()}, "moves"),
        ({"groups": ()}, "groups"),
        ({"evidence": ()}, "evidence"),
        ({"evidence": ("  ",)}, "evidence"),
        ({"release": "17.9"}, "a result of 17.9"),
        ({"previous": "17.8"}, "a result of 17.8"),
    ],
)
def test_a_missing_value_refuses_to_file(change: dict[str, object], missing: str) -> None:
    one = finding(changes=CHANGES)
    with pytest.raises(IncompleteIssue, match=re.escape(missing)) as raised:
        hole = one.model_copy(update=change)
        (subject,) = subjects([hole], SETTINGS.filing.kinds)
        render(subject, context_of(hole, history_of(one), SETTINGS.text), SETTINGS)
    assert raised.value.exit_code == 4


def test_groups_of_another_metric_are_no_headline() -> None:
    one = finding(changes=CHANGES)
    groups = tuple(group.model_copy(update={"metric": "qps"}) for group in one.groups)
    with pytest.raises(IncompleteIssue, match="headline"):
        issue(one.model_copy(update={"groups": groups}))


def test_no_history_refuses_to_file() -> None:
    one = finding(changes=CHANGES)
    subject = Subject(key=one.key, finding=one)
    with pytest.raises(IncompleteIssue, match="levels of the moved tests"):
        render(subject, Context(releases=("17.4", "17.5"), moved=()), SETTINGS)


def test_what_was_not_measured_has_no_section() -> None:
    one = finding(changes=CHANGES, functions=False, plans=False)
    body = issue(one, history=history_of(one)).body
    for heading in ("Functions whose", "Plans that changed", "cpu/o", "Better at the same"):
        assert heading not in body


def test_a_published_site_is_linked() -> None:
    settings = AlertSettings(links=Links(site="https://perf.example.org/pg/"))
    body = issue(finding(changes=CHANGES), settings=settings).body
    assert "<https://perf.example.org/pg/findings/postgres/17/17.5/regression.html>" in body


def test_the_budget_cuts_whole_sections_and_names_them() -> None:
    functions = tuple(
        FunctionChange(test="t" * 180, function=f"f{n}" + "x" * 180, before=1.0, after=float(n)) for n in range(400)
    )
    settings = AlertSettings.model_validate({"text": {"functions": 400}})
    one = finding(changes=CHANGES).model_copy(update={"functions": functions})
    draft = issue(one, settings=settings)
    assert len(draft.body.encode()) <= BODY_BUDGET
    assert "Functions whose" not in draft.body and "size of an issue" in draft.body
    assert "**Repeat it**" in draft.body


@given(st.lists(st.tuples(st.text(max_size=300), st.integers(0, 99)), max_size=12), st.integers(400, 3000))
def test_never_over_budget_and_never_half_a_section(parts: list[tuple[str, int]], budget: int) -> None:
    sections = [
        Section("head", Markdown("head"), REQUIRED),
        *(Section(f"s{n}", Markdown(t), k) for n, (t, k) in enumerate(parts)),
    ]
    text = within_budget(sections, budget)
    assert len(text.encode()) <= budget
    dropped = [s for s in sections if s.text and s.text not in text]
    kept = [s for s in sections if s.text and s.text in text]
    assert all(s.keep < REQUIRED for s in dropped)
    assert not dropped or min((k.keep for k in kept), default=100) >= 0


def test_sections_that_must_stay_and_do_not_fit_are_a_defect() -> None:
    with pytest.raises(ValueError, match="required sections"):
        within_budget([Section("a", Markdown("x" * 50), REQUIRED)], 10)


@settings(max_examples=60, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_hostile_names_stay_text(test: str, function: str, sentence: str) -> None:
    """Whoever names a test or a function cannot mention, link, reference or draw anything."""
    name = test[:150] or "t"
    key = SeriesKey(
        dbms="postgres", line="17", server="local", config="c`|", benchmark="sysbench", test=name, metric="insn/o"
    )
    one_move = move(key, 1000.0, 3.0).model_copy(update={"group": name})
    one = finding().model_copy(
        update={
            "moves": (one_move,),
            "groups": group_summaries([one_move]),
            "functions": (FunctionChange(test=name, function=function, before=1.0, after=2.0),),
            "evidence": (sentence + " x",),
            "plans": (),
            "warnings": (sentence,),
        }
    )
    draft = issue(one, history=history_of(one))
    assert not re.search(r"[@#`<>\n]", draft.title)
    ours = draft.body.replace("https://github.com/postgres/postgres/compare/REL_17_4...REL_17_5", "")
    html = cmarkgfm.github_flavored_markdown_to_html(ours)
    tags = {
        element.tag
        for element in html5lib.parseFragment(html, namespaceHTMLElements=False).iter()
        if isinstance(element.tag, str)
    }
    assert tags <= {
        "DOCUMENT_FRAGMENT", "p", "strong", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "ul", "li",
    }, tags  # fmt: skip
    # What remains outside code is our own words; the fences are code as well.
    prose = re.sub(r"<pre>.*?</pre>", "", outside_code(ours), flags=re.DOTALL)
    assert not GITHUB_LINKS.search(re.sub(r"[0-9,.]+", "", prose)), prose


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("mysql/8.0/8.0.30/regression", "mysql/8.0/8.0.30/regression"),
        ("a b/../x", "a~20b/~2e~2e/x"),
    ],
)
def test_addresses_are_those_of_the_site(key: str, expected: str) -> None:
    from presentation.addresses import of_finding

    assert address(key) == expected
    assert of_finding(key) == f"findings/{expected}.html"


def test_slugs_are_file_names() -> None:
    assert slug("mysql/8.0/8.0.30/regression") == "mysql-8.0-8.0.30-regression"
    assert slug("../../etc/passwd") == "etc-passwd"


def test_the_repeat_command_is_one_that_pointdrop_takes() -> None:
    import shlex

    from pointdrop.cli.main import command_tree

    for name, draft in SCENARIOS.items():
        for line in re.findall(r"```sh\n(.*?)```", draft.body, re.DOTALL)[-1].splitlines():
            program, verb, *words = shlex.split(line)
            command = command_tree().get_command(None, verb)  # type: ignore[attr-defined]
            context = command.make_context(verb, list(words))
            assert program == "pointdrop" and context.params["base"].partition("@")[0] in ("postgres", "mysql")
            timed = "mysql" in draft.title or name == "published"
            assert context.params["lane"] == ("time" if timed else "instructions")


def test_what_nobody_here_can_measure_is_shown_again_and_not_repeated() -> None:
    """Published figures, of a server that no configuration has: every command is one that works."""
    import shlex

    from pointdrop.cli.main import command_tree

    body = SCENARIOS["published"].body
    can = measurable(ROOT / "configs")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", body, re.DOTALL) for line in block.splitlines()]
    asked = {}
    for line in lines:
        _, verb, *words = shlex.split(line)
        command = command_tree().get_command(None, verb)  # type: ignore[attr-defined]
        asked[verb] = command.make_context(verb, list(words)).params
    assert asked["replay"]["dataset"] == asked["explain"]["dataset"] == "smalldatum"
    assert SeriesKey.parse(asked["explain"]["series"]).server == "ser4"
    assert asked["compare"]["server"] in can.servers
    assert set(asked["compare"]["tests"].split(",")) <= set(can.tests[asked["compare"]["benchmark"]])
    assert "`/status`" in body and "`/rerun`" not in body and "`/bisect`" not in body
    assert "`8.0.29` between them is not in the history" in body


def test_what_can_be_measured_is_repeated_though_a_larger_move_cannot() -> None:
    """A test that was renamed since: the command must not name it, and the footer must not contradict the command."""
    made = finding(changes=dict(zip(CHANGES, (45.0, 31.0), strict=False)))
    key = min(made.moves, key=lambda move: move.change_pct).key
    can = Measurable(
        servers=frozenset({key.server}),
        configs=frozenset({(key.dbms, key.config)}),
        tests={key.benchmark: (key.test,)},
    )
    body = issue(made, can=can).body
    (command,) = re.findall(r"```sh\n(pointdrop compare .*)\n```", body)
    assert command.endswith(f"--tests {key.test}")
    assert "`/rerun`" in body and "Nothing that is configured" not in body


def test_titles_say_what_where_how_much() -> None:
    assert SCENARIOS["regression-throughput"].title == (
        "mysql 8.0.30: writes, point queries and range queries 4.8 % less QPS (4 of 33 tests, small)"
    )


def test_few_tests_far_apart_are_not_told_by_their_median() -> None:
    some = dict(zip(CHANGES, (45.0, 1.1), strict=False))
    body = issue(finding(changes=some)).body
    assert "need **1.1 to 45 % more instructions** per operation" in body
    assert "(2 of 11 tests on `local`; " in body and "median of" not in body.partition("\n\n")[0]


def test_nor_are_those_of_another_metric() -> None:
    made = finding(changes=dict(zip(CHANGES, (45.0, 1.1), strict=False)))
    also = tuple(
        move.model_copy(update={"key": move.key.model_copy(update={"metric": "cpu_us/o"})}) for move in made.moves
    )
    both = made.model_copy(update={"moves": (*made.moves, *also)})
    lead = headline(both)
    assert lead is not None
    assert beside_in_words(both, lead).endswith(" per operation +1.1 to +45 % in 2 tests")


def test_both_directions_of_an_environment_shift_are_told_with_their_signs() -> None:
    one = finding(kind="environment", changes={"point-query": 12.0, "hot-points": -3.0, "insert": -4.0})
    draft = issue(one)
    assert draft.title == (
        "local: instructions per operation −4.0 to +12 % at postgres 17.5, not the product (3 of 22 tests, local)"
    )
    assert "instructions per operation of the tests changed by **−4.0 to +12 %** since" in draft.body


def test_another_test_on_each_server_is_not_the_only_one() -> None:
    first, second = (finding(changes={test: 5.0}, servers=(server,)) for test, server in PLACES)
    one = first.model_copy(update={"moves": (*first.moves, *second.moves), "groups": (*first.groups, *second.groups)})
    assert "the only one" not in issue(one).body
    assert "the only one of 11 tests that moved on `local`" in issue(first).body


def test_a_test_that_moved_the_other_way_is_not_counted_in_the_headline() -> None:
    one = finding(changes={"point-query": 5.0, "hot-points": 4.0, "insert": 3.0})
    better = one.moves[-1].model_copy(update={"change_pct": -3.0, "direction": "improvement"})
    lead = headline(one.model_copy(update={"moves": (*one.moves[:-1], better)}))
    assert lead is not None
    assert (lead.moved, lead.change_pct, lead.groups) == (2, 4.5, ("point queries",))


def test_another_newest_release_of_a_line_is_no_news_on_majors() -> None:
    """The boundary of two lines stays where it is while both get point releases."""

    def said(release: str, previous: str, line: str) -> dict[str, object]:
        one = finding(release, previous, line=line)
        lead = headline(one)
        assert lead is not None
        return told(one, lead, "title")

    before = said("18.3", "17.8", "majors")
    assert news(before, said("18.4", "17.9", "majors")) == []
    assert (
        news({name: value for name, value in before.items() if name != "lines"}, said("18.4", "17.9", "majors")) == []
    )
    assert "between 16.9 and 18.4" in news(before, said("18.4", "16.9", "majors"))[0]
    assert "between 17.3 and 17.4" in news(said("17.5", "17.3", "17"), said("17.4", "17.3", "17"))[0]


def test_a_digest_says_how_many_there_are_and_fits() -> None:
    rows = [Listed(f"postgres/17/17.{n}/regression", "é" * 199) for n in range(350)]
    draft = digest_draft("digest/2026-11-21", "2026-11-21", rows, AlertSettings())
    shown = draft.body.count("/regression` |")
    assert len(draft.body.encode()) <= BODY_BUDGET and 100 < shown < 300
    assert draft.title.startswith("350 more findings") and "350 more findings of" in draft.body
    assert f"There is room for {shown} of them" in draft.body


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for scenario, made in SCENARIOS.items():
        text = f"{made.title}\n{', '.join(sorted(made.labels))}\n\n{made.body}\n"
        (GOLDEN / f"{scenario}.md").write_text(text)
