"""Random histories of findings, faults and human actions: never two issues of a key, never a finding lost.

One example is a life of two publishers with histories of their own on one repository. After whatever happened, a night
without faults must leave every key with at most one open issue, every sure finding with an issue or a person's word,
and what a person closed closed.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from alerts import AlertSettings, sync
from alerts.errors import TrackerError
from alerts.issue_state import issue_state_of
from alerts.lifecycle import State
from alerts.marker import keys_of
from alerts.recovery import recovery
from alerts.settings import Filing
from alerts.trackers.access import account_from
from alerts.trackers.github import GitHubTracker
from history.model import Finding, FindingEvent, Tier
from history.store import Store
from tests.alerts.conftest import BOT_TOKEN, QUICK
from tests.builders import NIGHT, NOW, detect, finding, write_history
from tests.fake_github import FakeGitHub, Fault
from tests.fake_github.state import Issue

TIERS: tuple[Tier, ...] = ("confirmed", "confirmed", "confirmed", "provisional", "unconfirmed")
BOUNDARIES = [
    ("17.0", "17.1"),
    ("17.1", "17.2"),
    ("17.2", "17.3"),
    ("17.3", "17.5"),
    ("17.4", "17.5"),
    ("17.5", "17.6"),
]
#: Two findings of other lines, so that sometimes everything moves at once.
EDGES = [("mysql", "8.0", "8.0.30", "8.0.31"), ("mariadb", "10.11", "10.11.5", "10.11.6")]
WHERE = ["POST .*issues", "POST .*comments", "PATCH .*", "GET .*issues", ".*"]
KINDS = ["before", "after", "drop_before", "drop_after", "429", "secondary"]
ACTS = ["close", "close", "reopen", "unlabel", "delete", "drop label", "rename", "forget", "transfer"]
#: Syncs after which nothing may be left to do.
PASSES = 3
SETTINGS = AlertSettings(
    github=QUICK.model_copy(update={"attempts": 2}),
    filing=Filing(daily_cap=2, kinds=("regression", "drift", "environment", "improvement")),
)

regressions = st.builds(
    lambda boundary, tier, change: finding(
        boundary[1], boundary[0], tier=tier, changes={"point-query": change, "insert": change}
    ),
    st.sampled_from(BOUNDARIES),
    st.sampled_from(TIERS),
    st.sampled_from([2.0, 3.0, 6.0]),
)
improvements = st.builds(
    lambda boundary: finding(boundary[1], boundary[0], kind="improvement", changes={"point-query": 6.0, "insert": 6.0}),
    st.sampled_from(BOUNDARIES),
)
edges = st.builds(
    lambda edge: finding(edge[3], edge[2], dbms=edge[0], line=edge[1], changes={"insert": 2.0}), st.sampled_from(EDGES)
)
others = st.builds(
    lambda boundary, kind: finding(boundary[1], boundary[0], kind=kind, changes={"range-covered": 4.0, "insert": 3.0}),
    st.sampled_from(BOUNDARIES),
    st.sampled_from(["drift", "environment"]),
)
detections = st.lists(
    st.one_of(regressions, regressions, improvements, edges, others), max_size=5, unique_by=lambda f: f.key
)
faults = st.lists(st.builds(Fault, st.sampled_from(KINDS), st.sampled_from(WHERE), st.integers(1, 4)), max_size=2)


class Stopped(Exception):
    """The machine, in the middle of a sync."""


class Publishers(RuleBasedStateMachine):
    """Two publishers, one repository, and people."""

    directory: Path
    template: Path

    @initialize()
    def begin(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="pointdrop-"))
        self.github = FakeGitHub().__enter__()
        self.github.token(BOT_TOKEN, "bot")
        self.repo = self.github.repo("o/r", roles={"bot": "write", "mark": "write"})
        self.now: datetime = NOW
        self.findings: list[Finding] = []
        self.closed_by_people: dict[int, bool] = {}
        self.titles: dict[int, str] = {}
        self.stores = [self._new_store(0), self._new_store(1)]
        self.clean = False

    def _new_store(self, number: int) -> Store:
        path = Path(tempfile.mkdtemp(prefix=f"{number}-", dir=self.directory)) / "history.db"
        shutil.copy(self.template, path)
        return Store.open(f"sqlite:///{path}")

    def _tracker(self) -> GitHubTracker:
        environment = {"GITHUB_TOKEN": BOT_TOKEN, "GITHUB_REPOSITORY": "o/r", "GITHUB_API_URL": self.github.url}
        return GitHubTracker(account_from(environment, SETTINGS.github), SETTINGS.labels, SETTINGS.github)

    @rule(findings=detections)
    def the_detector_runs(self, findings: list[Finding]) -> None:
        self.findings = findings
        self.clean = False

    @rule(publisher=st.integers(0, 1), planned=faults)
    def a_night_with_faults(self, publisher: int, planned: list[Fault]) -> None:
        self.now += NIGHT
        self.clean = False
        for fault in planned:
            self.github.faults.add(Fault(fault.kind, fault.pattern, fault.times))
        detect(self.stores[publisher], *self.findings)
        # The room's own errors may end a night; anything else is a defect.
        with contextlib.suppress(TrackerError):
            sync(self.stores[publisher], self._tracker(), SETTINGS, now=self.now, environment={})
        self.github.faults.clear()

    @rule(publisher=st.integers(0, 1), after=st.integers(0, 12))
    def a_night_that_stops(self, publisher: int, after: int) -> None:
        """The machine goes off before an event is written, whatever was done in the tracker."""
        self.now += NIGHT
        self.clean = False
        store = self.stores[publisher]
        detect(store, *self.findings)
        append, left = store.append_event, iter(range(after))

        def stops(event: FindingEvent) -> bool:
            if next(left, None) is None:
                raise Stopped
            return append(event)

        store.append_event = stops  # type: ignore[method-assign]
        with contextlib.suppress(TrackerError, Stopped):
            sync(store, self._tracker(), SETTINGS, now=self.now, environment={})
        del store.append_event

    @rule(publisher=st.integers(0, 1))
    def a_good_night(self, publisher: int) -> None:
        self.now += NIGHT
        detect(self.stores[publisher], *self.findings)
        # What is adopted or renamed in one sync is brought up to date by the next; then there is nothing left to do.
        reports = []
        for _ in range(PASSES):
            reports.append(sync(self.stores[publisher], self._tracker(), SETTINGS, now=self.now, environment={}))
            assert reports[-1].complete, reports
        assert reports[-1].done == (), reports
        self.clean = True
        self._nothing_is_lost(self.stores[publisher])

    @rule(lag=st.integers(0, 2))
    def lists_lag(self, lag: int) -> None:
        self.repo.list_lag = lag
        self.clean = False

    @rule(back=st.sampled_from([timedelta(seconds=1), NIGHT, 3 * NIGHT]))
    def the_clock_is_set_back(self, back: timedelta) -> None:
        self.now -= back
        self.clean = False

    @rule(publisher=st.integers(0, 1))
    def a_history_is_lost(self, publisher: int) -> None:
        self.now += NIGHT
        self.stores[publisher].__exit__(None, None, None)
        self.stores[publisher] = self._new_store(publisher)
        self.clean = False

    def _issues(self) -> list[Issue]:
        return [issue for issue in self.repo.issues.values() if not issue.deleted and not issue.moved_to]

    @precondition(lambda self: hasattr(self, "repo") and self._issues())
    @rule(pick=st.integers(0, 30), what=st.sampled_from(ACTS))
    def a_person_acts(self, pick: int, what: str) -> None:
        issue = self._issues()[pick % len(self._issues())]
        self.clean = False
        match what:
            case "close" if issue.state == "open":
                self.github.state.close(issue, "mark")
                self.closed_by_people[issue.number] = True
            case "reopen":
                self.github.state.reopen(issue)
                self.closed_by_people.pop(issue.number, None)
            case "unlabel":
                issue.labels.clear()
            case "delete":
                issue.deleted = True
            case "transfer":
                issue.moved_to = "o/other/issues/1"
            case "rename":
                issue.title = self.titles[issue.number] = f"What we call {issue.number}"
            case "forget":
                issue.comments = [comment for comment in issue.comments if comment.user == "bot"]
            case "drop label":
                self.repo.labels.pop("perf-regression", None)
                for other in self.repo.issues.values():
                    other.labels = [name for name in other.labels if name != "perf-regression"]

    @precondition(lambda self: hasattr(self, "repo") and self._issues())
    @rule(
        pick=st.integers(0, 30),
        text=st.sampled_from(["/ack", "/snooze 1", "/not-a-bug", "/rerun", "/bisect", "/status", "/snooze", "thanks"]),
        who=st.sampled_from(["mark", "eve"]),
    )
    def a_person_says(self, pick: int, text: str, who: str) -> None:
        issue = self._issues()[pick % len(self._issues())]
        self.github.state.add_comment(issue, who, text)
        self.clean = False

    @invariant()
    def every_request_fits_githubs_description(self) -> None:
        if hasattr(self, "github"):
            assert self.github.violations == []

    @invariant()
    def at_most_one_open_issue_of_a_key_after_a_good_night(self) -> None:
        if not getattr(self, "clean", False) or self.repo.list_lag:
            return
        keys = Counter(keys_of(issue.body)[0] for issue in self._issues() if issue.state == "open")
        assert not [key for key, count in keys.items() if count > 1], keys

    @invariant()
    def answers_are_given_once(self) -> None:
        if not hasattr(self, "repo"):
            return
        for issue in self._issues():
            heads = Counter(comment.body.partition("\n")[0] for comment in issue.comments if comment.user == "bot")
            assert not [head for head, count in heads.items() if count > 1], heads

    @invariant()
    def what_a_person_closed_stays_closed(self) -> None:
        for number in getattr(self, "closed_by_people", {}):
            assert self.repo.issues[number].state == "closed"

    @invariant()
    def what_a_person_called_it_it_is_called(self) -> None:
        for number, title in getattr(self, "titles", {}).items():
            assert self.repo.issues[number].title == title

    def _nothing_is_lost(self, store: Store) -> None:
        """Every sure regression has a link to an issue, or was given back before it was ever filed."""
        for filed in self.findings:
            if filed.kind != "regression" or filed.tier != "confirmed":
                continue
            links = [link for link in store.links(filed.key) if link.tracker == "github:o/r"]
            state = issue_state_of(filed.key, store.events(filed.key), "github:o/r").state
            back = recovery(filed, self.findings, SETTINGS.recovery)
            assert links or (back and state in (State.NEW, State.CONFIRMED, State.HELD)), (filed.key, state)

    def teardown(self) -> None:
        if hasattr(self, "github"):
            for store in self.stores:
                store.__exit__(None, None, None)
            self.github.__exit__(None, None, None)
            shutil.rmtree(self.directory)


@pytest.mark.slow
def test_random_lives(tmp_path_factory: pytest.TempPathFactory) -> None:
    Publishers.template = tmp_path_factory.mktemp("template") / "history.db"
    write_history(Publishers.template)
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        Publishers,
        settings=hypothesis_settings(
            max_examples=25,
            stateful_step_count=14,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
