"""Posts that happen once: what to do when the answer to a POST is lost.

After a 5xx, a dropped connection or a time-out nobody knows whether the thing was made. So: wait, look for its marker,
and only post again when it is not there. Limits (403 with a rate-limit message, 429) made nothing and are waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from github import GithubException, RateLimitExceededException
from requests import RequestException
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from alerts.errors import IssueGone, TrackerError, TrackerRefused, TrackerUnavailable
from alerts.settings import GitHub as Settings

T = TypeVar("T")


class _Unknown(Exception):
    """The request may have been carried out."""


class _Limited(Exception):
    """Nothing was done; `wait` is how long GitHub asks for, in seconds."""

    def __init__(self, wait: float) -> None:
        self.wait = wait
        super().__init__(wait)


def post_once(find: Callable[[], T | None], post: Callable[[], T], settings: Settings) -> T:
    """The result of `post`, made at most once as far as `find` can see. TrackerError when it cannot be done."""
    first = True

    def attempt() -> T:
        nonlocal first
        try:
            existing = None if first else find()
            first = False
            return post() if existing is None else existing
        except RateLimitExceededException as error:
            raise _Limited(_asked_wait(error)) from error
        except GithubException as error:
            if error.status == 429:
                raise _Limited(_asked_wait(error)) from error
            if error.status >= 500:
                raise _Unknown(str(error)) from error
            raise
        except RequestException as error:
            raise _Unknown(str(error)) from error

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        backoff = settings.backoff_seconds * 2.0 ** (state.attempt_number - 1)
        if isinstance(error, _Limited):
            if error.wait > settings.longest_wait_seconds:
                raise TrackerUnavailable(
                    f"GitHub's rate limit lasts {error.wait:.0f} s more; the next sync does the rest."
                )
            return max(error.wait, backoff)
        return backoff

    retrying = Retrying(
        retry=retry_if_exception_type((_Unknown, _Limited)),
        wait=wait,
        stop=stop_after_attempt(settings.attempts),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except (_Unknown, _Limited) as error:
        raise TrackerUnavailable(f"GitHub did not answer {settings.attempts} times: {error}") from error


def _asked_wait(error: GithubException) -> float:
    """Seconds until GitHub wants to hear from us: Retry-After, else the reset of the limit, else a minute."""
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if str(headers.get("retry-after", "")).isdigit():
        return float(headers["retry-after"])
    reset = str(headers.get("x-ratelimit-reset", ""))
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        return max(0.0, int(reset) - time.time() + 1)
    return 0.0 if error.status == 429 else 60.0


def translated(error: Exception, number: int | None = None) -> TrackerError:
    """The room's error for one of PyGithub's or of the network."""
    if isinstance(error, TrackerError):
        return error
    if not isinstance(error, GithubException):
        return TrackerUnavailable(f"GitHub does not answer: {error}")
    message = error.data.get("message", error) if isinstance(error.data, dict) else error
    if number is not None and error.status in (404, 410):
        return IssueGone(number)
    if isinstance(error, RateLimitExceededException) or error.status == 429 or error.status >= 500:
        return TrackerUnavailable(f"GitHub answers {error.status}: {message}. The next sync does the rest.")
    advice = {
        401: "The token is wrong or has expired.",
        403: "The token needs write access to issues of this repository.",
        404: "Check GITHUB_REPOSITORY, and that the token may see it.",
        410: "Issues are switched off in this repository.",
    }.get(error.status, "")
    return TrackerRefused(f"GitHub answers {error.status}: {message}. {advice}".rstrip())
