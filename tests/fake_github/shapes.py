"""The fake's state as GitHub's JSON; fields nobody reads are filled from GitHub's description."""

from __future__ import annotations

from typing import Any

from tests.fake_github.contract import contract
from tests.fake_github.state import Comment, Identity, Issue, Repo


class Shapes:
    """JSON with addresses below `base`."""

    def __init__(self, base: str) -> None:
        self.base = base

    def user(self, login: str) -> dict[str, Any]:
        number = sum(map(ord, login)) + 1
        kind = Identity(login).type
        return contract().complete(
            "simple-user", {"login": login, "id": number, "type": kind, "url": f"{self.base}/users/{login}"}
        )

    def private_user(self, login: str) -> dict[str, Any]:
        return contract().complete("private-user", {**self.user(login), "name": login})

    def repo(self, repo: Repo, schema: str = "full-repository") -> dict[str, Any]:
        owner, name = repo.full_name.split("/")
        return contract().complete(
            schema,
            {
                "id": 1,
                "name": name,
                "full_name": repo.full_name,
                "owner": self.user(owner),
                "private": repo.private,
                "has_issues": repo.has_issues,
                "default_branch": repo.default_branch,
                "url": f"{self.base}/repos/{repo.full_name}",
                "html_url": f"{self.base}/{repo.full_name}",
                "visibility": "private" if repo.private else "public",
            },
        )

    def label(self, repo: Repo, label: dict[str, Any]) -> dict[str, Any]:
        url = f"{self.base}/repos/{repo.full_name}/labels/{label['name']}"
        return contract().complete("label", {**label, "node_id": f"L{label['id']}", "url": url})

    def issue(self, repo: Repo, issue: Issue, schema: str = "issue") -> dict[str, Any]:
        kind = "pull" if issue.head else "issues"
        api = f"{self.base}/repos/{repo.full_name}"
        values = {
            "id": issue.id,
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "state_reason": issue.state_reason,
            "user": self.user(issue.user),
            "labels": [self.label(repo, repo.labels[name]) for name in issue.labels if name in repo.labels],
            "comments": len(issue.comments),
            "created_at": issue.created,
            "updated_at": issue.updated,
            "closed_at": issue.closed,
            "closed_by": self.user(issue.closed_by) if issue.closed_by else None,
            "author_association": "NONE",
            "url": f"{api}/issues/{issue.number}",
            "html_url": f"{self.base}/{repo.full_name}/{kind}/{issue.number}",
            "repository_url": api,
            "comments_url": f"{api}/issues/{issue.number}/comments",
        }
        if issue.head:
            names = ("url", "html_url", "diff_url", "patch_url")
            values["pull_request"] = dict.fromkeys(names, f"{api}/pulls/{issue.number}")
        return contract().complete(schema, values)

    def comment(self, repo: Repo, issue: Issue, comment: Comment) -> dict[str, Any]:
        api = f"{self.base}/repos/{repo.full_name}/issues"
        return contract().complete(
            "issue-comment",
            {
                "id": comment.id,
                "body": comment.body,
                "user": self.user(comment.user),
                "created_at": comment.created,
                "updated_at": comment.updated,
                "author_association": "NONE",
                "url": f"{api}/comments/{comment.id}",
                "issue_url": f"{api}/{issue.number}",
                "html_url": f"{self.base}/{repo.full_name}/issues/{issue.number}#issuecomment-{comment.id}",
            },
        )

    def reaction(self, entry: tuple[int, str, str]) -> dict[str, Any]:
        number, login, content = entry
        return contract().complete("reaction", {"id": number, "user": self.user(login), "content": content})

    def pull(self, repo: Repo, issue: Issue, schema: str = "pull-request") -> dict[str, Any]:
        api = f"{self.base}/repos/{repo.full_name}"
        owner = repo.full_name.split("/")[0]
        head_repo = Repo(issue.head_repo or repo.full_name, private=repo.private)
        whole = schema == "pull-request"

        def side(label: str, ref: str, sha: str, of: Repo) -> dict[str, Any]:
            full = self.repo(of, "repository")
            user = self.user(of.full_name.split("/")[0])
            return {"label": label, "ref": ref, "sha": sha, "repo": full, "user": user}

        link = {"href": f"{api}/pulls/{issue.number}"}
        names = ("comments", "commits", "statuses", "html", "issue", "review_comments", "review_comment", "self")
        values = {
            "id": issue.id,
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "state": issue.state,
            "user": self.user(issue.user),
            "labels": [self.label(repo, repo.labels[name]) for name in issue.labels if name in repo.labels],
            "head": side(f"{head_repo.full_name.split('/')[0]}:patch", "patch", issue.head, head_repo),
            "base": side(f"{owner}:{issue.base}", issue.base, issue.base_sha, repo),
            "created_at": issue.created,
            "updated_at": issue.updated,
            "closed_at": issue.closed,
            "merged_at": None,
            "author_association": "NONE",
            "auto_merge": None,
            "_links": dict.fromkeys(names, link),
            "url": f"{api}/pulls/{issue.number}",
            "html_url": f"{self.base}/{repo.full_name}/pull/{issue.number}",
            "issue_url": f"{api}/issues/{issue.number}",
            **({"changed_files": len(issue.files), "mergeable_state": "clean"} if whole else {}),
        }
        return contract().complete(schema, values)

    def check_run(self, repo: Repo, run: dict[str, Any]) -> dict[str, Any]:
        output = run.get("output") or {}
        values = {
            **{k: v for k, v in run.items() if k not in ("output", "app_slug")},
            "url": f"{self.base}/repos/{repo.full_name}/check-runs/{run['id']}",
            "html_url": f"{self.base}/{repo.full_name}/runs/{run['id']}",
            "details_url": run.get("details_url"),
            "external_id": run.get("external_id", ""),
            "check_suite": {"id": 1},
            "pull_requests": [],
            "output": {
                "title": output.get("title"),
                "summary": output.get("summary"),
                "text": output.get("text"),
                "annotations_count": len(run.get("annotations", [])),
                "annotations_url": f"{self.base}/repos/{repo.full_name}/check-runs/{run['id']}/annotations",
            },
        }
        values.pop("annotations", None)
        return contract().complete("check-run", values)
