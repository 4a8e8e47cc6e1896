"""What the fake GitHub holds: accounts, repositories, issues, comments, labels, pull requests, check runs."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Role = Literal["none", "read", "triage", "write", "maintain", "admin"]
WRITE_ROLES = ("write", "maintain", "admin")


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Identity:
    """Whom a token speaks for. `kind`: a person's token, the workflow's GITHUB_TOKEN, or an App's installation."""

    login: str
    kind: Literal["person", "workflow", "app"] = "person"
    permissions: dict[str, str] = field(default_factory=dict)
    """For `workflow` and `app`: `{"issues": "write", "checks": "write", ...}`."""

    @property
    def type(self) -> str:
        return "Bot" if self.login.endswith("[bot]") else "User"


@dataclass
class Comment:
    id: int
    user: str
    body: str
    created: str
    updated: str
    reactions: list[tuple[int, str, str]] = field(default_factory=list)
    """(id, login, content)"""


@dataclass
class Issue:
    """An issue, or with `head` a pull request."""

    id: int
    number: int
    user: str
    title: str
    body: str
    labels: list[str]
    created: str
    updated: str
    state: str = "open"
    state_reason: str | None = None
    closed: str | None = None
    closed_by: str | None = None
    deleted: bool = False
    moved_to: str = ""
    hidden_for: int = 0
    """List answers that do not show it yet."""
    comments: list[Comment] = field(default_factory=list)
    reactions: list[tuple[int, str, str]] = field(default_factory=list)
    head: str = ""
    head_repo: str = ""
    base: str = "main"
    base_sha: str = "0" * 40
    merge_base: str = ""
    """Where the pull request branched off; `base_sha` when empty."""
    files: list[str] = field(default_factory=list)


@dataclass
class Repo:
    """One repository; all access goes through the server's lock."""

    full_name: str
    private: bool = False
    roles: dict[str, Role] = field(default_factory=dict)
    has_issues: bool = True
    default_branch: str = "main"
    issues: dict[int, Issue] = field(default_factory=dict)
    labels: dict[str, dict[str, Any]] = field(default_factory=dict)
    check_runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    dispatches: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    list_lag: int = 0
    """New issues are missing from so many list answers."""

    def role(self, login: str) -> Role:
        return self.roles.get(login, "none" if self.private else "read")


class State:
    """Everything, with one counter for ids as on GitHub."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.ids = itertools.count(1000)
        self.tokens: dict[str, Identity] = {}
        self.repos: dict[str, Repo] = {}
        self.apps: dict[str, dict[str, Any]] = {}
        """By App id: slug, permissions, public key (PEM)."""

    def add_label(self, repo: Repo, name: str, color: str = "ededed", description: str | None = None) -> dict[str, Any]:
        label = {"id": next(self.ids), "name": name, "color": color, "description": description, "default": False}
        repo.labels[name] = label
        return label

    def add_issue(
        self, repo: Repo, user: str, title: str, body: str = "", labels: list[str] | None = None, **more: Any
    ) -> Issue:
        number = max(repo.issues, default=0) + 1
        for label in labels or []:
            if label not in repo.labels:
                self.add_label(repo, label)
        issue = Issue(
            id=next(self.ids), number=number, user=user, title=title, body=body, labels=list(labels or []),
            created=now(), updated=now(), hidden_for=repo.list_lag, **more,
        )  # fmt: skip
        repo.issues[number] = issue
        return issue

    def add_comment(self, issue: Issue, user: str, body: str) -> Comment:
        comment = Comment(id=next(self.ids), user=user, body=body, created=now(), updated=now())
        issue.comments.append(comment)
        issue.updated = now()
        return comment

    def close(self, issue: Issue, by: str, reason: str = "completed") -> None:
        issue.state, issue.state_reason, issue.closed, issue.closed_by = "closed", reason, now(), by
        issue.updated = now()

    def reopen(self, issue: Issue) -> None:
        issue.state, issue.state_reason, issue.closed, issue.closed_by = "open", "reopened", None, None
        issue.updated = now()
