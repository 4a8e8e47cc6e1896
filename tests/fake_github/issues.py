"""Issues, comments, labels and reactions."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from tests.fake_github.http import Refused, Request, Routes, invalid
from tests.fake_github.state import Comment, Issue, Repo, now

#: GitHub's limits, in characters.
BODY, TITLE, LABEL = 65_536, 256, 50

routes = Routes()
REPO = "/repos/{owner}/{repo}"
REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def one_issue(request: Request, repo: Repo) -> Issue:
    issue = repo.issues.get(int(request.args["number"]))
    if issue is None:
        raise Refused(404, "Not Found")
    if issue.deleted:
        raise Refused(410, "This issue was deleted")
    if issue.moved_to:
        request.headers["Location"] = f"{request.base}/repos/{issue.moved_to}"
        raise Refused(301, "Moved Permanently", url=request.headers["Location"])
    return issue


def check_text(resource: str, title: Any, body: Any) -> None:
    if title is not None and (not str(title).strip()):
        raise invalid(resource, "title", "title can't be blank", "missing_field")
    if title is not None and len(str(title)) > TITLE:
        raise invalid(resource, "title", f"title is too long (maximum is {TITLE} characters)")
    if body is not None and len(body) > BODY:
        raise invalid(resource, "body", f"body is too long (maximum is {BODY} characters)")


def label_names(request: Request, repo: Repo, wanted: Any) -> list[str]:
    """Names of labels, made when they are missing."""
    entries = wanted.get("labels", []) if isinstance(wanted, dict) else wanted or []
    names = [entry if isinstance(entry, str) else entry["name"] for entry in entries]
    for name in names:
        if len(name) > LABEL:
            raise invalid("Label", "name", f"name is too long (maximum is {LABEL} characters)")
        if name not in repo.labels:
            request.state.add_label(repo, name)
    return list(dict.fromkeys(names))


@routes("GET", f"{REPO}/issues")
def list_issues(request: Request) -> tuple[int, Any]:
    repo = request.repo
    found = []
    for issue in repo.issues.values():
        if issue.hidden_for > 0:
            issue.hidden_for -= 1
            continue
        wanted = request.query.get("state", "open")
        labels = [name for name in request.query.get("labels", "").split(",") if name]
        shown = (
            not issue.deleted
            and not issue.moved_to
            and (wanted == "all" or issue.state == wanted)
            and all(name in issue.labels for name in labels)
            and request.query.get("creator", issue.user) == issue.user
            and issue.updated >= request.query.get("since", "")
        )
        if shown:
            found.append(issue)
    found.sort(
        key=lambda issue: (issue.created, issue.number), reverse=request.query.get("direction", "desc") == "desc"
    )
    return 200, request.page(found, lambda issue: request.shapes.issue(repo, issue))


@routes("POST", f"{REPO}/issues")
def create_issue(request: Request) -> tuple[int, Any]:
    repo, login = request.repo, request.login()
    if not repo.has_issues:
        raise Refused(410, "Issues has been disabled in this repository.")
    if request.who and request.who.kind != "person" and not request.may("issues", repo):
        request.need("issues", repo)
    body = request.body
    check_text("Issue", body.get("title"), body.get("body"))
    # Without push access GitHub drops the labels and says nothing.
    labels = label_names(request, repo, body.get("labels")) if request.may("issues", repo) else []
    issue = request.state.add_issue(repo, login, str(body["title"]), body.get("body") or "", labels)
    request.headers["Location"] = f"{request.base}/repos/{repo.full_name}/issues/{issue.number}"
    return 201, request.shapes.issue(repo, issue)


@routes("GET", f"{REPO}/issues/{{number}}")
def get_issue(request: Request) -> tuple[int, Any]:
    repo = request.repo
    return 200, request.shapes.issue(repo, one_issue(request, repo))


@routes("PATCH", f"{REPO}/issues/{{number}}")
def edit_issue(request: Request) -> tuple[int, Any]:
    repo = request.repo
    issue, body = one_issue(request, repo), request.body or {}
    login = request.need("issues", repo)
    check_text("Issue", body.get("title"), body.get("body"))
    issue.title = str(body["title"]) if body.get("title") is not None else issue.title
    if "body" in body:
        issue.body = body["body"] or ""
    if "labels" in body:
        issue.labels = label_names(request, repo, body["labels"])
    if body.get("state") == "closed" and issue.state == "open":
        request.state.close(issue, login, body.get("state_reason") or "completed")
    elif body.get("state") == "open" and issue.state == "closed":
        request.state.reopen(issue)
    issue.updated = now()
    return 200, request.shapes.issue(repo, issue)


@routes("GET", f"{REPO}/issues/{{number}}/comments")
def list_comments(request: Request) -> tuple[int, Any]:
    repo = request.repo
    issue = one_issue(request, repo)
    since = request.query.get("since", "")
    comments = [comment for comment in issue.comments if comment.updated >= since]
    return 200, request.page(comments, lambda comment: request.shapes.comment(repo, issue, comment))


@routes("POST", f"{REPO}/issues/{{number}}/comments")
def create_comment(request: Request) -> tuple[int, Any]:
    repo = request.repo
    issue, login = one_issue(request, repo), request.login()
    if request.who and request.who.kind != "person":
        # Comments on a pull request go with either permission.
        allowed = request.may("issues", repo) or (bool(issue.head) and request.may("pull-requests", repo))
        if not allowed:
            request.need("issues", repo)
    check_text("IssueComment", None, request.body.get("body"))
    if not request.body.get("body", "").strip():
        raise invalid("IssueComment", "body", "body can't be blank", "missing_field")
    comment = request.state.add_comment(issue, login, request.body["body"])
    return 201, request.shapes.comment(repo, issue, comment)


def one_comment(request: Request, repo: Repo) -> tuple[Issue, Comment]:
    for issue in repo.issues.values():
        for comment in issue.comments:
            if comment.id == int(request.args["comment"]) and not issue.deleted:
                return issue, comment
    raise Refused(404, "Not Found")


@routes("GET", f"{REPO}/issues/comments/{{comment}}")
def get_comment(request: Request) -> tuple[int, Any]:
    repo = request.repo
    return 200, request.shapes.comment(repo, *one_comment(request, repo))


@routes("PATCH", f"{REPO}/issues/comments/{{comment}}")
def edit_comment(request: Request) -> tuple[int, Any]:
    repo = request.repo
    issue, comment = one_comment(request, repo)
    if request.login() != comment.user and not request.may("issues", repo):
        request.need("issues", repo)
    check_text("IssueComment", None, request.body.get("body"))
    comment.body, comment.updated = request.body["body"], now()
    return 200, request.shapes.comment(repo, issue, comment)


@routes("DELETE", f"{REPO}/issues/comments/{{comment}}")
def delete_comment(request: Request) -> tuple[int, Any]:
    repo = request.repo
    issue, comment = one_comment(request, repo)
    request.need("issues", repo)
    issue.comments.remove(comment)
    return 204, None


def react(request: Request, to: Issue | Comment) -> tuple[int, Any]:
    login, content = request.login(), request.body.get("content")
    if content not in REACTIONS:
        raise invalid("Reaction", "content", "content is not a valid reaction", "invalid")
    for entry in to.reactions:
        if entry[1:] == (login, content):
            return 200, request.shapes.reaction(entry)
    to.reactions.append((next(request.state.ids), login, content))
    return 201, request.shapes.reaction(to.reactions[-1])


@routes("POST", f"{REPO}/issues/comments/{{comment}}/reactions")
def react_to_comment(request: Request) -> tuple[int, Any]:
    return react(request, one_comment(request, request.repo)[1])


@routes("POST", f"{REPO}/issues/{{number}}/reactions")
def react_to_issue(request: Request) -> tuple[int, Any]:
    return react(request, one_issue(request, request.repo))


def shown_labels(request: Request, repo: Repo, issue: Issue) -> list[Any]:
    return [request.shapes.label(repo, repo.labels[name]) for name in issue.labels if name in repo.labels]


@routes("GET", f"{REPO}/issues/{{number}}/labels")
def labels_of_issue(request: Request) -> tuple[int, Any]:
    repo = request.repo
    return 200, shown_labels(request, repo, one_issue(request, repo))


@routes("POST", f"{REPO}/issues/{{number}}/labels")
def add_labels(request: Request) -> tuple[int, Any]:
    repo = request.repo
    issue = one_issue(request, repo)
    request.need("issues", repo)
    issue.labels = list(dict.fromkeys([*issue.labels, *label_names(request, repo, request.body)]))
    issue.updated = now()
    return 200, shown_labels(request, repo, issue)


@routes("DELETE", f"{REPO}/issues/{{number}}/labels/{{name}}")
def take_label_off(request: Request) -> tuple[int, Any]:
    repo = request.repo
    issue, name = one_issue(request, repo), unquote(request.args["name"])
    request.need("issues", repo)
    if name not in issue.labels:
        raise Refused(404, "Label does not exist")
    issue.labels.remove(name)
    return 200, shown_labels(request, repo, issue)


@routes("GET", f"{REPO}/labels")
def list_labels(request: Request) -> tuple[int, Any]:
    repo = request.repo
    return 200, request.page(list(repo.labels.values()), lambda label: request.shapes.label(repo, label))


@routes("POST", f"{REPO}/labels")
def create_label(request: Request) -> tuple[int, Any]:
    repo = request.repo
    request.need("issues", repo)
    name = request.body["name"]
    if name in repo.labels:
        raise invalid("Label", "name", "name has already been taken", "already_exists")
    color, description = request.body.get("color", "ededed"), request.body.get("description")
    return 201, request.shapes.label(repo, request.state.add_label(repo, name, color, description))


@routes("GET", f"{REPO}/labels/{{name}}")
def get_label(request: Request) -> tuple[int, Any]:
    repo, name = request.repo, unquote(request.args["name"])
    if name not in repo.labels:
        raise Refused(404, "Not Found")
    return 200, request.shapes.label(repo, repo.labels[name])


@routes("GET", "/search/issues")
def search(request: Request) -> tuple[int, Any]:
    """Words of the query in the body; only what lists show already, so search lags at least as they do."""
    words = [word for word in request.query.get("q", "").split() if ":" not in word]
    found: list[Any] = []
    for repo in request.state.repos.values():
        for issue in repo.issues.values():
            if issue.hidden_for <= 0 and not issue.deleted and all(word in issue.body for word in words):
                found.append(request.shapes.issue(repo, issue, "issue-search-result-item"))
    return 200, {"total_count": len(found), "incomplete_results": False, "items": found}
