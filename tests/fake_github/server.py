"""The HTTP server: authentication, faults, routing, and the check of everything against the description."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.fake_github import issues, rest
from tests.fake_github.contract import contract
from tests.fake_github.control import control
from tests.fake_github.faults import Fault, Faults, limit_answer
from tests.fake_github.http import Refused, Request
from tests.fake_github.shapes import Shapes
from tests.fake_github.state import Identity, Issue, Repo, State

LIMITS = ("429", "retry_after", "primary", "secondary")
#: A server may live below a path, as GHES does.
GHES_PREFIX = "/api/v3"


class FakeGitHub:
    """The server; a context manager that serves in a thread."""

    def __init__(self, port: int = 0, prefix: str = "") -> None:
        self.state = State()
        self.faults = Faults()
        self.violations: list[str] = []
        self.requests: list[str] = []
        self.prefix = prefix
        fake = self

        class Handler(_Handler):
            server_state = fake

        self.http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}{prefix}"
        self.shapes = Shapes(self.url)
        self._thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> FakeGitHub:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.shutdown()
        self.http.server_close()

    # --- seeding, for tests in the same process -------------------------------------------------------------

    def token(self, token: str, login: str, kind: Any = "person", **permissions: str) -> str:
        granted = {name.replace("_", "-"): value for name, value in permissions.items()}
        self.state.tokens[token] = Identity(login, kind, granted)
        return token

    def repo(self, full_name: str, **values: Any) -> Repo:
        self.state.repos[full_name] = Repo(full_name, **values)
        return self.state.repos[full_name]

    def app(self, number: str, slug: str, public_key: str, **permissions: str) -> None:
        self.state.apps[number] = {"slug": slug, "public_key": public_key, "permissions": permissions}

    def pull(self, repo: Repo, user: str, head: str, head_repo: str = "", title: str = "A patch") -> Issue:
        return self.state.add_issue(repo, user, title, head=head, head_repo=head_repo)

    # --- one request ----------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, token: str, body: Any) -> tuple[int, dict[str, str], Any, Fault | None]:
        """Status, headers, JSON and the fault that was applied."""
        parts = urlsplit(target)
        path = parts.path.removeprefix(self.prefix)
        with self.state.lock:
            if path.startswith("/_fake/"):
                status, shown = control(self, method, path, body)
                return status, {}, shown, None
            self.requests.append(f"{method} {path}")
            fault = self.faults.next(method, path)
            if fault and fault.kind in LIMITS:
                status, headers, shown = limit_answer(fault)
                return status, headers, shown, fault
            if fault and fault.kind in ("before", "drop_before"):
                return 502, {}, {"message": "Server Error"}, fault
            status, headers, shown = self._handle(method, path, parts.query, token, body)
            if fault:
                return 502, {}, {"message": "Server Error"}, fault
            return status, headers, shown, None

    def _handle(self, method: str, path: str, query: str, token: str, body: Any) -> tuple[int, dict[str, str], Any]:
        asked = dict(parse_qsl(query, keep_blank_values=True))
        found = issues.routes.find(method, path) or rest.routes.find(method, path)
        request = Request(
            method, path, asked, body, self.state.tokens.get(token), self.state, self.shapes, self.url, token=token
        )
        try:
            if found is None:
                raise Refused(404, "Not Found")
            handler, request.args = found
            # An App shows a JWT; everything else must be a token we gave out.
            if token and request.who is None and token.count(".") != 2:
                raise Refused(401, "Bad credentials")
            status, shown = handler(request)
        except Refused as refused:
            status, shown = refused.status, refused.body
        problems = contract().problems(method, path, query=asked, body=body, status=status, answer=shown)
        # A request that is refused for its form breaks the description on purpose.
        if status != 422:
            self.violations += problems
        return status, request.headers, shown


class _Handler(BaseHTTPRequestHandler):
    """Turns HTTP into calls of `FakeGitHub.answer`."""

    server_state: FakeGitHub
    protocol_version = "HTTP/1.1"
    # Without these two every answer waits 40 ms for an acknowledgement.
    disable_nagle_algorithm = True
    wbufsize = -1

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else b""
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        token = token if scheme.lower() in ("token", "bearer") else ""
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            self._send(400, {}, {"message": "Problems parsing JSON"})
            return
        status, headers, shown, fault = self.server_state.answer(self.command, self.path, token, body)
        if fault and fault.kind in ("drop_before", "drop_after"):
            self.close_connection = True
            self.connection.close()
            return
        self._send(status, headers, shown)

    def _send(self, status: int, headers: dict[str, str], shown: Any) -> None:
        data = b"" if shown is None else json.dumps(shown).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the requests are in `FakeGitHub.requests`."""
