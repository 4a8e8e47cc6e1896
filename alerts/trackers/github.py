"""Issues on GitHub and GitHub Enterprise Server, through PyGithub.

Our issues are those our own account wrote whose first line is our marker; they are listed by label through REST, since
search lags by seconds to minutes. Every POST goes through `post_once`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import cast

from github import GithubException
from github.GithubObject import NotSet
from github.Issue import Issue as RemoteIssue
from github.IssueComment import IssueComment
from github.Label import Label
from github.NamedUser import NamedUser
from github.Repository import Repository
from requests import RequestException

from alerts.errors import IssueGone
from alerts.marker import event_of, keys_of
from alerts.settings import GitHub as Settings
from alerts.settings import Labels
from alerts.trackers import CloseReason, Comment, Draft, Issue, Permission, Reaction
from alerts.trackers.access import Account
from alerts.trackers.once import post_once, translated

#: Colours of new labels: red for what is slower, grey for the rest, as RGB.
COLOURS = {"perf-regression": "b60205", "environment": "5319e7", "improvement": "0e8a16"}
OTHER_COLOUR = "cfd3d7"


class GitHubTracker:
    """The issues of one repository."""

    def __init__(self, account: Account, labels: Labels, settings: Settings) -> None:
        self.account = account
        self.label = labels.issue
        self.settings = settings
        self.name = f"github:{account.repository}"
        self._known_labels: set[str] = set()

    @cached_property
    def repository(self) -> Repository:
        return self.account.github.get_repo(self.account.repository)

    def issues(self) -> list[Issue]:
        with github_errors():
            listed = self.repository.get_issues(state="all", labels=[self.label], sort="created", direction="asc")
            return [self._issue(remote) for remote in listed if self._is_ours(remote)]

    def look_again(self) -> list[Issue]:
        issues: list[Issue] = []
        with github_errors():
            for login in sorted(self.account.logins):
                # PyGithub takes a login here and types it as a user.
                listed = self.repository.get_issues(state="all", creator=cast(NamedUser, login), direction="asc")
                issues += [self._issue(remote) for remote in listed if self._is_ours(remote)]
        return issues

    def issue(self, number: int) -> Issue:
        with github_errors(number):
            remote = self.repository.get_issue(number)
            if f"/{self.account.repository}/".lower() not in f"{remote.html_url}/".lower():
                raise IssueGone(number, moved_to=remote.html_url)
            return self._issue(remote)

    def create(self, draft: Draft) -> Issue:
        with github_errors():
            self._ensure(draft.labels)
            created = post_once(
                lambda: next((issue for issue in self.look_again() if issue.keys[0] == draft.key), None),
                lambda: self._issue(self.repository.create_issue(draft.title, draft.body, labels=sorted(draft.labels))),
                self.settings,
            )
            missing = draft.labels - created.labels
            if missing:
                self.add_labels(created.number, missing)
            return created

    def edit(self, number: int, *, title: str | None = None, body: str | None = None) -> None:
        with github_errors(number):
            self._handle(number).edit(title=NotSet if title is None else title, body=NotSet if body is None else body)

    def add_labels(self, number: int, labels: frozenset[str]) -> None:
        with github_errors(number):
            self._ensure(labels)
            # Adding a label twice changes nothing, so the POST may be repeated.
            post_once(lambda: None, lambda: self._handle(number).add_to_labels(*sorted(labels)), self.settings)

    def close(self, number: int, reason: CloseReason) -> None:
        with github_errors(number):
            try:
                self._handle(number).edit(state="closed", state_reason=reason)
            except GithubException as error:
                # Older GHES does not know `duplicate`.
                if error.status != 422 or reason != "duplicate":
                    raise
                self._handle(number).edit(state="closed", state_reason="not_planned")

    def reopen(self, number: int) -> None:
        with github_errors(number):
            self._handle(number).edit(state="open", state_reason="reopened")

    def comments(self, number: int) -> list[Comment]:
        with github_errors(number):
            return [self._comment(comment) for comment in self._handle(number).get_comments()]

    def comment(self, number: int, event: str, body: str) -> None:
        def find() -> Comment | None:
            ours = (comment for comment in self.comments(number) if comment.ours and event_of(comment.body) == event)
            return next(ours, None)

        with github_errors(number):
            if find() is None:
                post_once(find, lambda: self._comment(self._handle(number).create_comment(body)), self.settings)

    def react(self, number: int, comment_id: int, reaction: Reaction) -> None:
        with github_errors(number):
            comment = self._handle(number).get_comment(comment_id)
            try:
                # The same reaction twice is one reaction.
                post_once(lambda: None, lambda: comment.create_reaction(reaction), self.settings)
            except GithubException as error:
                # The comment was deleted, or the server has no reactions: the answer in words is enough.
                if error.status != 404:
                    raise

    def permission(self, login: str) -> Permission:
        with github_errors():
            try:
                return cast(Permission, self.repository.get_collaborator_permission(login))
            except GithubException as error:
                if error.status == 404:
                    return "none"
                raise

    # --- GitHub's objects to ours ------------------------------------------------------------------------

    def _handle(self, number: int) -> RemoteIssue:
        """The issue without asking for it first: the repository was made lazy, and so is what it makes."""
        return self.repository.get_issue(number)

    def _is_ours(self, remote: RemoteIssue) -> bool:
        # Pull requests are issues here; `pull_request` is absent on issues, and reading it would cost a request each.
        return (
            not remote.html_url.endswith(f"/pull/{remote.number}")
            and self._wrote(remote.user.login if remote.user else "")
            and bool(keys_of(remote.body))
        )

    def _wrote(self, login: str) -> bool:
        return login in self.account.logins

    def _issue(self, remote: RemoteIssue) -> Issue:
        body = remote.body or ""
        return Issue(
            number=remote.number,
            title=remote.title,
            body=body,
            labels=frozenset(label.name for label in remote.labels),
            open=remote.state == "open",
            url=remote.html_url,
            keys=keys_of(body) if self._wrote(remote.user.login if remote.user else "") else (),
            close_reason=remote.state_reason or "",
            comments=remote.comments,
        )

    def _comment(self, comment: IssueComment) -> Comment:
        login = comment.user.login if comment.user else ""
        return Comment(
            id=comment.id,
            body=comment.body or "",
            author=login or "ghost",
            ours=self._wrote(login),
            created=comment.created_at,
        )

    def _ensure(self, labels: frozenset[str]) -> None:
        """Make labels the repository does not have, once a process."""
        for name in sorted(labels - self._known_labels):
            try:
                self.repository.get_label(name)
            except GithubException as error:
                if error.status != 404:
                    raise
                self._make_label(name)
            self._known_labels.add(name)

    def _make_label(self, name: str) -> None:
        def post() -> Label:
            return self.repository.create_label(name, COLOURS.get(name, OTHER_COLOUR), "by Pointdrop")

        try:
            post_once(lambda: None, post, self.settings)
        except GithubException as error:
            # 422: another publisher was quicker. 403: the account may not make labels, and the issue goes without.
            if error.status not in (403, 422):
                raise


@contextmanager
def github_errors(number: int | None = None) -> Iterator[None]:
    """PyGithub's and the network's errors as the room's own."""
    try:
        yield
    except (GithubException, RequestException) as error:
        raise translated(error, number) from error
