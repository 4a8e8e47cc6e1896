"""Repositories, accounts, pull requests, check runs, statuses, Actions and Apps."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import unquote

import jwt

from tests.fake_github.contract import contract
from tests.fake_github.http import Refused, Request, Routes, invalid
from tests.fake_github.issues import REPO, one_issue
from tests.fake_github.state import Identity, Repo, now

routes = Routes()
#: GitHub's limits for a check run: annotations a request, characters of the summary.
ANNOTATIONS, SUMMARY = 50, 65_535


@routes("GET", "/user")
def user(request: Request) -> tuple[int, Any]:
    login = request.login()
    if request.who and request.who.kind != "person":
        raise Refused(403, "Resource not accessible by integration")
    return 200, request.shapes.private_user(login)


@routes("GET", "/rate_limit")
def rate_limit(request: Request) -> tuple[int, Any]:
    return 200, contract().complete("rate-limit-overview", {})


@routes("GET", REPO)
def repository(request: Request) -> tuple[int, Any]:
    return 200, request.shapes.repo(request.repo)


@routes("GET", f"{REPO}/collaborators/{{login}}/permission")
def permission(request: Request) -> tuple[int, Any]:
    repo, login = request.repo, unquote(request.args["login"])
    request.login()
    role = repo.role(login)
    simple = {"maintain": "write", "triage": "read"}.get(role, role)
    who = contract().complete("nullable-collaborator", {**request.shapes.user(login), "role_name": role})
    return 200, {"permission": simple, "role_name": role, "user": who}


@routes("GET", f"{REPO}/pulls")
def pulls(request: Request) -> tuple[int, Any]:
    repo, state, head = request.repo, request.query.get("state", "open"), request.query.get("head")
    found = [
        issue
        for issue in repo.issues.values()
        if issue.head and state in ("all", issue.state) and (not head or head.endswith(":patch"))
    ]
    return 200, request.page(found, lambda issue: request.shapes.pull(repo, issue, "pull-request-simple"))


@routes("GET", f"{REPO}/pulls/{{number}}")
def pull(request: Request) -> tuple[int, Any]:
    repo = request.repo
    issue = one_issue(request, repo)
    if not issue.head:
        raise Refused(404, "Not Found")
    return 200, request.shapes.pull(repo, issue)


@routes("GET", f"{REPO}/pulls/{{number}}/files")
def pull_files(request: Request) -> tuple[int, Any]:
    names = one_issue(request, request.repo).files
    return 200, request.page(
        names, lambda name: contract().complete("diff-entry", {"filename": name, "status": "modified"})
    )


@routes("GET", f"{REPO}/compare/{{basehead}}")
def compare_commits(request: Request) -> tuple[int, Any]:
    base, _, head = request.args["basehead"].partition("...")
    found = next((one for one in request.repo.issues.values() if (one.base_sha, one.head) == (base, head)), None)
    if found is None:
        raise Refused(404, "Not Found")
    merge_base = contract().complete("commit", {"sha": found.merge_base or base})
    return 200, contract().complete("commit-comparison", {"status": "ahead", "merge_base_commit": merge_base})


@routes("GET", f"{REPO}/commits/{{sha}}/pulls")
def pulls_of_commit(request: Request) -> tuple[int, Any]:
    repo, sha = request.repo, request.args["sha"]
    found = [issue for issue in repo.issues.values() if issue.head == sha]
    return 200, request.page(found, lambda issue: request.shapes.pull(repo, issue, "pull-request-simple"))


@routes("GET", f"{REPO}/commits/{{sha}}/check-runs")
def check_runs_of_commit(request: Request) -> tuple[int, Any]:
    repo, name = request.repo, request.query.get("check_name")
    found = [
        run
        for run in repo.check_runs.values()
        if run["head_sha"] == request.args["sha"] and name in (None, run["name"])
    ]
    shown = request.page(found, lambda run: request.shapes.check_run(repo, run))
    return 200, {"total_count": len(found), "check_runs": shown}


def check_output(request: Request) -> None:
    output = request.body.get("output") or {}
    if len(output.get("annotations", [])) > ANNOTATIONS:
        raise invalid("CheckRun", "annotations", f"exceeds a maximum quantity of {ANNOTATIONS}")
    if len(output.get("summary", "")) > SUMMARY:
        raise invalid("CheckRun", "summary", f"exceeds a maximum length of {SUMMARY}")


@routes("POST", f"{REPO}/check-runs")
def create_check_run(request: Request) -> tuple[int, Any]:
    repo = request.repo
    if request.who is None or request.who.kind == "person":
        raise Refused(403, "You must authenticate via a GitHub App.")
    request.need("checks", repo)
    check_output(request)
    run = {
        "id": next(request.state.ids),
        "status": "queued",
        "conclusion": None,
        "started_at": now(),
        "completed_at": None,
    }
    return update_check_run(request, repo, run, created=True)


@routes("PATCH", f"{REPO}/check-runs/{{run}}")
def edit_check_run(request: Request) -> tuple[int, Any]:
    repo = request.repo
    request.need("checks", repo)
    check_output(request)
    run = repo.check_runs.get(int(request.args["run"]))
    if run is None:
        raise Refused(404, "Not Found")
    return update_check_run(request, repo, run, created=False)


def update_check_run(request: Request, repo: Repo, run: dict[str, Any], *, created: bool) -> tuple[int, Any]:
    body = dict(request.body)
    annotations = (body.get("output") or {}).get("annotations", [])
    run.update(body)
    run["annotations"] = [*run.get("annotations", []), *annotations]
    if run.get("conclusion"):
        run["status"], run["completed_at"] = "completed", run.get("completed_at") or now()
    repo.check_runs[run["id"]] = run
    return 201 if created else 200, request.shapes.check_run(repo, run)


@routes("GET", f"{REPO}/check-runs/{{run}}")
def get_check_run(request: Request) -> tuple[int, Any]:
    repo = request.repo
    run = repo.check_runs.get(int(request.args["run"]))
    if run is None:
        raise Refused(404, "Not Found")
    return 200, request.shapes.check_run(repo, run)


@routes("POST", f"{REPO}/statuses/{{sha}}")
def create_status(request: Request) -> tuple[int, Any]:
    repo = request.repo
    login = request.need("statuses", repo)
    status = {**request.body, "sha": request.args["sha"], "id": next(request.state.ids)}
    repo.statuses.append(status)
    shown = {k: v for k, v in status.items() if k != "sha"}
    return 201, contract().complete("status", {"context": "default", **shown, "creator": request.shapes.user(login)})


@routes("POST", f"{REPO}/dispatches")
def repository_dispatch(request: Request) -> tuple[int, Any]:
    request.need("contents", request.repo)
    request.repo.dispatches.append({"type": "repository", **request.body})
    return 204, None


@routes("POST", f"{REPO}/actions/workflows/{{workflow}}/dispatches")
def workflow_dispatch(request: Request) -> tuple[int, Any]:
    request.need("actions", request.repo)
    request.repo.dispatches.append({"type": "workflow", "workflow": unquote(request.args["workflow"]), **request.body})
    return 204, None


@routes("GET", f"{REPO}/actions/runs")
def workflow_runs(request: Request) -> tuple[int, Any]:
    repo, sha = request.repo, request.query.get("head_sha")
    found = [run for run in repo.runs if sha in (None, run.get("head_sha"))]
    minimal = request.shapes.repo(repo, "minimal-repository")

    def shape(run: dict[str, Any]) -> dict[str, Any]:
        return contract().complete("workflow-run", {**run, "repository": minimal, "head_repository": minimal})

    return 200, {"total_count": len(found), "workflow_runs": request.page(found, shape)}


@routes("GET", f"{REPO}/actions/runs/{{run}}/artifacts")
def run_artifacts(request: Request) -> tuple[int, Any]:
    found = [one for one in request.repo.artifacts if one.get("run_id") == int(request.args["run"])]
    shown = request.page(
        found, lambda one: contract().complete("artifact", {k: v for k, v in one.items() if k != "run_id"})
    )
    return 200, {"total_count": len(found), "artifacts": shown}


# --- Apps ------------------------------------------------------------------------------------------------


def the_app(request: Request) -> tuple[str, dict[str, Any]]:
    """The App whose JWT the caller shows; its signature is checked."""
    try:
        # The issuer says which key to check with; nothing else is believed before that.
        padded = request.token.split(".")[1] + "=="
        issuer = re.search(r'"iss"\s*:\s*"?([^",}]+)', base64.urlsafe_b64decode(padded).decode())
        number = issuer[1] if issuer else ""
        app = request.state.apps[number]
        jwt.decode(request.token, app["public_key"], algorithms=["RS256"], options={"verify_iat": False})
    except (IndexError, KeyError, ValueError, jwt.PyJWTError):
        raise Refused(401, "A JSON web token could not be decoded") from None
    return number, app


@routes("GET", "/app")
def app(request: Request) -> tuple[int, Any]:
    number, found = the_app(request)
    owner = request.shapes.user("owner")
    values = {"id": int(number), "slug": found["slug"], "name": found["slug"], "owner": owner, "permissions": {}}
    return 200, contract().complete("integration", values)


def installation_shape(request: Request, number: str, found: dict[str, Any]) -> dict[str, Any]:
    values = {
        "id": int(number) + 1,
        "app_id": int(number),
        "app_slug": found["slug"],
        "account": request.shapes.user("owner"),
        "permissions": found["permissions"],
        "access_tokens_url": f"{request.base}/app/installations/{int(number) + 1}/access_tokens",
    }
    return contract().complete("installation", values)


@routes("GET", f"{REPO}/installation")
def repo_installation(request: Request) -> tuple[int, Any]:
    number, found = the_app(request)
    if f"{request.args['owner']}/{request.args['repo']}" not in request.state.repos:
        raise Refused(404, "Not Found")
    return 200, installation_shape(request, number, found)


@routes("GET", "/app/installations/{installation}")
def installation(request: Request) -> tuple[int, Any]:
    return 200, installation_shape(request, *the_app(request))


@routes("POST", "/app/installations/{installation}/access_tokens")
def installation_token(request: Request) -> tuple[int, Any]:
    _, found = the_app(request)
    token = f"ghs_{next(request.state.ids)}"
    request.state.tokens[token] = Identity(f"{found['slug']}[bot]", "app", dict(found["permissions"]))
    return 201, contract().complete("installation-token", {"token": token, "expires_at": "2099-01-01T00:00:00Z"})
