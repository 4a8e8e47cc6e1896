"""One comment a pull request, edited in place, and one check run a commit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.errors import TrackerRefused
from alerts.marker import sticky_marker, sticky_of
from alerts.pull_requests import (
    SUMMARY_BUDGET,
    Annotation,
    Check,
    _fitting,
    comment_body,
    publish_check,
    publish_comment,
)
from alerts.render import Section
from alerts.safetext import Markdown
from alerts.trackers.access import Account, account_from
from tests.alerts.conftest import QUICK, GitHubPlace
from tests.fake_github import FakeGitHub, Fault
from tests.fake_github.state import Issue

SHA = "3f2a9c1" * 5 + "abcde"


def body(text: str, name: str = "compare") -> str:
    return comment_body(name, [Section("verdict", Markdown(text), 100)])


@pytest.fixture
def pull(fake: FakeGitHub) -> Issue:
    """A pull request from a fork."""
    return fake.pull(fake.state.repos["o/r"], "eve", SHA, head_repo="eve/r")


@pytest.fixture
def account(fake: FakeGitHub) -> Account:
    """What a workflow has: GITHUB_TOKEN, which cannot say who it is."""
    fake.token("ghs_workflow", "github-actions[bot]", "workflow", checks="write", pull_requests="write", issues="write")
    environment = {"GITHUB_TOKEN": "ghs_workflow", "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": fake.url}
    return account_from(environment, QUICK.model_copy(update={"bots": ("github-actions[bot]",)}))


def test_one_comment_is_edited_in_place(pull: Issue, account: Account) -> None:
    first = publish_comment(account, QUICK, pull.number, body("SAME"))
    assert publish_comment(account, QUICK, pull.number, body("DIFFERENT")) == first
    (comment,) = pull.comments
    assert comment.body == f"{sticky_marker('compare')}\n\nDIFFERENT" and comment.user == "github-actions[bot]"


def test_names_have_comments_of_their_own(pull: Issue, account: Account) -> None:
    publish_comment(account, QUICK, pull.number, body("a"))
    publish_comment(account, QUICK, pull.number, body("b", name="other"))
    assert [sticky_of(comment.body) for comment in pull.comments] == ["compare", "other"]


def test_a_forged_comment_is_not_ours(fake: FakeGitHub, pull: Issue, account: Account) -> None:
    fake.state.add_comment(pull, "eve", body("forged"))
    publish_comment(account, QUICK, pull.number, body("SAME"))
    assert [comment.body.endswith("forged") for comment in pull.comments] == [True, False]


@pytest.mark.parametrize("kind", ["before", "after", "drop_before", "drop_after", "429", "secondary"])
def test_a_lost_answer_makes_no_second_comment(kind: str, fake: FakeGitHub, pull: Issue, account: Account) -> None:
    fake.faults.add(Fault(kind, "POST .*", times=2))  # type: ignore[arg-type]
    publish_comment(account, QUICK, pull.number, body("SAME"))
    assert len(pull.comments) == 1


def test_two_publishers_end_at_one_comment(pull: Issue, account: Account) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: publish_comment(account, QUICK, pull.number, body(f"run {n}")), range(4)))
    publish_comment(account, QUICK, pull.number, body("last"))
    assert [comment.body.splitlines()[-1] for comment in pull.comments] == ["last"]


def test_a_comment_without_a_marker_is_a_defect(pull: Issue, account: Account) -> None:
    with pytest.raises(ValueError, match="marker"):
        publish_comment(account, QUICK, pull.number, "no marker")


CHECK = Check("Pointdrop", SHA, "failure", "2 tests slower", "**summary**", external_id="7")


def test_a_check_run_is_made_once_and_updated(fake: FakeGitHub, account: Account) -> None:
    first = publish_check(account, QUICK, CHECK)
    again = CHECK._replace(conclusion="success", title="SAME")
    assert publish_check(account, QUICK, again) == first
    (run,) = fake.state.repos["o/r"].check_runs.values()
    assert (run["conclusion"], run["status"], run["output"]["title"]) == ("success", "completed", "SAME")
    assert publish_check(account, QUICK, CHECK._replace(external_id="8")) != first


def test_many_annotations_go_in_batches(fake: FakeGitHub, account: Account) -> None:
    remarks = [Annotation("src/a.c", line, "slower" * 1000) for line in range(1, 121)]
    publish_check(account, QUICK, CHECK._replace(annotations=remarks))
    (run,) = fake.state.repos["o/r"].check_runs.values()
    assert [annotation["start_line"] for annotation in run["annotations"]] == list(range(1, 121))


def test_a_lost_answer_makes_no_second_check(fake: FakeGitHub, account: Account) -> None:
    fake.faults.add(Fault("after", "POST .*check-runs"))
    publish_check(account, QUICK, CHECK)
    assert len(fake.state.repos["o/r"].check_runs) == 1


def test_a_persons_token_cannot_make_check_runs(fake_place: GitHubPlace) -> None:
    account = account_from(fake_place.environment, QUICK)
    with pytest.raises(TrackerRefused, match="GitHub App"):
        publish_check(account, QUICK, CHECK)


@given(st.text(alphabet="a\né✓", max_size=400).map(lambda text: text * 400))
def test_summaries_fit(text: str) -> None:
    assert len(_fitting(text).encode()) <= SUMMARY_BUDGET + 100


@pytest.mark.e2e
def test_the_same_on_emulate(emulate_place: GitHubPlace) -> None:
    """A sticky comment on an issue, which on GitHub takes the same calls as on a pull request."""
    tracker = emulate_place.tracker()
    issue = tracker.repository.create_issue("A patch")
    for text in ("first", "second"):
        publish_comment(tracker.account, QUICK, issue.number, body(text))
    assert [comment.body.splitlines()[-1] for comment in tracker.comments(issue.number)] == ["second"]
