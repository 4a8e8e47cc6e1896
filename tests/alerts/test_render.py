"""The text of an issue: golden files by scenario, every required field, the budget, and hostile names."""

from __future__ import annotations

import re
import shlex
from typing import Any
from urllib.parse import unquote

import cmarkgfm
import html5lib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.collective_issues import Listed, digest_draft
from alerts.context import Context, context_of
from alerts.errors import IncompleteIssue
from alerts.issue_updates import issue_facts, updates, worsened
from alerts.render import BODY_BUDGET, REQUIRED, Section, render, slug, within_budget
from alerts.safetext import Markdown
from alerts.settings import AlertSettings, Links
from alerts.subject import Subject, subjects
from alerts.trackers import Draft
from history.metrics import shipped_metrics
from history.model import Finding, FunctionChange, Series, SeriesKey
from history.store import Store
from pointdrop.cli.main import command_tree
from pointdrop.jobs.room_settings import measurable
from presentation.commands import Measurable
from presentation.headline import headline
from tests.alerts.document import MYSQL, draft
from tests.alerts.scenarios import GOLDEN, ROOT, SCENARIOS, as_file, scenario
from tests.alerts.test_safetext import GITHUB_LINKS, HOSTILE, outside_code
from tests.builders import field_series, finding, history_of, move

SETTINGS = AlertSettings()
CHANGES = {"point-query": 3.1, "hot-points": 4.9, "range-covered": 1.2}
#: Scenarios whose headline is in counted instructions.
COUNTED = (
    "environment",
    "regression-instructions",
    "regression-with-improvement",
    "one-change-in-several-lines",
    "majors-partly-explained",
)
#: A test and the one server it moved on.
PLACES = (("point-query", "local"), ("insert", "medium"))


def issue(
    finding: Finding,
    *more: Finding,
    history: list[Series] | None = None,
    settings: AlertSettings = SETTINGS,
) -> Draft:
    (subject,) = subjects([finding, *more], settings.filing.kinds, settings.metrics)
    series = history if history is not None else [*history_of(finding), *field_series("hot-points")]
    return render(subject, context_of(finding, series, settings), settings)


def commands_of(body: str) -> dict[str, dict[str, Any]]:
    """The parameters of each command of an issue by its verb, as the command line reads them."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", body, re.DOTALL) for line in block.splitlines()]
    parsed = {}
    for line in lines:
        program, verb, *words = shlex.split(line)
        assert program == "pointdrop"
        command = command_tree().get_command(None, verb)  # type: ignore[attr-defined]
        parsed[verb] = command.make_context(verb, list(words)).params
    return parsed


@pytest.mark.parametrize("name", SCENARIOS)
def test_golden(name: str) -> None:
    path = GOLDEN / f"{name}.md"
    assert path.exists() and as_file(scenario(name)) == path.read_text(), (
        f"run `python -m tests.alerts.scenarios` if {name} is right"
    )


@pytest.mark.slow
def test_golden_published(published: Store) -> None:
    """All but the figures, which may differ in the last place from machine to machine."""

    def words(text: str) -> list[str]:
        return re.sub(r"[−+-]?[0-9][0-9.,]*|[▁-█]+", "#", text).split()

    assert words(as_file(draft(published, MYSQL))) == words((GOLDEN / "published.md").read_text())


def test_every_section_is_there() -> None:
    body = scenario("regression-instructions").body
    for part in [
        "<!-- pointdrop:v1 key=postgres/17/17.5/regression -->",
        "needs 4.9 % more instructions per operation from postgres 17.5 on than up to 17.4",
        "3 of 12 tests",
        "| server | metric | group | tests moved | worst | median |",
        "▁▁▁▁▁|███     +4.9 %",
        "**Evidence**",
        "measured side by side: 3 of 3 moves were seen again.",
        "17.4 is the last measured release at the old level",
        "https://github.com/postgres/postgres/compare/REL_17_4...REL_17_5",
        "`ExecInterpExpr` | 5200 | 6100 | +900",
        "Seq Scan on sbtest1",
        "--- relative to first result",
        "**Instructions per operation**",
        "pointdrop compare postgres@17.4 postgres@17.5",
        "findings/postgres/17/17.5/regression.html",
        "`/snooze N`",
    ]:
        assert part in body, part


def test_every_golden_issue_has_evidence_that_the_detector_gives() -> None:
    """No sentence of the goldens is written by hand: blocks that "lie above all others" are not what it looks at."""
    for path in GOLDEN.glob("*.md"):
        assert "noise floor" in path.read_text() or "changed slowly" in path.read_text(), path
        assert "lie above" not in path.read_text(), path


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
    complete = finding(changes=CHANGES)
    with pytest.raises(IncompleteIssue, match=re.escape(missing)) as raised:
        issue(complete.model_copy(update=change), history=history_of(complete))
    assert raised.value.exit_code == 4


def test_groups_of_another_metric_are_no_headline() -> None:
    counted = finding(changes=CHANGES)
    groups = tuple(group.model_copy(update={"metric": "qps"}) for group in counted.groups)
    with pytest.raises(IncompleteIssue, match="headline"):
        issue(counted.model_copy(update={"groups": groups}))


def test_no_history_refuses_to_file() -> None:
    counted = finding(changes=CHANGES)
    subject = Subject(key=counted.key, finding=counted, lead=headline(counted, SETTINGS.metrics))
    with pytest.raises(IncompleteIssue, match="levels of the moved tests"):
        render(subject, Context(releases=("17.4", "17.5"), trends=()), SETTINGS)


def test_what_was_not_measured_has_no_section() -> None:
    counted = finding(changes=CHANGES, functions=False, plans=False)
    body = issue(counted, history=history_of(counted)).body
    for heading in ("Functions whose", "Plans that changed", "cpu/o", "Better at the same"):
        assert heading not in body


def test_a_published_site_is_linked() -> None:
    settings = AlertSettings(links=Links(site="https://perf.example.org/pg/"))
    body = issue(finding(changes=CHANGES), settings=settings).body
    assert "<https://perf.example.org/pg/findings/postgres/17/17.5/regression.html>" in body


def test_an_address_of_a_long_foreign_release_is_not_cut() -> None:
    """Forty characters of three bytes each: the page of an issue is where the site has it."""
    release = "版本" * 20
    foreign = finding(release, "17.4", changes=CHANGES, functions=False, plans=False)
    releases = ("17.3", "17.4", release)
    address = "findings/postgres/17/" + "".join(f"~{byte:02x}" for byte in release.encode())
    for site in ("https://perf.example.org/", ""):
        settings = AlertSettings(links=Links(site=site))
        body = issue(foreign, history=history_of(foreign, releases), settings=settings).body
        html = html5lib.parseFragment(
            cmarkgfm.github_flavored_markdown_to_html(body), treebuilder="etree", namespaceHTMLElements=False
        )
        if site:
            links = [unquote(element.attrib["href"]) for element in html.iter("a")]
        else:
            links = ["".join(element.itertext()).removeprefix("var/site/") for element in html.iter("code")]
        assert any(link.removeprefix(site).startswith(address[:180]) for link in links), links
        assert any(link.endswith("/regression.html") and "…" not in link and len(link) > 200 for link in links), links


def test_a_function_that_is_not_kept_on_one_side_is_not_said_to_cost_nothing() -> None:
    changes = (
        FunctionChange(test="scan", function="md5_calc", before=412.0, after=50_000.0, at_most="before"),
        FunctionChange(test="scan", function="pg_mblen", before=50_000.0, after=412.0, at_most="after"),
    )
    body = issue(finding(changes=CHANGES).model_copy(update={"functions": changes})).body
    assert "| `scan` | `md5_calc` | ≤ 412 | 50,000 | ≥ +49,588 |" in body
    assert "| `scan` | `pg_mblen` | 50,000 | ≤ 412 | ≤ −49,588 |" in body


def test_the_budget_cuts_whole_sections_and_names_them() -> None:
    functions = tuple(
        FunctionChange(test="t" * 180, function=f"f{n}" + "x" * 180, before=1.0, after=float(n)) for n in range(400)
    )
    settings = AlertSettings.model_validate({"text": {"functions": 400}})
    body = issue(finding(changes=CHANGES).model_copy(update={"functions": functions}), settings=settings).body
    assert len(body.encode()) <= BODY_BUDGET
    assert "Functions whose" not in body and "size of an issue" in body
    assert "**See it again**" in body


@given(st.lists(st.tuples(st.text(max_size=300), st.integers(0, 99)), max_size=12), st.integers(400, 3000))
def test_never_over_budget_and_never_half_a_section(parts: list[tuple[str, int]], budget: int) -> None:
    sections = [
        Section("head", Markdown("head"), REQUIRED),
        *(Section(f"s{n}", Markdown(text), keep) for n, (text, keep) in enumerate(parts)),
    ]
    text = within_budget(sections, budget)
    assert len(text.encode()) <= budget
    dropped = [section for section in sections if section.text and section.text not in text]
    shown = [section for section in sections if section.text and section.text in text]
    assert all(section.keep < REQUIRED for section in dropped)
    assert not dropped or min((section.keep for section in shown), default=100) >= 0


def test_sections_that_must_stay_and_do_not_fit_are_a_defect() -> None:
    with pytest.raises(ValueError, match="required sections"):
        within_budget([Section("a", Markdown("x" * 50), REQUIRED)], 10)


@settings(max_examples=60, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE, st.sampled_from(["regression", "drift", "environment"]))
def test_hostile_names_stay_text(test: str, function: str, sentence: str, kind: Any) -> None:
    """Whoever names a test, a release, a server or a function cannot mention, link, reference or draw anything."""
    name = test[:150] or "t"
    release = sentence[:60] or "r"
    key = SeriesKey(
        dbms=name[:60], line=name[:60], server=name, config="c`|", benchmark="sysbench", test=name, metric="insn/o"
    )
    moved = move(key, 1000.0, 3.0, group=name)
    hostile = finding(release, "17.4", kind=kind, dbms=name[:60], line=name[:60], moves=[moved]).model_copy(
        update={
            "unmeasured": (name, release),
            "functions": (FunctionChange(test=name, function=function, before=1.0, after=2.0),),
            "evidence": (sentence + " x",),
            "plans": (),
            "warnings": (sentence,),
        }
    )
    if release == "17.4":
        return
    issue_of = issue(hostile, history=history_of(hostile, ("17.4", release)))
    assert not re.search(r"[@#`<>\n]", issue_of.title)
    html = cmarkgfm.github_flavored_markdown_to_html(issue_of.body)
    tags = {
        element.tag
        for element in html5lib.parseFragment(html, namespaceHTMLElements=False).iter()
        if isinstance(element.tag, str)
    }
    assert tags <= {
        "DOCUMENT_FRAGMENT", "p", "strong", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "ul", "li",
    }, tags  # fmt: skip
    # What remains outside code is our own words; the fences are code as well.
    prose = re.sub(r"<pre>.*?</pre>", "", outside_code(issue_of.body), flags=re.DOTALL)
    assert not GITHUB_LINKS.search(re.sub(r"[0-9,.]+", "", prose)), prose


def test_slugs_are_file_names() -> None:
    assert slug("mysql/8.0/8.0.30/regression") == "mysql-8.0-8.0.30-regression"
    assert slug("../../etc/passwd") == "etc-passwd"


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_repeat_commands_are_ones_that_pointdrop_takes(name: str) -> None:
    body = scenario(name).body
    parsed = commands_of(body)
    assert parsed["compare"]["base"].partition("@")[0] == parsed["explain"]["series"].partition("|")[0]
    counted = name in COUNTED
    assert parsed["compare"]["lane"] == ("instructions" if counted else "time")
    # Narrowing down is for what the product's code did at a boundary.
    assert ("bisect" in parsed) == (name not in ("drift", "environment"))
    assert "`/rerun`" in body


@pytest.mark.slow
def test_what_nobody_here_can_measure_is_shown_again_and_not_repeated(published: Store) -> None:
    """Published figures, of a server that no configuration has: every command is one that works."""
    body = draft(published, MYSQL).body
    configured = measurable(ROOT / "configs")
    parsed = commands_of(body)
    assert parsed["replay"]["dataset"] == parsed["explain"]["dataset"] == "smalldatum"
    assert SeriesKey.parse(parsed["explain"]["series"]).server == "ser4"
    assert parsed["compare"]["server"] in configured.servers
    assert set(parsed["compare"]["tests"].split(",")) <= set(configured.tests[parsed["compare"]["benchmark"]])
    assert "These figures were published (dataset smalldatum)." in body
    assert "`/status`" in body and "`/rerun`" not in body and "`/bisect`" not in body
    assert "bisect" not in parsed
    assert "8.0.29 between them is not in the history" in body


def test_figures_of_a_server_that_is_gone_are_explained_and_not_repeated() -> None:
    """No test of the benchmark has the name either: there is nothing to compare, and the issue says why."""
    settings = AlertSettings(
        measurable=Measurable(servers=frozenset({"small"}), configs=frozenset(), tests={"sysbench": ("scan",)})
    )
    body = issue(finding(changes=CHANGES), settings=settings).body
    assert set(commands_of(body)) == {"explain"}
    assert "These figures are of a place that is not configured here." in body
    assert "`/rerun`" not in body and "`/bisect`" not in body


def test_what_can_be_measured_is_repeated_though_a_larger_move_cannot() -> None:
    """A test that was renamed since: the command must not name it, and the footer must not contradict the command."""
    counted = finding(changes=dict(zip(CHANGES, (45.0, 31.0), strict=False)))
    key = min(counted.moves, key=lambda move: move.change_pct).key
    settings = AlertSettings(
        measurable=Measurable(
            servers=frozenset({key.server}),
            configs=frozenset({(key.dbms, key.config)}),
            tests={key.benchmark: (key.test,)},
        )
    )
    body = issue(counted, settings=settings).body
    assert commands_of(body)["compare"]["tests"] == key.test
    assert "`/rerun`" in body and "These figures" not in body


def test_titles_say_what_where_how_much() -> None:
    assert re.fullmatch(
        r"mysql 8\.0\.30: [\w.-]+ gets \d+\.\d % lower QPS \(5 of 12 tests moved, median −5\.0 %; "
        r"point queries, writes and range queries, small\)",
        scenario("regression-throughput").title,
    )
    assert scenario("majors").title.startswith("postgres 16 → 17: scan.range100 gets 8.7 % lower QPS (4 of 12 ")
    assert re.search(r"lower QPS than 8\.0\.11, a slow drift \(12 of 12 tests moved, median −", scenario("drift").title)


def test_a_median_stands_in_no_row_of_fewer_than_five_tests() -> None:
    """The median of two numbers says nothing true of either."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for name in SCENARIOS
        for line in scenario(name).body.splitlines()
        if re.search(r"\| \d+ of \d+ \|", line)
    ]
    moved = [(int(row[3].split()[0]), row[5]) for row in rows]
    assert {median == "–" for count, median in moved if count < 5} == {True}
    assert {median == "–" for count, median in moved if count >= 5} <= {False}


def test_both_directions_of_an_environment_shift_are_told() -> None:
    shift = issue(finding(kind="environment", changes={"point-query": 12.0, "hot-points": -3.0, "insert": -4.0}))
    assert shift.title == (
        "local: point-query needs 12.0 % more instructions at postgres 17.5, not the product "
        "(3 of 22 tests moved, both ways; point queries and writes)"
    )
    assert "(point queries and writes): −4.0 to +12.0 %." in shift.body


def test_another_test_on_each_server_is_told_apart() -> None:
    first, second = (finding(changes={test: 5.0}, servers=(server,)) for test, server in PLACES)
    both = first.model_copy(update={"moves": (*first.moves, *second.moves), "groups": (*first.groups, *second.groups)})
    assert "It is seen on " in issue(both).body
    assert "1 of 11 tests on local moved by more than its noise" in issue(first).body
    assert "It is seen on " not in issue(first).body


def test_another_newest_release_of_a_line_is_no_news_on_majors() -> None:
    """The boundary of two lines stays where it is while both get point releases."""

    def facts(release: str, previous: str, line: str) -> dict[str, object]:
        (subject,) = subjects([finding(release, previous, line=line)], ["regression"], shipped_metrics())
        return issue_facts(subject, Draft(key=subject.key, title="title", body="", labels=frozenset()))

    before = facts("18.3", "17.8", "majors")
    assert updates(before, facts("18.4", "17.9", "majors")) == []
    without_lines = {name: value for name, value in before.items() if name != "lines"}
    assert updates(without_lines, facts("18.4", "17.9", "majors")) == []
    assert "between 16 and 18; it was between 17 and 18" in updates(before, facts("18.4", "16.9", "majors"))[0]
    assert "between 17.3 and 17.4" in updates(facts("17.5", "17.3", "17"), facts("17.4", "17.3", "17"))[0]


def test_news_of_size_is_about_the_largest_change() -> None:
    def facts(change: float) -> dict[str, object]:
        (subject,) = subjects([finding(changes={**CHANGES, "insert": change})], ["regression"], shipped_metrics())
        return issue_facts(subject, Draft(key=subject.key, title="title", body="", labels=frozenset()))

    before, grown = facts(10.0), facts(20.0)
    assert updates(before, facts(11.0)) == []
    assert updates(before, grown) == ["The largest change is now +20.0 %; it was +10.0 %."] and worsened(before, grown)
    of_older_version = {**{name: value for name, value in before.items() if name != "worst_pct"}, "change_pct": 4.0}
    assert updates(of_older_version, grown) == [] and not worsened(of_older_version, grown), "that was a median"


def test_a_digest_says_how_many_there_are_and_fits() -> None:
    rows = [Listed(f"postgres/17/17.{n}/regression", "é" * 199) for n in range(350)]
    digest = digest_draft("digest/2026-11-21", "2026-11-21", rows, AlertSettings())
    shown = digest.body.count("/regression` |")
    assert len(digest.body.encode()) <= BODY_BUDGET and 100 < shown < 300
    assert digest.title.startswith("350 more findings") and "350 more findings of" in digest.body
    assert f"There is room for {shown} of them" in digest.body
