"""Patches in pull requests: who may have one measured, what the result may hold, and what is said of it.

    gate (hosted, may read)  ->  run (measuring machine, may do nothing)  ->  publish (hosted, may comment)

The machine in the middle ran a stranger's code, so what comes from it is data: read up to a size, held to a form
without free fields, and believed in nothing that the gate knows itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from github import Github, GithubException
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from alerts.pull_requests import Check, Conclusion, comment_body
from alerts.render import REQUIRED, Section
from alerts.safetext import Markdown, code
from history.metrics import shipped_metrics
from pointdrop.jobs.compare import CompareReport, Function, TestRow
from pointdrop.jobs.compare_views import headline, markdown
from runners.errors import RunnersError

#: Bytes of a result; one of 42 tests with functions has about 60 thousand.
MOST_BYTES = 1_000_000
#: Bytes of a comment that a report may take; rows of the most tests that a result may have are fewer.
REPORT_BUDGET = 55_000
WRITE_ROLES = ("write", "maintain", "admin")
#: Name of the check run, and of the sticky comment.
CHECK, COMMENT = "Pointdrop", "patch"
FULL_SHA = re.compile(r"[0-9a-f]{40}")
_COMMAND = re.compile(
    r"/bench(?:[ \t]+(?P<server>[a-z][a-z0-9-]{0,30}))?(?:[ \t]+(?P<sha>[0-9a-f]{7,40}))?[ \t]*\r?\n?"
)


class PatchError(RunnersError):
    """Something about a patch that cannot be done."""


class Refused(PatchError):
    """The person who asks may not, or asks for something that does not exist."""


class BadResult(PatchError):
    """A result that is not what a measuring machine writes; nothing of it is shown."""

    exit_code: ClassVar[int] = 2


class Request(BaseModel):
    """What the gate lets through; the outputs of its step."""

    model_config = ConfigDict(frozen=True)

    pr: int
    base: str
    head: str
    server: str


# --- the gate --------------------------------------------------------------------------------------------------


def parse_command(body: str, servers: Collection[str]) -> tuple[str, str]:
    """(server, SHA or empty) of a comment that is one command and nothing else; Refused says what the form is.

    >>> parse_command("/bench small 3f2a9c1", ["small", "medium"])
    ('small', '3f2a9c1')
    >>> parse_command("/bench", ["small", "medium"])
    ('small', '')
    """
    match = _COMMAND.fullmatch(body)
    # `/bench 3f2a9c1`: a SHA that begins with a letter looks like a server's name.
    server, sha = (match["server"] or "", match["sha"] or "") if match else ("", "")
    if server not in servers and re.fullmatch(r"[0-9a-f]{7,40}", server) and not sha:
        server, sha = "", server
    server = server or next(iter(servers), "")
    if not match or server not in servers:
        raise Refused(f"the form is: /bench [{'|'.join(servers)}] [SHA], alone in the comment")
    return server, sha


def gate(event: Mapping[str, Any], github: Github, repository: str, servers: Collection[str]) -> Request:
    """Let a request through: by somebody who may write, for an open pull request, at the commit it has now.

    `event` is a comment's or a dispatch's. Whether somebody may write is asked of GitHub, not read from the event. The
    base is where the pull request branched off: what others did to its target since is not the patch's.
    """
    try:
        who = str(event["sender"]["login"])
        if "comment" in event:
            number = int(event["issue"]["number"])
            server, sha = parse_command(str(event["comment"]["body"]), servers)
            if event.get("action") != "created" or event["comment"]["user"]["login"] != who:
                raise Refused("only a new comment counts, by the one who wrote it")
        else:
            number = int(event["inputs"]["pr"])
            words = (event["inputs"].get("server"), event["inputs"].get("sha"))
            server, sha = parse_command(" ".join(filter(None, ("/bench", *words))), servers)
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"this is neither a comment on a pull request nor a dispatch for one: {error}") from error
    try:
        repo = github.get_repo(repository)
        role = repo.get_collaborator_permission(who)
        if role not in WRITE_ROLES:
            raise Refused(f"{who} has the permission {role!r}; measuring a patch needs write")
        pull = repo.get_pull(number)
        state, head = pull.state, pull.head.sha
        base = repo.compare(pull.base.sha, head).merge_base_commit.sha
    except GithubException as error:
        raise Refused(f"GitHub answers {error.status} when asked about {who} and pull request {number}") from error
    if state != "open":
        raise Refused(f"pull request {number} is {state}")
    if not (FULL_SHA.fullmatch(base) and FULL_SHA.fullmatch(head)):
        raise Refused("GitHub names no commits of this pull request")
    if not head.startswith(sha):
        raise Refused(f"{sha} is not what the pull request has now, {head}; look at it and ask again")
    return Request(pr=number, base=base, head=head, server=server)


def pull_of(github: Github, repository: str, head: str) -> int:
    """The open pull request whose head is that commit; Refused when there is none, or more than one."""
    if not FULL_SHA.fullmatch(head):
        raise Refused(f"{head!r} is no full SHA")
    try:
        pulls = github.get_repo(repository).get_pulls(state="open")
        numbers = [pull.number for pull in pulls if pull.head.sha == head]
    except GithubException as error:
        raise Refused(f"GitHub answers {error.status} when asked for pull requests") from error
    if len(numbers) != 1:
        raise Refused(f"{len(numbers)} open pull requests have {head} as their head")
    return numbers[0]


# --- the result ------------------------------------------------------------------------------------------------

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.=,-]{1,80}$")]
Group = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.=, -]{1,80}$")]
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Free = Annotated[str, Field(max_length=1_000)]


def _compared(metric: str) -> str:
    """Only a metric that `compare` judges; its name goes into a comment."""
    if not shipped_metrics()[metric].compared:
        raise ValueError("no metric that is compared")
    return metric


class ResultFunction(Function):
    name: Annotated[str, Field(min_length=1, max_length=2_000)]


class ResultRow(TestRow):
    """With nothing free but the names of functions."""

    test: Name
    group: Group
    metric: Annotated[str, AfterValidator(_compared)]
    functions: Annotated[tuple[ResultFunction, ...], Field(max_length=10)]


class ResultReport(CompareReport):
    """Held to bounds."""

    base: Free
    candidate: Free
    server: Name
    profile: Name
    stopped: Free
    tests: Annotated[tuple[ResultRow, ...], Field(min_length=1, max_length=200)]
    warnings: Annotated[tuple[Free, ...], Field(max_length=100)]


class PatchResult(BaseModel):
    """What the measuring machine hands over: `result.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["pointdrop.patch/1"] = "pointdrop.patch/1"
    dbms: Literal["postgres", "mysql", "mariadb", "myrocks"]
    base_sha: Sha
    head_sha: Sha
    report: ResultReport


def patch_result(dbms: str, base: str, head: str, report: CompareReport) -> PatchResult:
    """What the measuring machine hands over; text longer than the form allows is cut. PatchError when no test has
    blocks of both sides, since then there is nothing to hand over."""
    if not report.tests:
        raise PatchError(f"nothing was measured of both commits: {report.stopped or 'no test has a value of both'}")
    cut = {"stopped": report.stopped[:1_000], "warnings": tuple(text[:1_000] for text in report.warnings[:100])}
    values = report.model_dump() | cut
    for row in values["tests"]:
        row["functions"] = tuple(function | {"name": function["name"][:2_000]} for function in row["functions"])
    return PatchResult.model_validate({"dbms": dbms, "base_sha": base, "head_sha": head, "report": values})


def read_result(path: Path, head: str) -> PatchResult:
    """A result that a stranger's machine may have written; BadResult when it is too large, of another form, or of
    another commit than `head`."""
    if path.is_symlink() or not path.is_file():
        raise BadResult(f"{path} is no file")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BadResult(f"the result has more than {MOST_BYTES} bytes")
    try:
        result = PatchResult.model_validate_json(content, strict=True)
    except ValidationError as error:
        # Neither values nor keys: both are the stranger's.
        kinds = sorted({problem["type"] for problem in error.errors(include_input=False, include_url=False)})
        raise BadResult(f"the result is not of the form pointdrop.patch/1: {', '.join(kinds)}") from None
    if result.head_sha != head:
        raise BadResult(f"the result is of another commit than {head}")
    rows = result.report.tests
    twice = len({(row.test, row.metric) for row in rows}) != len(rows)
    if twice or any(bool(row.direction) != (row.verdict == "DIFFERENT") for row in rows):
        raise BadResult("the result contradicts itself")
    return result


# --- what is said of it ----------------------------------------------------------------------------------------


def public_report(result: PatchResult) -> CompareReport:
    """The report with its sides named by commits, not by what the machine called them."""
    names = {"base": f"{result.dbms}@{result.base_sha[:10]}", "candidate": f"{result.dbms}@{result.head_sha[:10]}"}
    return result.report.model_copy(update=names)


def conclusion(report: CompareReport) -> Conclusion:
    """Of the check run: a regression fails it, and what is not clear is neutral."""
    return "failure" if report.regressions else "neutral" if report.verdict == "UNKNOWN" else "success"


def comment(report: CompareReport | str, head: str, run_url: str) -> str:
    """The sticky comment about a measured patch, or why there is no report."""
    if isinstance(report, str):
        text = Markdown(f"**This patch could not be measured:** {report}. The log of the run says more.")
        parts = [Section("failed", text, REQUIRED)]
    else:
        parts = [Section("report", Markdown(_fitting(report).rstrip()), REQUIRED)]
        if report.warnings:
            lines = "\n".join(f"* {code(text)}" for text in report.warnings[:10])
            parts.append(Section("warnings", Markdown(lines), 20))
    link = f" · [run]({run_url})" if re.fullmatch(r"https?://[A-Za-z0-9.:-]+/[A-Za-z0-9_./-]+", run_url) else ""
    footer = Markdown(f"<sub>Commit {code(head)}{link} · `/bench` measures again and edits this comment.</sub>")
    return comment_body(COMMENT, [*parts, Section("footer", footer, REQUIRED)])


def _fitting(report: CompareReport) -> str:
    """The report as Markdown; without its functions, whose names may be long, where a comment would not hold them."""
    text = markdown(report)
    if len(text.encode()) <= REPORT_BUDGET:
        return text
    bare = tuple(row.model_copy(update={"functions": ()}) for row in report.tests)
    return f"{markdown(report.model_copy(update={'tests': bare}))}\nFunctions do not fit here; the result has them.\n"


def check(report: CompareReport | str, head: str, pr: int, run_url: str) -> Check:
    """The check run about a measured patch, or why there is no report."""
    if isinstance(report, str):
        return Check(CHECK, head, "neutral", "Not measured", f"{report}.", f"pr-{pr}", run_url)
    title = f"{report.verdict}: {headline(report)}"
    return Check(CHECK, head, conclusion(report), title, markdown(report), f"pr-{pr}", run_url)
