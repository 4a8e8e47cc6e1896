"""Who we are on GitHub: a token or a GitHub App, github.com or GitHub Enterprise Server, and which repository.

| variable | meaning |
| --- | --- |
| `GITHUB_TOKEN` | the workflow's token, or a person's |
| `GITHUB_REPOSITORY` | `owner/name` that gets the issues |
| `GITHUB_API_URL` | `https://api.github.com`, or `https://HOST/api/v3` on GHES |
| `POINTDROP_APP_ID`, `POINTDROP_APP_KEY` or `POINTDROP_APP_KEY_FILE` | a GitHub App instead of a token |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.serialization import load_pem_private_key
from github import Auth, Github, GithubException, GithubIntegration, GithubRetry, RateLimitExceededException
from requests import RequestException

from alerts.errors import TrackerRefused, TrackerUnavailable
from alerts.settings import GitHub as Settings
from alerts.trackers.once import translated
from history.errors import BadSettings

API_URL = "https://api.github.com"
#: A request that takes longer is taken to be lost, in seconds.
TIMEOUT = 30
#: Issues, comments, check runs: GitHub gives at most so many a page.
PER_PAGE = 100
#: POST is not in it: repeated blindly after a lost answer it would make a second issue. See `trackers.once`.
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "PATCH", "DELETE"})

_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


class Account(NamedTuple):
    """A connection, the repository, and the logins whose texts are our own."""

    github: Github
    repository: str
    logins: frozenset[str]


def account_from(environment: Mapping[str, str], settings: Settings) -> Account:
    """Connect with what the environment holds. BadSettings says which variable is missing or wrong."""
    repository = environment.get("GITHUB_REPOSITORY", "")
    if not _REPOSITORY.fullmatch(repository):
        raise BadSettings(f"GITHUB_REPOSITORY is {repository!r}; set it to owner/name, or use `--tracker files`.")
    url = (environment.get("GITHUB_API_URL") or API_URL).rstrip("/")
    if environment.get("POINTDROP_APP_ID"):
        return _as_app(environment, repository, url, settings)
    token = environment.get("GITHUB_TOKEN", "")
    if not token:
        raise BadSettings("GITHUB_TOKEN is not set; set it, or use `--tracker files`.")
    connection = _connect(Auth.Token(token), url, settings)
    return Account(connection, repository, _logins(connection, settings))


def retry(settings: Settings) -> GithubRetry:
    """Repeats what can be repeated: never a POST, PATCH too, 429 too, and no wait of an hour."""
    return GithubRetry(
        total=settings.attempts,
        backoff_factor=settings.backoff_seconds,
        secondary_rate_wait=min(60.0, 30 * settings.backoff_seconds),
        max_rate_limit_wait=settings.longest_wait_seconds,
        status_forcelist=[429, *range(500, 600)],
        allowed_methods=REPEATABLE,
    )


def _connect(auth: Auth.Auth, url: str, settings: Settings) -> Github:
    return Github(
        auth=auth,
        base_url=url,
        timeout=TIMEOUT,
        per_page=PER_PAGE,
        retry=retry(settings),
        seconds_between_requests=0,
        seconds_between_writes=settings.seconds_between_writes,
        user_agent="pointdrop",
        # An object is asked for when something of it is read, not when it is named.
        lazy=True,
    )


def _logins(connection: Github, settings: Settings) -> frozenset[str]:
    """Our login; GITHUB_TOKEN may not ask for its own, so the configured bots count as well."""
    try:
        return frozenset({connection.get_user().login, *settings.bots})
    except GithubException as error:
        if error.status == 401:
            raise TrackerRefused("GitHub does not know this GITHUB_TOKEN; it is wrong or has expired.") from error
        # A limit says nothing of who we are; without our login our own issues would be taken for other people's.
        if isinstance(error, RateLimitExceededException) or error.status == 429 or error.status >= 500:
            raise translated(error) from error
        return frozenset(settings.bots)
    except RequestException as error:
        raise TrackerUnavailable(f"GitHub does not answer: {error}") from error


def _as_app(environment: Mapping[str, str], repository: str, url: str, settings: Settings) -> Account:
    key = environment.get("POINTDROP_APP_KEY", "")
    file = environment.get("POINTDROP_APP_KEY_FILE", "")
    try:
        key = key or Path(file).read_text(encoding="utf-8")
        load_pem_private_key(key.encode(), password=None)
    except OSError as error:
        raise BadSettings(f"POINTDROP_APP_ID is set, but its private key cannot be read: {error}") from error
    except (ValueError, TypeError) as error:
        raise BadSettings(f"the private key of the GitHub App is no PEM key without a password: {error}") from None
    app = Auth.AppAuth(environment["POINTDROP_APP_ID"], key)
    integration = GithubIntegration(auth=app, base_url=url, retry=retry(settings), timeout=TIMEOUT)
    owner, name = repository.split("/")
    try:
        installation = integration.get_repo_installation(owner, name)
        slug = integration.get_app().slug
        connection = _connect(app.get_installation_auth(installation.id), url, settings)
    except GithubException as error:
        raise TrackerRefused(
            f"GitHub App {environment['POINTDROP_APP_ID']} cannot be used on {repository}: {error}. "
            "Check the key, and that the app is installed there with write access to issues."
        ) from error
    except RequestException as error:
        raise TrackerUnavailable(f"GitHub does not answer: {error}") from error
    return Account(connection, repository, frozenset({f"{slug}[bot]", *settings.bots}))
