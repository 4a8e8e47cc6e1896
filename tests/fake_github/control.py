"""Seeding and looking at a fake GitHub that runs as a process, over `/_fake`.

| request | effect |
| --- | --- |
| `POST /_fake/seed` | the tokens and repositories of the body are added, see below |
| `POST /_fake/fault` | `{"kind", "pattern", "times"}` is planned, see `faults.Fault` |
| `GET /_fake/state` | everything, as JSON |
| `GET /_fake/violations` | what did not fit GitHub's description |

```
{"tokens": {TOKEN: {"login": L, "kind": "person|workflow|app", "permissions": {"issues": "write"}}},
 "repos": {"o/r": {"private": false, "roles": {"mark": "write"},
                   "issues": [{"user": L, "title": T, "body": B, "labels": [], "head": SHA of a pull request,
                               "comments": [{"user": L, "body": B}]}],
                   "runs": [], "artifacts": []}}}
```
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tests.fake_github.faults import Fault
from tests.fake_github.state import Identity, Repo

if TYPE_CHECKING:
    from tests.fake_github.server import FakeGitHub


def seed(server: FakeGitHub, data: dict[str, Any]) -> None:
    """Add what `data` describes."""
    state = server.state
    for token, identity in data.get("tokens", {}).items():
        state.tokens[token] = Identity(**identity)
    for name, values in data.get("repos", {}).items():
        plain = {key: value for key, value in values.items() if key != "issues"}
        repo = state.repos.setdefault(name, Repo(name))
        for key, value in plain.items():
            setattr(repo, key, value)
        for issue in values.get("issues", []):
            comments = issue.pop("comments", [])
            made = state.add_issue(repo, issue.pop("user"), issue.pop("title"), **issue)
            for comment in comments:
                state.add_comment(made, **comment)


def control(server: FakeGitHub, method: str, path: str, body: Any) -> tuple[int, Any]:
    """Answer a request below `/_fake`."""
    match method, path:
        case "POST", "/_fake/seed":
            seed(server, body)
            return 204, None
        case "POST", "/_fake/fault":
            server.faults.add(Fault(**body))
            return 204, None
        case "GET", "/_fake/state":
            repos = {name: asdict(repo) for name, repo in server.state.repos.items()}
            return 200, {"repos": repos, "requests": server.requests, "faults_hit": server.faults.hit}
        case "GET", "/_fake/violations":
            return 200, server.violations
    return 404, {"message": f"no {method} {path}"}
