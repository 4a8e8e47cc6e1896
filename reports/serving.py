"""Serves the site on this machine only, and makes it anew when the history has changed. For reading while working."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from history.errors import HistoryError
from history.store import Store
from reports.errors import ReportError
from reports.settings import ReportSettings
from reports.site import build

#: Only this machine: the site has no access control.
ADDRESS = "127.0.0.1"
#: A history that is no file is looked at again after so many seconds.
RECHECK_SECONDS = 30


def state_of(url: str) -> str:
    """Changes when the history may have changed: the database's files, or the time where it is no file."""
    database = make_url(url).database if url.startswith("sqlite") else None
    if not database:
        return str(int(time.monotonic() / RECHECK_SECONDS))
    states = []
    for path in (Path(database), Path(f"{database}-wal")):
        if path.is_file() and path.stat().st_size:
            states.append(f"{path.stat().st_mtime_ns} {path.stat().st_size}")
    return " ".join(states)


class LiveSite:
    """A folder that follows a history: `refresh` rebuilds when the history's state differs from the last build's."""

    def __init__(self, url: str, out: Path, settings: Callable[[], ReportSettings], say: Callable[[str], None]) -> None:
        self._url, self._out, self._settings, self._say = url, out, settings, say
        self._lock = threading.Lock()
        self._built: str | None = None

    def refresh(self) -> bool:
        """True when something was written. Requests that come together wait for one build."""
        with self._lock:
            before = state_of(self._url)  # what is appended while it builds is seen the next time
            if before == self._built:
                return False
            with Store.open(self._url) as store:
                report = build(store, self._out, self._settings())
            self._built = before
            if report.written or report.removed:
                self._say(f"built {report.written} files, removed {report.removed}")
            return bool(report.written)


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any, site: LiveSite, say: Callable[[str], None], **options: Any) -> None:
        self._site, self._say = site, say
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith((".html", "/")):
            try:
                self._site.refresh()
            except (HistoryError, ReportError) as error:  # the pages of the last build are still good
                self._say(f"the pages are not up to date: {error}")
        super().do_GET()

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: a line a request would hide what matters."""


def server(
    url: str, out: Path, settings: Callable[[], ReportSettings], *, port: int, say: Callable[[str], None]
) -> ThreadingHTTPServer:
    """A server that is bound and not yet running; `server_port` says where. ReportError when the port is taken."""
    site = LiveSite(url, out, settings, say)
    site.refresh()
    handler = functools.partial(_Handler, directory=str(out), site=site, say=say)
    try:
        return ThreadingHTTPServer((ADDRESS, port), handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ReportError(
            f"port {port} cannot be served: {reason}; name another with --port, 0 takes a free one"
        ) from error


def serve(
    url: str, out: Path, settings: Callable[[], ReportSettings], *, port: int, say: Callable[[str], None]
) -> None:
    """Serve until interrupted."""
    with server(url, out, settings, port=port, say=say) as running:
        say(f"http://{ADDRESS}:{running.server_port}/ (Ctrl-C stops)")
        running.serve_forever()
