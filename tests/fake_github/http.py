"""Requests, answers and refusals, in GitHub's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fake_github.state import WRITE_ROLES, Identity, Repo, State

if TYPE_CHECKING:
    from tests.fake_github.shapes import Shapes

DOCS = "https://docs.github.com/rest"


class Refused(Exception):
    """An answer that is not the one asked for."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        self.status = status
        self.body = {"message": message, "documentation_url": DOCS, "status": str(status), **more}
        super().__init__(message)


def invalid(resource: str, field_name: str, message: str, code: str = "custom") -> Refused:
    error = {"resource": resource, "code": code, "field": field_name, "message": message}
    return Refused(422, "Validation Failed", errors=[error])


@dataclass
class Request:
    """One request, with what its handler needs."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    who: Identity | None
    state: State
    shapes: Shapes
    base: str
    token: str = ""
    args: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the answer."""

    @property
    def repo(self) -> Repo:
        """The repository of the path, if the caller may see it."""
        repo = self.state.repos.get(f"{self.args['owner']}/{self.args['repo']}")
        if repo is None or (repo.private and not self._reads(repo)):
            raise Refused(404, "Not Found")
        return repo

    def _reads(self, repo: Repo) -> bool:
        if self.who is None:
            return False
        return self.who.kind != "person" or repo.role(self.who.login) != "none"

    def may(self, permission: str, repo: Repo) -> bool:
        """Whether the caller may write `permission` (`issues`, `checks`, ...)."""
        if self.who is None:
            return False
        if self.who.kind == "person":
            return repo.role(self.who.login) in WRITE_ROLES
        return self.who.permissions.get(permission) == "write"

    def login(self) -> str:
        if self.who is None:
            raise Refused(401, "Requires authentication")
        return self.who.login

    def need(self, permission: str, repo: Repo) -> str:
        """The caller's login, if it may write `permission`; the refusals are GitHub's."""
        login = self.login()
        if not self.may(permission, repo):
            person = self.who is not None and self.who.kind == "person"
            raise Refused(
                403, "Must have admin rights to Repository." if person else "Resource not accessible by integration"
            )
        return login

    def page(self, items: Sequence[Any], shape: Callable[[Any], Any]) -> list[Any]:
        """One page of `items`, with the Link header of the others."""
        per_page = min(100, max(1, int(self.query.get("per_page", 30))))
        page = max(1, int(self.query.get("page", 1)))
        last = max(1, -(-len(items) // per_page))
        links = {"first": 1, "prev": page - 1, "next": page + 1, "last": last}
        rest = "&".join(f"{k}={v}" for k, v in self.query.items() if k != "page")
        shown = [
            f'<{self.base}{self.path}?{rest}{"&" if rest else ""}page={number}>; rel="{name}"'
            for name, number in links.items()
            if 1 <= number <= last and (name in ("prev", "next") or last > 1) and number != page
        ]
        if shown:
            self.headers["Link"] = ", ".join(shown)
        return [shape(item) for item in items[(page - 1) * per_page : page * per_page]]


Handler = Callable[[Request], tuple[int, Any]]


class Routes:
    """Handlers by method and path, in the order they were added."""

    def __init__(self) -> None:
        self.table: list[tuple[str, re.Pattern[str], Handler]] = []

    def __call__(self, method: str, path: str) -> Callable[[Handler], Handler]:
        pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))

        def add(handler: Handler) -> Handler:
            self.table.append((method, pattern, handler))
            return handler

        return add

    def find(self, method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
        for wanted, pattern, handler in self.table:
            match = pattern.fullmatch(path)
            if match and wanted == method:
                return handler, match.groupdict()
        return None
