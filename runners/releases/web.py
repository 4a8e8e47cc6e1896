"""Download from vendors' sites: resumed or started again after an interruption, never weaker than asked for.

Certificates are always checked, a redirect from https to http is refused, and a body that is not as long as the server
said it would be is fetched again from where it broke off.
"""

from __future__ import annotations

import hashlib
import json
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx
from filelock import FileLock
from tenacity import Retrying, before_sleep_log, retry_if_exception, stop_after_attempt, wait_exponential

from runners.errors import SourceUnavailable

CONNECT_SECONDS = 20.0
#: Between two pieces of a body.
READ_SECONDS = 60.0
ATTEMPTS = 4
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
#: A page of versions or checksums; the longest real one has 2 MiB.
PAGE_BYTES = 16 << 20
#: No release is larger; debug builds of MySQL have about 1.5 GiB.
ARCHIVE_BYTES = 8 << 30

T = TypeVar("T")

_log = logging.getLogger(__name__)


class _Temporary(Exception):
    """A server that asks to come back later."""


def _worth_another_try(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):  # no such name, or no network at all: waiting does not help
            return False
        cause = cause.__cause__ or cause.__context__
    return isinstance(error, httpx.TransportError | _Temporary)


class Web:
    """One client for one source; half-finished downloads are kept below `partial`."""

    def __init__(self, partial: Path) -> None:
        self._partial = partial
        self._client = httpx.Client(
            follow_redirects=True,
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            headers={"User-Agent": "pointdrop"},
            event_hooks={"response": [_no_downgrade]},
        )
        self._retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS),
            retry=retry_if_exception(_worth_another_try),
            before_sleep=before_sleep_log(_log, logging.INFO),
            reraise=True,
        )

    def text(self, url: str) -> str:
        """The body of a page; SourceUnavailable names the address and what the server said."""

        def get() -> str:
            with self._client.stream("GET", url) as response:
                _check(response, url)
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > PAGE_BYTES:
                        raise SourceUnavailable(f"{url}: the page is longer than {PAGE_BYTES} bytes")
                return body.decode(response.encoding or "utf-8", errors="replace")

        return self._tried(get, url)

    def download(self, url: str, path: Path) -> None:
        """Bring `url` into the file `path`, which appears only when it is complete."""
        self._partial.mkdir(parents=True, exist_ok=True)
        part = self._partial / hashlib.sha256(url.encode()).hexdigest()[:32]
        with FileLock(f"{part}.lock"):
            self._tried(lambda: self._continue(url, part), url)
            part.replace(path)
            _state(part).unlink(missing_ok=True)

    def _tried(self, act: Callable[[], T], url: str) -> T:
        try:
            return self._retrying(act)
        except (httpx.HTTPError, httpx.InvalidURL, _Temporary) as error:
            raise SourceUnavailable(f"{url}: {error or type(error).__name__}") from error

    def _continue(self, url: str, part: Path) -> None:
        """Append what is missing to `part`, or begin again when the server's file is another one by now."""
        have = part.stat().st_size if part.is_file() and _state(part).is_file() else 0
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": json.loads(_state(part).read_text())["validator"]}
        with self._client.stream("GET", url, headers=headers) as response:
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink()
                raise _Temporary(f"{url}: what was there before does not fit; starting again")
            _check(response, url)
            resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
            validator = response.headers.get("ETag") or response.headers.get("Last-Modified")
            if validator and not validator.startswith("W/"):
                _state(part).write_text(json.dumps({"url": url, "validator": validator}))
            else:
                _state(part).unlink(missing_ok=True)
            written = have if resumed else 0
            with part.open("ab" if resumed else "wb") as out:
                for chunk in response.iter_bytes():
                    written += len(chunk)
                    if written > ARCHIVE_BYTES:
                        raise SourceUnavailable(f"{url}: longer than {ARCHIVE_BYTES} bytes, which no release is")
                    out.write(chunk)


def _state(part: Path) -> Path:
    return part.with_suffix(".json")


def _no_downgrade(response: httpx.Response) -> None:
    # Read from the header: when httpx follows redirects itself, `next_request` is never set.
    if response.has_redirect_location and response.url.scheme == "https":
        following = response.url.join(response.headers["Location"])
        if following.scheme != "https":
            raise SourceUnavailable(f"{response.url} redirects to {following}, which is not encrypted; refused")


def _check(response: httpx.Response, url: str) -> None:
    status = response.status_code
    if status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise _Temporary(f"{url}: the server answers {status} {response.reason_phrase}")
    if status not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
        raise SourceUnavailable(f"{url}: the server answers {status} {response.reason_phrase}")
