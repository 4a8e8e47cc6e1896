"""One comment a pull request, edited in place, and a check run: how a comparison reaches a patch's author.

The comment is known by its marker and by its author; a second one of the same name (two publishers at once) is removed,
the older stays. The check run of a commit is known by name and external id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

from github import GithubException
from github.CheckRun import CheckRun
from github.GithubObject import NotSet
from github.IssueComment import IssueComment

from alerts.marker import sticky_marker, sticky_of
from alerts.render import BODY_BUDGET, REQUIRED, Section, within_budget
from alerts.safetext import Markdown, cut, title
from alerts.settings import GitHub as Settings
from alerts.trackers.access import Account
from alerts.trackers.github import github_errors
from alerts.trackers.once import post_once

#: GitHub's limits: annotations one request takes, bytes of a check run's summary.
ANNOTATIONS_A_REQUEST, SUMMARY_BUDGET = 50, 65_000

Conclusion = Literal["success", "failure", "neutral", "cancelled", "timed_out"]


class Annotation(NamedTuple):
    """A remark at a line of a file."""

    path: str
    line: int
    message: str
    level: Literal["notice", "warning", "failure"] = "warning"


class Check(NamedTuple):
    """What a check run says."""

    name: str
    head_sha: str
    conclusion: Conclusion
    title: str
    summary: str
    external_id: str = ""
    details_url: str = ""
    annotations: Sequence[Annotation] = ()


def comment_body(name: str, sections: Sequence[Section]) -> str:
    """The comment `name` with its marker, cut at section borders to GitHub's size."""
    return within_budget([Section("marker", Markdown(sticky_marker(name)), REQUIRED), *sections], BODY_BUDGET)


def publish_comment(account: Account, settings: Settings, number: int, body: str) -> int:
    """Put `body`, which begins with a sticky marker, on a pull request; the id of its one comment.

    ValueError when the marker is missing; TrackerError as in `alerts.trackers`.
    """
    name = sticky_of(body)
    if not name:
        raise ValueError("the comment has no marker; make it with comment_body()")
    issue = account.github.get_repo(account.repository).get_issue(number)

    def ours() -> list[IssueComment]:
        comments = [
            remote
            for remote in issue.get_comments()
            if remote.user and remote.user.login in account.logins and sticky_of(remote.body) == name
        ]
        return sorted(comments, key=lambda comment: comment.id)

    def find() -> IssueComment | None:
        return next(iter(ours()), None)

    with github_errors(number):
        comment = find()
        if comment is None:
            post_once(find, lambda: issue.create_comment(body), settings)
        elif comment.body != body:
            comment.edit(body)
        first, *others = ours()
        if others and first.body != body:
            first.edit(body)
        for other in others:
            _delete(other)
        return first.id


def _delete(comment: IssueComment) -> None:
    try:
        comment.delete()
    except GithubException as error:
        # Another publisher saw the same and was quicker.
        if error.status != 404:
            raise


def publish_check(account: Account, settings: Settings, check: Check) -> int:
    """Set the check run of a commit; the id of the run. Repeating it changes the same run.

    TrackerRefused for a person's token: only GITHUB_TOKEN and Apps may make check runs.
    """
    repository = account.github.get_repo(account.repository)
    output = {"title": title(check.title), "summary": _fitting(check.summary)}
    batches = [
        check.annotations[at : at + ANNOTATIONS_A_REQUEST]
        for at in range(0, len(check.annotations), ANNOTATIONS_A_REQUEST)
    ] or [()]

    def find() -> CheckRun | None:
        runs = repository.get_commit(check.head_sha).get_check_runs(check_name=check.name)
        return next((run for run in runs if run.external_id == check.external_id), None)

    def create() -> CheckRun:
        return repository.create_check_run(
            check.name,
            check.head_sha,
            details_url=check.details_url or NotSet,
            external_id=check.external_id,
            status="completed",
            conclusion=check.conclusion,
            output=cast("dict[str, str | list[dict[str, str | int]]]", _with_annotations(output, batches[0])),
        )

    with github_errors():
        run = find()
        if run is not None:
            run.edit(conclusion=check.conclusion, status="completed", output=_with_annotations(output, ()))
            return run.id
        run = post_once(find, create, settings)
        for batch in batches[1:]:
            run.edit(output=_with_annotations(output, batch))
        return run.id


def _with_annotations(output: dict[str, str], batch: Sequence[Annotation]) -> dict[str, object]:
    annotations = [
        {
            "path": annotation.path,
            "start_line": annotation.line,
            "end_line": annotation.line,
            "annotation_level": annotation.level,
            "message": cut(annotation.message, 2000),
        }
        for annotation in batch
    ]
    return {**output, "annotations": annotations} if annotations else dict(output)


def _fitting(summary: str) -> str:
    """At most SUMMARY_BUDGET bytes of UTF-8, cut at a line's end."""
    fitting: list[str] = []
    size = 0
    for line in summary.splitlines():
        size += len(line.encode()) + 1
        if size > SUMMARY_BUDGET:
            return "\n".join([*fitting, "", "The rest does not fit; the artifact of the run has all of it."])
        fitting.append(line)
    return "\n".join(fitting)
