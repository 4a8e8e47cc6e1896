"""Whatever GitHub and the network do: never two open issues of a key, never a finding without its issue."""

from __future__ import annotations

import threading
from typing import get_args

import pytest

from alerts import AlertSettings, SyncReport, preview, sync
from alerts.errors import IssueGone, TrackerError, TrackerRefused
from alerts.issue_state import issue_state_of
from alerts.lifecycle import State
from alerts.marker import marker
from alerts.trackers import Draft
from history.store import Store
from tests.alerts.conftest import GitHubPlace
from tests.builders import NIGHT, NOW, detect, finding
from tests.fake_github import FakeGitHub, Fault
from tests.fake_github.faults import Kind

KEY = "postgres/17/17.5/regression"
ONE = finding(changes={"point-query": 3.1, "hot-points": 4.9})
BACK = finding("17.6", "17.5", kind="improvement", changes={"point-query": 3.1, "hot-points": 4.9})
CREATE, COMMENT, EDIT = "POST /repos/o/r/issues", "POST /repos/o/r/issues/[0-9]+/comments", "PATCH /repos/o/r/issues/.*"
LIST, LABEL = "GET /repos/o/r/issues", "(GET|POST) /repos/o/r/labels.*"


def night(store: Store, place: GitHubPlace, settings: AlertSettings, number: int) -> SyncReport:
    return sync(store, place.tracker(), settings, now=NOW + number * NIGHT, environment={})


def open_issues(fake: FakeGitHub) -> list[tuple[int, str]]:
    repo = fake.state.repos["o/r"]
    return [(issue.number, issue.body.split(" -->")[0]) for issue in repo.issues.values() if issue.state == "open"]


def state(store: Store, place: GitHubPlace) -> State:
    return issue_state_of(KEY, store.events(KEY), place.tracker().name).state


@pytest.mark.parametrize("where", [CREATE, COMMENT, EDIT, LABEL, LIST])
@pytest.mark.parametrize("kind", get_args(Kind))
def test_one_issue_whatever_fails(
    kind: Kind, where: str, fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    fake.faults.add(Fault(kind, where, times=2))
    detect(store, ONE)
    night(store, fake_place, settings, 1)
    assert len(open_issues(fake)) == 1
    assert store.links(KEY)[-1].number == 1 and state(store, fake_place) is State.FILED
    fake.faults.add(Fault(kind, where, times=2))
    detect(store, ONE, BACK)
    night(store, fake_place, settings, 2)
    assert open_issues(fake) == [] and state(store, fake_place) is State.RECOVERED
    (issue,) = fake.state.repos["o/r"].issues.values()
    assert len(issue.comments) == 1


@pytest.mark.parametrize("where", [CREATE, COMMENT, EDIT, LIST])
@pytest.mark.parametrize("kind", ["before", "after", "drop_after", "secondary"])
def test_a_night_that_fails_is_made_good_by_the_next(
    kind: Kind, where: str, fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    settings = settings.model_copy(update={"github": settings.github.model_copy(update={"attempts": 2})})
    fake_place.settings = settings
    detect(store, ONE, finding("17.2", "17.1"))
    fake.faults.add(Fault(kind, where, times=100))
    try:
        report = night(store, fake_place, settings, 1)
        # A create whose answer is lost was found by its marker; comments and edits were not needed.
        assert report.complete is (where in (COMMENT, EDIT) or kind in ("after", "drop_after"))
    except TrackerError:
        assert where == LIST
    fake.faults.clear()
    assert night(store, fake_place, settings, 2).complete
    assert night(store, fake_place, settings, 3).done == ()
    assert sorted(key for _, key in open_issues(fake)) == [
        f"<!-- pointdrop:v1 key=postgres/17/17.{n}/regression" for n in (2, 5)
    ]
    assert store.links(KEY) and store.links("postgres/17/17.2/regression")


def test_a_preview_only_reads(fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings) -> None:
    detect(store, ONE)
    night(store, fake_place, settings, 1)
    detect(store, ONE, BACK, finding("17.2", "17.1", changes={"insert": 2.0}))
    fake_place.person.say(1, "/ack")
    fake.requests.clear()
    before = len(store.events(KEY))
    assert [change.action for change in preview(store, fake_place.tracker(), settings, NOW)] == ["recover", "file"]
    assert {request.split()[0] for request in fake.requests} == {"GET"} and len(store.events(KEY)) == before


def test_a_long_limit_is_not_waited_for(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    fake.faults.add(Fault("primary", CREATE, times=9, reset_in=3600))
    detect(store, ONE)
    report = night(store, fake_place, settings, 1)
    assert not report.complete and "rate limit lasts" in report.failed[0]
    fake.faults.clear()
    assert night(store, fake_place, settings, 2).complete and len(open_issues(fake)) == 1


def test_two_publishers_at_once_leave_one_issue(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    """Both list before either creates; both histories end at the older issue."""
    others = [Store.open(str(store.url)) for _ in range(3)]
    detect(store, ONE)
    barrier = threading.Barrier(len(others))

    class Waiting(type(fake_place.tracker())):  # type: ignore[misc]
        def look_again(self) -> object:
            issues = super().look_again()
            if not getattr(self, "waited", False):
                self.waited = True
                barrier.wait(timeout=120)
            return issues

    def publish(other: Store) -> None:
        tracker = fake_place.tracker()
        sync(other, Waiting(tracker.account, settings.labels, settings.github), settings, now=NOW, environment={})

    threads = [threading.Thread(target=publish, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in others:
        other.__exit__(None, None, None)
    assert len(fake.state.repos["o/r"].issues) == 3
    night(store, fake_place, settings, 1)
    assert [number for number, _ in open_issues(fake)] == [1]
    closed = [issue for issue in fake.state.repos["o/r"].issues.values() if issue.state == "closed"]
    assert {issue.state_reason for issue in closed} == {"duplicate"}
    assert state(store, fake_place) is State.FILED
    assert night(store, fake_place, settings, 2).done == ()


def test_lists_that_lag_make_no_second_issue(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    fake.state.repos["o/r"].list_lag = 3
    detect(store, ONE)
    for number in range(1, 5):
        night(store, fake_place, settings, number)
    assert [number for number, _ in open_issues(fake)] == [1]


def test_a_lost_answer_and_lists_that_lag_heal(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    """The worst case: the issue was made, the answer was lost, and no list shows it yet."""
    fake.state.repos["o/r"].list_lag = 8
    fake.faults.add(Fault("drop_after", CREATE))
    detect(store, ONE)
    for number in range(1, 12):
        night(store, fake_place, settings, number)
    assert [number for number, _ in open_issues(fake)] == [1]
    assert store.links(KEY)[-1].number == 1


def test_labels_taken_off_or_deleted_come_back(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    detect(store, ONE)
    night(store, fake_place, settings, 1)
    repo = fake.state.repos["o/r"]
    repo.issues[1].labels.clear()
    repo.labels.clear()
    assert night(store, fake_place, settings, 2).counts == {"edit": 1}
    assert set(repo.issues[1].labels) == {"perf-regression", "postgres"} and len(repo.issues) == 1


def test_labels_deleted_and_history_lost(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    """Nothing links to the issue any more: it is found by its author."""
    detect(store, ONE)
    number = fake.state.add_issue(
        fake.state.repos["o/r"], "pointdrop-bot", "old title", f"{marker(KEY)}\nold text"
    ).number
    report = night(store, fake_place, settings, 1)
    assert report.counts == {"adopt": 1}
    night(store, fake_place, settings, 2)
    assert len(fake.state.repos["o/r"].issues) == 1 and store.links(KEY)[-1].number == number
    assert "perf-regression" in fake.state.repos["o/r"].issues[1].labels


@pytest.mark.parametrize("how", ["deleted", "transferred"])
def test_an_issue_that_is_gone_is_not_filed_again(
    how: str, fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    detect(store, ONE)
    night(store, fake_place, settings, 1)
    issue = fake.state.repos["o/r"].issues[1]
    if how == "deleted":
        issue.deleted = True
    else:
        other = fake.repo("o/other", roles={"pointdrop-bot": "read"})
        fake.state.add_issue(other, "pointdrop-bot", issue.title, issue.body)
        issue.moved_to = "o/other/issues/1"
    report = night(store, fake_place, settings, 2)
    assert report.counts == {"gone": 1} and how[:5] in report.warnings[0].replace("moved", "trans")
    assert state(store, fake_place) is State.GONE
    assert night(store, fake_place, settings, 3).done == ()
    with pytest.raises(IssueGone):
        fake_place.tracker().issue(1)
    # Another changepoint is another issue.
    detect(store, ONE, finding("17.2", "17.1"))
    assert night(store, fake_place, settings, 4).counts == {"file": 1}


def test_a_thousand_issues(fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings) -> None:
    repo = fake.state.repos["o/r"]
    for number in range(1000):
        body = f"{marker(f'mysql/5.7/5.7.{number}/regression')}\nold"
        fake.state.add_issue(repo, "pointdrop-bot", f"old {number}", body, ["perf-regression"])
    fake.state.add_issue(repo, "eve", "forged", f"{marker(KEY)}\nforged", ["perf-regression"])
    fake.pull(repo, "pointdrop-bot", "a" * 40)
    detect(store, ONE)
    fake.requests.clear()
    assert night(store, fake_place, settings, 1).counts == {"file": 1}
    assert repo.issues[1003].body.startswith(marker(KEY)) and repo.issues[1002].state == "open"
    # Eleven pages each before the plan, by author before creating, and after creating for a second publisher.
    assert len(fake.requests) < 60
    fake.requests.clear()
    assert night(store, fake_place, settings, 2).done == ()
    assert len(fake.requests) < 20


@pytest.mark.parametrize(
    ("role", "token", "message"),
    [
        ("read", "token_bot", "write access"),
        ("write", "nonsense", "expired"),
        ("none", "token_bot", "GITHUB_REPOSITORY"),
    ],
)
def test_what_a_person_has_to_mend_is_said(
    role: str,
    token: str,
    message: str,
    fake: FakeGitHub,
    fake_place: GitHubPlace,
    store: Store,
    settings: AlertSettings,
) -> None:
    repo = fake.state.repos["o/r"]
    repo.roles["pointdrop-bot"], repo.private = role, role == "none"  # type: ignore[assignment]
    fake.state.add_issue(repo, "pointdrop-bot", "old", f"{marker(KEY)}\nold", ["perf-regression"])
    detect(store, ONE)
    fake_place.environment_token = token
    with pytest.raises(TrackerRefused, match=message):
        for number in (1, 2):
            night(store, fake_place, settings, number)


def test_issues_switched_off(fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings) -> None:
    fake.state.repos["o/r"].has_issues = False
    detect(store, ONE)
    with pytest.raises(TrackerRefused, match="disabled"):
        night(store, fake_place, settings, 1)


def test_one_issue_that_cannot_be_written_does_not_stop_the_others(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    hole = finding("17.2", "17.1").model_copy(update={"evidence": ()})
    detect(store, ONE, hole)
    report = night(store, fake_place, settings, 1)
    assert report.counts == {"file": 1} and not report.complete
    assert "postgres/17/17.2/regression was not filed: no value for evidence" in report.refused[0]


def test_a_repository_may_be_called_pull(fake: FakeGitHub, settings: AlertSettings) -> None:
    """Pull requests are told from issues by their address, which holds the repository's name as well."""
    fake.repo("o/pull", roles={"pointdrop-bot": "write"})
    tracker = GitHubPlace(fake.url, "o/pull", settings).tracker()
    draft = Draft(key="k", title="t", body=f"{marker('k')}\n", labels=frozenset({settings.labels.issue}))
    assert [issue.number for issue in (tracker.create(draft), *tracker.issues())] == [1, 1]
