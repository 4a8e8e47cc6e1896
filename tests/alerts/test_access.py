"""Who we are on GitHub: tokens, Apps, GitHub Enterprise Server, and what is said when it does not work."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from alerts import AlertSettings
from alerts.errors import TrackerRefused, TrackerUnavailable
from alerts.marker import marker
from alerts.settings import Labels
from alerts.trackers import Draft
from alerts.trackers.access import account_from
from alerts.trackers.choose import tracker_for
from alerts.trackers.files import FilesTracker
from alerts.trackers.github import GitHubTracker
from history.errors import BadSettings
from tests.alerts.conftest import QUICK
from tests.fake_github import FakeGitHub, Fault
from tests.fake_github.faults import Kind

DRAFT = Draft(key="k", title="t", body=f"{marker('k')}\nx", labels=frozenset({"perf-regression"}))


@pytest.fixture(scope="module")
def keys() -> tuple[str, str]:
    """A private and a public key, PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def test_a_github_app_files_as_its_bot(fake: FakeGitHub, keys: tuple[str, str], tmp_path: Path) -> None:
    fake.app("42", "pointdrop", keys[1], issues="write", checks="write")
    key = tmp_path / "key.pem"
    key.write_text(keys[0])
    environment = {
        "POINTDROP_APP_ID": "42",
        "POINTDROP_APP_KEY_FILE": str(key),
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_API_URL": fake.url,
    }
    account = account_from(environment, QUICK)
    tracker = GitHubTracker(account, Labels(), QUICK)
    assert tracker.create(DRAFT).number == 1
    assert fake.state.repos["o/r"].issues[1].user == "pointdrop[bot]" and tracker.issues()[0].keys == ("k",)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"POINTDROP_APP_KEY_FILE": "/nowhere"}, "private key cannot be read"),
        ({"POINTDROP_APP_KEY": "nonsense"}, "private key"),
    ],
)
def test_an_app_without_a_key(more: dict[str, str], message: str, fake: FakeGitHub) -> None:
    environment = {"POINTDROP_APP_ID": "42", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": fake.url, **more}
    with pytest.raises(BadSettings, match=message):
        account_from(environment, QUICK)


def test_an_app_that_is_not_known(fake: FakeGitHub, keys: tuple[str, str]) -> None:
    environment = {"POINTDROP_APP_ID": "42", "POINTDROP_APP_KEY": keys[0], "GITHUB_REPOSITORY": "o/r"}
    with pytest.raises(TrackerRefused, match="installed there"):
        account_from({**environment, "GITHUB_API_URL": fake.url}, QUICK)


def test_github_enterprise_server_lives_below_a_path() -> None:
    with FakeGitHub(prefix="/api/v3") as ghes:
        ghes.token("t", "bot")
        ghes.repo("o/r", roles={"bot": "write"})
        environment = {"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": f"{ghes.url}/"}
        tracker = GitHubTracker(account_from(environment, QUICK), Labels(), QUICK)
        tracker.create(DRAFT)
        assert [issue.keys for issue in tracker.issues()] == [("k",)] and ghes.violations == []


def test_the_workflows_token_cannot_ask_who_it_is(fake: FakeGitHub) -> None:
    fake.token("ghs", "github-actions[bot]", "workflow", issues="write")
    environment = {"GITHUB_TOKEN": "ghs", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": fake.url}
    settings = AlertSettings().github.model_copy(update={"seconds_between_writes": 0, "backoff_seconds": 0})
    tracker = GitHubTracker(account_from(environment, settings), Labels(), settings)
    tracker.create(DRAFT)
    assert [issue.number for issue in tracker.issues()] == [1]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"GITHUB_TOKEN": "t"}, "GITHUB_REPOSITORY is ''"),
        ({"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "o/r/x"}, "owner/name"),
        ({"GITHUB_REPOSITORY": "o/r"}, "GITHUB_TOKEN is not set"),
    ],
)
def test_what_is_missing_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        account_from(environment, QUICK)


def test_nobody_answers() -> None:
    with FakeGitHub() as gone:
        url = gone.url
    quick = QUICK.model_copy(update={"attempts": 1})
    with pytest.raises(TrackerUnavailable):
        account_from({"GITHUB_TOKEN": "t", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": url}, quick)


@pytest.mark.parametrize("kind", ["primary", "secondary", "429"])
def test_a_limit_on_our_name_does_not_make_our_issues_foreign(kind: Kind, fake: FakeGitHub) -> None:
    fake.faults.add(Fault(kind, "GET /user", times=50, reset_in=3600))
    environment = {"GITHUB_TOKEN": "token_bot", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": fake.url}
    with pytest.raises(TrackerUnavailable):
        account_from(environment, QUICK.model_copy(update={"attempts": 2}))


def test_the_tracker_follows_the_environment(fake: FakeGitHub, tmp_path: Path) -> None:
    settings = AlertSettings(github=QUICK)
    github = {"GITHUB_TOKEN": "token_bot", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": fake.url}
    assert isinstance(tracker_for("auto", {}, tmp_path, settings), FilesTracker)
    assert isinstance(tracker_for("auto", {"GITHUB_TOKEN": "t"}, tmp_path, settings), FilesTracker)
    assert isinstance(tracker_for("files", github, tmp_path, settings), FilesTracker)
    assert tracker_for("auto", github, tmp_path, settings).name == "github:o/r"
    with pytest.raises(BadSettings, match="GITHUB_REPOSITORY"):
        tracker_for("github", {}, tmp_path, settings)
    with pytest.raises(BadSettings, match="no tracker"):
        tracker_for("jira", {}, tmp_path, settings)
