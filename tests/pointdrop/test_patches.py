"""Patches: who is let through, which results are believed, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from alerts.settings import GitHub as GitHubSettings
from alerts.trackers.access import Account, account_from
from pointdrop.cli.main import app
from pointdrop.jobs.compare import Function
from pointdrop.jobs.patches import (
    MOST_BYTES,
    BadResult,
    PatchError,
    PatchResult,
    Refused,
    ResultRow,
    check,
    comment,
    gate,
    parse_command,
    patch_result,
    public_report,
    pull_of,
    read_result,
)
from runners.settings import load_benchmark
from tests.fake_github import FakeGitHub
from tests.fake_github.state import Issue

SERVERS = ("small", "medium")
BASE, HEAD, FORK_POINT = "b" * 40, "3f2a9c1" * 5 + "abcde", "d" * 40
TOKEN, BOT = "ghs_workflow", "github-actions[bot]"
RUN_URL = "https://github.com/o/r/actions/runs/7"

# --- the gate --------------------------------------------------------------------------------------------------


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    """`mark` may write, `tess` may triage, `eve` may read."""
    with FakeGitHub() as github:
        github.token(TOKEN, BOT, "workflow", issues="write", checks="write", pull_requests="write", contents="read")
        github.repo("o/r", roles={"mark": "write", "mona": "maintain", "tess": "triage", BOT: "write"})
        yield github
        assert github.violations == []


@pytest.fixture
def pull(fake: FakeGitHub) -> Issue:
    """A pull request from a fork; its target has moved on since."""
    issue = fake.pull(fake.state.repos["o/r"], "eve", HEAD, head_repo="eve/r")
    issue.base_sha, issue.merge_base = BASE, FORK_POINT
    return issue


@pytest.fixture
def account(fake: FakeGitHub) -> Account:
    environment = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": fake.url}
    return account_from(environment, GitHubSettings(seconds_between_writes=0, backoff_seconds=0, bots=(BOT,)))


def said(pull: Issue, body: str, who: str = "mark", **values: Any) -> dict[str, Any]:
    """The event of a comment."""
    return {
        "action": "created", "issue": {"number": pull.number}, "sender": {"login": who},
        "comment": {"body": body, "user": {"login": who}}, **values,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("/bench", ("small", "")),
        ("/bench medium", ("medium", "")),
        ("/bench medium 3f2a9c1", ("medium", "3f2a9c1")),
        ("/bench abcdef0", ("small", "abcdef0")),
        ("/bench 3f2a9c1", ("small", "3f2a9c1")),
        ("/bench \r\n", ("small", "")),
    ],
)
def test_a_command_is_read(body: str, wanted: tuple[str, str]) -> None:
    assert parse_command(body, SERVERS) == wanted


@pytest.mark.parametrize(
    "body",
    ["", "bench", "/benchmark", "please /bench", "/bench large", "/bench small medium", "/bench small 3f2a9c",
     "/bench; id", "/bench $(id)", "/bench\n/bench", "/bench small\n\nmore words", "/bench SMALL", "/bench\u202esmall"],
)  # fmt: skip
def test_anything_else_is_refused_with_the_form(body: str) -> None:
    with pytest.raises(Refused, match=r"the form is: /bench \[small\|medium\] \[SHA\]"):
        parse_command(body, SERVERS)


@given(st.text(max_size=80).map(lambda rest: f"/bench {rest}"))
def test_no_text_gets_more_than_a_known_server_and_hexadecimal_digits_through(body: str) -> None:
    try:
        server, sha = parse_command(body, SERVERS)
    except Refused:
        return
    assert server in SERVERS and set(sha) <= set("0123456789abcdef")


@pytest.mark.parametrize("who", ["mark", "mona"])
def test_who_may_write_is_let_through_at_the_commit_of_now(pull: Issue, account: Account, who: str) -> None:
    request = gate(said(pull, f"/bench medium {HEAD[:9]}", who), account.github, "o/r", SERVERS)
    assert request.model_dump() == {"pr": pull.number, "base": FORK_POINT, "head": HEAD, "server": "medium"}


def test_a_dispatch_is_judged_in_the_same_way(pull: Issue, account: Account) -> None:
    event = {"inputs": {"pr": str(pull.number), "server": "medium"}, "sender": {"login": "mark"}}
    assert gate(event, account.github, "o/r", SERVERS).server == "medium"
    with pytest.raises(Refused, match="'read'"):
        gate({**event, "sender": {"login": "eve"}}, account.github, "o/r", SERVERS)


@pytest.mark.parametrize(
    ("who", "body", "why"),
    [
        ("eve", "/bench", "eve has the permission 'read'"),
        ("tess", "/bench", "tess has the permission 'read'"),
        ("mark", "/bench small 0123456", "0123456 is not what the pull request has now"),
    ],
)
def test_others_and_other_commits_are_refused(pull: Issue, account: Account, who: str, body: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        gate(said(pull, body, who), account.github, "o/r", SERVERS)


def test_a_closed_pull_request_an_edited_comment_and_an_unknown_number_are_refused(
    pull: Issue, account: Account
) -> None:
    edited = said(pull, "/bench", action="edited")
    by_other = said(pull, "/bench", comment={"body": "/bench", "user": {"login": "eve"}})
    for event in (edited, by_other):
        with pytest.raises(Refused, match="only a new comment counts"):
            gate(event, account.github, "o/r", SERVERS)
    with pytest.raises(Refused, match="GitHub answers 404"):
        gate(said(pull, "/bench", issue={"number": 999}), account.github, "o/r", SERVERS)
    pull.state = "closed"
    with pytest.raises(Refused, match="is closed"):
        gate(said(pull, "/bench"), account.github, "o/r", SERVERS)


@pytest.mark.parametrize("event", [{}, {"sender": {"login": "mark"}}, {"sender": None, "comment": {}}, {"inputs": 3}])
def test_an_event_of_another_kind_is_refused(account: Account, event: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="neither a comment"):
        gate(event, account.github, "o/r", SERVERS)


def test_the_pull_request_of_a_commit_is_the_open_one_that_has_it_as_its_head(
    fake: FakeGitHub, pull: Issue, account: Account
) -> None:
    assert pull_of(account.github, "o/r", HEAD) == pull.number
    with pytest.raises(Refused, match="0 open pull requests"):
        pull_of(account.github, "o/r", "e" * 40)
    with pytest.raises(Refused, match="no full SHA"):
        pull_of(account.github, "o/r", "main")
    fake.pull(fake.state.repos["o/r"], "mal", HEAD, head_repo="mal/r")
    with pytest.raises(Refused, match="2 open pull requests"):
        pull_of(account.github, "o/r", HEAD)


# --- the result ------------------------------------------------------------------------------------------------


def result(**values: Any) -> dict[str, Any]:
    """A result as a machine writes it, one regression among two tests."""
    row = {
        "test": "scan.range100", "group": "range, part 1", "metric": "insn/o", "verdict": "DIFFERENT",
        "direction": "regression", "before": 1000.0, "after": 1480.0, "change_pct": 48.0, "low_pct": 47.0,
        "high_pct": 49.0, "blocks": 2, "functions": [{"name": "pg_mblen", "before": 100.0, "after": 580.0}],
    }  # fmt: skip
    same = {**row, "test": "insert.range100", "verdict": "SAME", "direction": "", "change_pct": 0.1, "functions": []}
    report = {
        "base": "postgres@git:x", "candidate": "postgres@git:y", "server": "small", "lane": "instructions",
        "profile": "instructions", "verdict": "DIFFERENT", "rounds": 2, "blocks": 8, "minutes": 3.5, "stopped": "",
        "tests": [row, same], "warnings": [],
    }  # fmt: skip
    whole = {"format": "pointdrop.patch/1", "dbms": "postgres", "base_sha": BASE, "head_sha": HEAD, "report": report}
    return {**whole, **values}


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "result.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_every_test_of_the_catalogue_fits_the_form(configs: Path) -> None:
    row = result()["report"]["tests"][0]
    for test in load_benchmark("sysbench", configs).select("42"):
        if test.reported:
            named = {**row, "test": test.name, "group": test.group}
            assert ResultRow.model_validate_json(json.dumps(named)).group == test.group


def test_a_result_of_the_right_form_is_read(tmp_path: Path) -> None:
    assert read_result(written(tmp_path, result()), HEAD).report.tests[0].change_pct == 48.0


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(format="pointdrop.patch/2"),
        lambda r: r.update(surplus=1),
        lambda r: r.update(pr=1),
        lambda r: r.update(dbms="$(id)"),
        lambda r: r.update(base_sha="HEAD"),
        lambda r: r["report"].update(server="<b>"),
        lambda r: r["report"].update(tests=[]),
        lambda r: r["report"].update(tests=r["report"]["tests"][:1] * 300),
        lambda r: r["report"].update(tests=r["report"]["tests"][:1] * 2),
        lambda r: r["report"].update(rounds=-1),
        lambda r: r["report"].update(minutes=float("nan")),
        lambda r: r["report"].update(minutes=1e300),
        lambda r: r["report"].update(stopped="x" * 2000),
        lambda r: r["report"].update(warnings=["x"] * 200),
        lambda r: r["report"]["tests"][0].update(test="a b"),
        lambda r: r["report"]["tests"][0].update(test="a\n"),
        lambda r: r["report"]["tests"][0].update(group="<b>"),
        lambda r: r["report"]["tests"][0].update(test="@everyone"),
        lambda r: r["report"]["tests"][0].update(metric="rss"),
        lambda r: r["report"]["tests"][0].update(verdict="GOOD"),
        lambda r: r["report"]["tests"][0].update(change_pct="48"),
        lambda r: r["report"]["tests"][0].update(direction=""),
        lambda r: r["report"]["tests"][1].update(direction="improvement"),
        lambda r: r["report"]["tests"][0].update(functions=[{"name": "f", "before": 1.0, "after": 1.0}] * 11),
        lambda r: r["report"]["tests"][0]["functions"][0].update(name="x" * 3000),
        lambda r: r["report"]["tests"][0]["functions"][0].update(url="https://evil.example"),
    ],
)  # fmt: skip
def test_a_result_of_another_form_is_refused_without_repeating_it(tmp_path: Path, change: Change) -> None:
    content = result()
    change(content)
    with pytest.raises(BadResult) as caught:
        read_result(written(tmp_path, content), HEAD)
    for word in ("evil", "everyone", "$(id)", "GOOD", "surplus", "<b>"):
        assert word not in str(caught.value)


@pytest.mark.parametrize("content", ["", "null", "[]", "{", '"x"', "[" * 100_000, '{"report": ' + "9" * 5000 + "}"])
def test_what_is_no_result_at_all_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(BadResult):
        read_result(written(tmp_path, content), HEAD)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(b'{"format": "\xff\xfe"}')
    with pytest.raises(BadResult):
        read_result(tmp_path / "result.json", HEAD)


def test_too_large_a_result_one_of_another_commit_a_link_and_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadResult, match="more than 1000000 bytes"):
        read_result(written(tmp_path, json.dumps(result()) + " " * MOST_BYTES), HEAD)
    with pytest.raises(BadResult, match="of another commit"):
        read_result(written(tmp_path, result(head_sha="e" * 40)), HEAD)
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    for path in (tmp_path / "link.json", tmp_path / "none.json", tmp_path):
        with pytest.raises(BadResult, match="is no file"):
            read_result(path, HEAD)


# --- what is said of it ----------------------------------------------------------------------------------------


def loaded(**values: Any) -> PatchResult:
    return PatchResult.model_validate_json(json.dumps(result(**values)))


def test_sides_are_named_by_commits_and_a_regression_fails_the_check() -> None:
    report = public_report(loaded())
    text = comment(report, HEAD, RUN_URL)
    assert f"`postgres@{BASE[:10]}` against `postgres@{HEAD[:10]}`" in text and "git:x" not in text
    assert "1 slower; most `scan.range100`, +48.0 %" in text and f"[run]({RUN_URL})" in text
    verdict = check(report, HEAD, 5, RUN_URL)
    assert (verdict.conclusion, verdict.external_id, verdict.details_url) == ("failure", "pr-5", RUN_URL)


@pytest.mark.parametrize(("verdict", "conclusion"), [("SAME", "success"), ("UNKNOWN", "neutral")])
def test_what_is_clear_passes_and_what_is_not_is_neutral(verdict: str, conclusion: str) -> None:
    report = result()["report"]
    report["tests"] = [{**report["tests"][1], "verdict": verdict}]
    report["verdict"] = verdict
    assert check(public_report(loaded(report=report)), HEAD, 5, "").conclusion == conclusion


@given(st.text(max_size=300), st.text(min_size=1, max_size=300), st.text(max_size=100))
def test_no_text_of_a_result_becomes_markup_or_a_mention(warning: str, function: str, url: str) -> None:
    report = result()["report"]
    report["warnings"], report["stopped"] = [warning], warning
    report["tests"][0]["functions"][0]["name"] = function
    text = comment(public_report(loaded(report=report)), HEAD, url)
    plain = comment(public_report(loaded()), HEAD, "")
    allowed = {"p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "ul", "li", "sub", "br"}
    html = cmarkgfm.github_flavored_markdown_to_html(text)
    tags = {part.split(">")[0].split()[0].strip("/") for part in html.split("<")[1:] if part[:1].isalpha()}
    assert tags <= allowed | {"details", "summary"}, html
    outside = "".join(part for number, part in enumerate(text.split("`")) if number % 2 == 0)
    assert "@" not in outside.replace("postgres@", "") and outside.count("\n") <= plain.count("\n") + 8


def test_a_report_with_more_than_a_comment_holds_leaves_its_functions_out() -> None:
    """As one of the largest that the form allows."""
    report = result()["report"]
    functions = [{"name": "f" * 2_000, "before": 1.0, "after": 2.0}] * 10
    wide = dict.fromkeys(("before", "after", "change_pct", "low_pct", "high_pct"), -1e15)
    report["tests"] = [
        {**report["tests"][0], **wide, "test": f"{number:0>80}", "blocks": 100_000,
         "functions": functions if number < 40 else []}
        for number in range(200)
    ]  # fmt: skip
    text = comment(public_report(loaded(report=report)), HEAD, RUN_URL)
    assert len(text.encode()) < 60_000
    assert "Functions do not fit" in text and "ffff" not in text and text.count("▼ regression") == 200


def test_a_result_without_tests_is_an_error_and_long_texts_are_cut(tmp_path: Path) -> None:
    report = public_report(loaded())
    with pytest.raises(PatchError, match="too busy"):
        patch_result("postgres", BASE, HEAD, report.model_copy(update={"tests": (), "stopped": "too busy"}))
    functions = (Function(name="std::vector<" * 500, before=1.0, after=2.0),)
    row = report.tests[0].model_copy(update={"functions": functions})
    long = report.model_copy(update={"stopped": "x" * 9_000, "warnings": ("y" * 9_000,) * 200, "tests": (row,)})
    made = patch_result("postgres", BASE, HEAD, long)
    assert read_result(written(tmp_path, made.model_dump_json()), HEAD) == made


# --- the commands ----------------------------------------------------------------------------------------------


@pytest.fixture
def environment(fake: FakeGitHub, configs: Path, tmp_path: Path) -> dict[str, str]:
    """A workflow's, and settings that do not wait."""
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "alerts.toml").write_text("[github]\nseconds_between_writes = 0\nbackoff_seconds = 0\n")
    return {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": fake.url,
            "POINTDROP_CONFIGS": str(folder), "POINTDROP_STATE": str(tmp_path)}  # fmt: skip


def test_the_gate_writes_the_outputs_of_its_step(pull: Issue, environment: dict[str, str], tmp_path: Path) -> None:
    event, output = tmp_path / "event.json", tmp_path / "output"
    event.write_text(json.dumps(said(pull, "/bench")))
    arguments = ["patch", "gate", "--servers", "small,medium", "--event", str(event), "--github-output", str(output)]
    done = CliRunner().invoke(app, arguments, env=environment)
    assert done.exit_code == 0, done.output
    assert output.read_text() == f"pr={pull.number}\nbase={FORK_POINT}\nhead={HEAD}\nserver=small\n"
    output.unlink()
    event.write_text(json.dumps(said(pull, "/bench", "eve")))
    assert CliRunner().invoke(app, arguments, env=environment).exit_code != 0
    assert not output.exists()
    event.write_text("{")
    assert isinstance(CliRunner().invoke(app, arguments, env=environment).exception, Refused)


def publish(environment: dict[str, str], path: Path, *more: str) -> Any:
    arguments = ["patch", "publish", "--untrusted", str(path), "--head", HEAD, "--run-url", RUN_URL, *more]
    return CliRunner().invoke(app, arguments, env=environment)


def test_publishing_twice_leaves_one_comment_and_one_check(
    fake: FakeGitHub, pull: Issue, environment: dict[str, str], tmp_path: Path
) -> None:
    assert publish(environment, written(tmp_path, result())).exit_code == 0
    report = result()["report"]
    report["tests"], report["verdict"] = report["tests"][1:], "SAME"
    done = publish(environment, written(tmp_path, result(report=report)), "--pr", str(pull.number))
    assert done.exit_code == 0 and "success" in done.output
    (one,) = pull.comments
    assert "No test differs" in one.body and "slower" not in one.body
    (run,) = fake.state.repos["o/r"].check_runs.values()
    assert (run["conclusion"], run["head_sha"]) == ("success", HEAD)


def test_a_hostile_result_is_told_and_fails_with_nothing_of_it_shown(
    fake: FakeGitHub, pull: Issue, environment: dict[str, str], tmp_path: Path
) -> None:
    done = publish(environment, written(tmp_path, result(dbms="<img src=x>")))
    assert isinstance(done.exception, BadResult) and done.exception.exit_code == 2
    (one,) = pull.comments
    assert "wrong form" in one.body and "img" not in one.body + done.output
    (run,) = fake.state.repos["o/r"].check_runs.values()
    assert run["conclusion"] == "neutral"


@pytest.mark.parametrize(("outcome", "words"), [("failure", "job failed"), ("cancelled", "did not run to its end")])
def test_a_machine_that_left_nothing_is_told(
    pull: Issue, environment: dict[str, str], tmp_path: Path, outcome: str, words: str
) -> None:
    done = publish(environment, tmp_path / "none.json", "--bench-result", outcome)
    assert done.exit_code == 0, done.output
    (one,) = pull.comments
    assert words in one.body
