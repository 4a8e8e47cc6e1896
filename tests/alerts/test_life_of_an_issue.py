"""The life of issues, from detection to close, the same on files, on our GitHub and on npm's `emulate`."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from alerts import AlertSettings, SyncReport, preview, sync
from alerts.issue_state import issue_state_of
from alerts.lifecycle import State
from alerts.trackers import Issue
from history import queries
from history.model import Finding, FindingEvent, Fingerprint, Release, Session
from history.store import Store
from tests.alerts.conftest import GitHubPlace, Place
from tests.builders import BASE, NIGHT, NOW, TESTS, Writer, detect, finding, measurement
from tests.fake_github import FakeGitHub

KEY = "postgres/17/17.5/regression"
CHANGES = {"point-query": 3.1, "hot-points": 4.9}
MORE = {**CHANGES, "update-index": 2.0, "insert": 2.2}


class Nights:
    """A history, a place, and one sync a night."""

    def __init__(self, store: Store, place: Place, settings: AlertSettings) -> None:
        self.store, self.place, self.settings = store, place, settings
        self.now: datetime = NOW

    def night(self, *findings: Finding) -> SyncReport:
        """A detection with these findings and a sync, a day after the last."""
        self.now += NIGHT
        detect(self.store, *findings)
        return self.sync()

    def sync(self) -> SyncReport:
        report = sync(self.store, self.place.tracker(), self.settings, now=self.now, environment={})
        assert report.complete, report
        return report

    def issues(self) -> dict[str, Issue]:
        return {issue.keys[0]: issue for issue in self.place.tracker().issues()}

    def issue(self, key: str = KEY) -> Issue:
        return self.issues()[key]

    def comments(self, key: str = KEY) -> list[str]:
        tracker = self.place.tracker()
        return [comment.body for comment in tracker.comments(self.issue(key).number) if comment.ours]

    def state(self, key: str = KEY) -> State:
        return issue_state_of(key, self.store.events(key), self.place.tracker().name).state


@pytest.fixture
def nights(store: Store, place: Place, settings: AlertSettings) -> Nights:
    return Nights(store, place, settings)


def test_a_confirmed_finding_is_filed_once(nights: Nights) -> None:
    slow = finding(changes=CHANGES)
    detect(nights.store, slow)
    (planned,) = preview(nights.store, nights.place.tracker(), nights.settings, nights.now)
    assert (planned.action, planned.key) == ("file", KEY)
    assert nights.issues() == {} and nights.store.events(KEY) == []
    assert nights.night(slow).counts == {"file": 1}
    issue = nights.issue()
    assert (
        issue.title
        == "postgres 17.5: hot-points needs 4.9 % more instructions (2 of 11 tests moved; point queries, local)"
    )
    assert issue.labels == {"perf-regression", "postgres"} and issue.open
    assert nights.night(slow).done == () and nights.sync().done == ()
    assert [link.number for link in nights.store.links(KEY)] == [issue.number]
    assert len(nights.issues()) == 1


@pytest.mark.parametrize("tier", ["provisional", "unconfirmed"])
def test_what_is_not_confirmed_is_remembered_and_not_filed(nights: Nights, tier: str) -> None:
    nights.night(finding(tier=tier))  # type: ignore[arg-type]
    assert nights.issues() == {} and nights.state() is State.NEW
    nights.night(finding())
    assert nights.state() is State.FILED


def test_improvements_get_no_issue_and_stand_in_that_of_their_boundary(nights: Nights) -> None:
    better = finding(kind="improvement", changes={"insert": 7.0})
    nights.night(better)
    assert nights.issues() == {}
    nights.night(better, finding(changes=CHANGES))
    assert list(nights.issues()) == [KEY]
    assert "**Better at the same boundary**" in nights.issue().body
    assert nights.store.links(better.key)[0].number == nights.issue().number


@pytest.mark.parametrize("tier", ["provisional", "unconfirmed"])
def test_an_improvement_that_is_less_sure_is_not_told(nights: Nights, tier: str) -> None:
    better = finding(kind="improvement", tier=tier, changes={"insert": 7.0})  # type: ignore[arg-type]
    nights.night(better, finding(changes=CHANGES))
    assert "Better at the same boundary" not in nights.issue().body


def test_servers_are_rows_of_one_issue_and_news_is_one_comment(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    report = nights.night(finding(changes=MORE, servers=("local", "medium")))
    assert report.counts == {"update": 1}
    assert nights.state() is State.UPDATED
    (comment,) = nights.comments()
    assert "Also seen on medium." in comment
    assert "`medium` | `insn/o` |" in nights.issue().body
    nights.sync()
    assert len(nights.comments()) == 1


def test_small_changes_edit_in_silence(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    assert nights.night(finding(changes={"point-query": 3.2, "hot-points": 5.0})).counts == {"edit": 1}
    assert nights.comments() == [] and "5.0 %" in nights.issue().title
    assert "+3.2 to +5.0 %" in nights.issue().body


def test_recovery_closes_and_a_return_opens_again(nights: Nights) -> None:
    lost, back = finding(changes=CHANGES), finding("17.6", "17.5", kind="improvement", changes=CHANGES)
    nights.night(lost)
    assert nights.night(lost, back).counts == {"recover": 1}
    assert not nights.issue().open and nights.state() is State.RECOVERED
    assert "`17.6` gives it back in 2 of 2 tests" in nights.comments()[-1]
    assert nights.night(lost, back).done == ()
    assert nights.night(lost).counts == {"return": 1}
    assert nights.issue().open and nights.state() is State.RETURNED
    assert len(nights.comments()) == 2


def test_a_clock_that_goes_back_changes_no_order(nights: Nights) -> None:
    """Two machines with one history, or a clock set right: what happened later in truth is folded later."""
    lost, back = finding(changes=CHANGES), finding("17.6", "17.5", kind="improvement", changes=CHANGES)
    nights.night(lost)
    nights.now -= 3 * NIGHT
    assert nights.night(lost, back).counts == {"recover": 1}
    assert nights.state() is State.RECOVERED and len(nights.comments()) == 1
    assert nights.night(lost, back).done == (), "written down once"
    nights.now -= 3 * NIGHT
    assert nights.night(lost).counts == {"return": 1}
    assert nights.sync().done == () and nights.state() is State.RETURNED


def test_half_a_recovery_is_none(nights: Nights) -> None:
    lost = finding(changes=CHANGES)
    nights.night(lost)
    nights.night(lost, finding("17.6", "17.5", kind="improvement", changes={"point-query": 3.1}))
    assert nights.issue().open


def test_what_was_given_back_before_it_was_known_is_not_filed(nights: Nights) -> None:
    lost, back = finding(changes=CHANGES), finding("17.6", "17.5", kind="improvement", changes=CHANGES)
    nights.night(lost, back)
    assert nights.issues() == {} and nights.state() is State.CONFIRMED
    nights.night(lost)
    assert nights.state() is State.FILED


def test_a_persons_close_wins_until_another_changepoint(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    nights.place.person.close(nights.issue().number)
    nights.night(finding(changes=MORE, servers=("local", "medium")))
    assert not nights.issue().open and nights.state() is State.CLOSED and nights.comments() == []
    nights.night(finding(changes=MORE), finding("17.6", "17.5", changes=MORE))
    assert {key: issue.open for key, issue in nights.issues().items()} == {
        KEY: False,
        "postgres/17/17.6/regression": True,
    }


def test_a_person_who_reopens_is_followed(nights: Nights) -> None:
    lost, back = finding(changes=CHANGES), finding("17.6", "17.5", kind="improvement", changes=CHANGES)
    nights.night(lost)
    nights.night(lost, back)
    nights.place.person.reopen(nights.issue().number)
    nights.night(lost, back)
    nights.night(lost, back)
    assert nights.issue().open and nights.state() is State.UPDATED
    assert len(nights.comments()) == 1


def test_a_boundary_that_is_no_longer_found_is_withdrawn_on_the_second_day(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    nights.night()
    nights.sync()
    assert nights.issue().open
    assert nights.night().counts == {"withdraw": 1}
    assert not nights.issue().open and nights.state() is State.WITHDRAWN
    nights.night(finding(changes=CHANGES))
    assert nights.issue().open and nights.state() is State.RETURNED


def test_a_boundary_of_two_builders_is_not_said_to_be_gone(nights: Nights) -> None:
    found = finding(changes=CHANGES)
    nights.night(found)
    for _ in range(2):
        nights.night(found.model_copy(update={"cause": "toolchain"}))
    assert not nights.issue().open and nights.state() is State.WITHDRAWN
    (comment,) = nights.comments()
    assert "two builders made its two sides" in comment and "no longer finds" not in comment


def test_a_boundary_that_is_not_measured_by_the_new_method_is_not_withdrawn(
    place: Place, settings: AlertSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the older method measured no longer counts: that nothing is found there says nothing."""
    with Store.open("sqlite://") as store:
        writer, nights = Writer(store, start=NOW), Nights(store, place, settings)
        counted = [measurement(test, "insn/o", BASE[test]) for test in TESTS]

        def measure(method: int, *versions: str) -> None:
            monkeypatch.setattr(queries, "METHOD", str(method))
            name = f"method-{method}-{versions[0]}"
            facts = {"cpu_model": "Ryzen 7 7840HS", "workload": "1", "method": str(method)}
            session = Session(
                id=name, host="bee-1", server="local", fingerprint=Fingerprint(facts=facts),
                started=NOW + timedelta(days=method), control="17.3",
            )  # fmt: skip
            store.append_session(session)
            for version in versions:
                release = Release(dbms="postgres", version=version, line="17")
                writer.run(session, release, "default", "sysbench", lambda _: counted, lane="instructions")

        measure(1, "17.3", "17.4", "17.5", "17.6")
        nights.night(finding(changes=CHANGES))
        assert nights.state() is State.FILED
        measure(2, "17.5", "17.6")
        for _ in range(settings.filing.withdraw_after_days + 1):
            assert nights.night().counts == {}
        assert nights.issue().open and nights.comments() == []
        measure(2, "17.4")
        assert nights.night().counts == {"record": 1} and nights.night().counts == {"withdraw": 1}


def test_one_missed_day_is_forgotten_when_it_is_seen_again(nights: Nights) -> None:
    slow = finding(changes=CHANGES)
    for detection in ([slow], [], [slow], [], [slow]):
        nights.night(*detection)
    assert nights.issue().open


def test_a_refuted_finding_is_withdrawn_at_once(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    nights.night(finding(changes=CHANGES, tier="unconfirmed"))
    assert nights.state() is State.WITHDRAWN


def test_a_boundary_that_moves_inside_its_range_keeps_its_issue(nights: Nights) -> None:
    first = finding("17.5", "17.2", changes=CHANGES, unmeasured=("17.3", "17.4"))
    moved = finding("17.4", "17.3", changes=CHANGES)
    nights.night(first)
    report = nights.night(moved)
    assert report.counts == {"record": 1, "update": 1}
    (issue,) = nights.issues().values()
    assert issue.open and "17.4" in issue.title and "between 17.3 and 17.4" in nights.comments()[0]
    assert issue.keys == (KEY, "postgres/17/17.4/regression")
    nights.night(moved)
    assert len(nights.issues()) == 1
    assert nights.store.links(moved.key)[-1].number == issue.number
    nights.night(moved, first)
    assert len(nights.issues()) == 2


def test_the_cap_folds_a_flood_into_one_digest(nights: Nights) -> None:
    nights.settings = nights.settings.model_copy(
        update={"filing": nights.settings.filing.model_copy(update={"daily_cap": 2})}
    )
    flood = [
        finding(release, previous, changes=dict.fromkeys(TESTS, 2.0 + index))
        for index, (previous, release) in enumerate(
            [("17.0", "17.1"), ("17.1", "17.2"), ("17.3", "17.4"), ("17.4", "17.5")]
        )
    ]
    assert nights.night(*flood).counts == {"file": 2, "digest": 1}
    digest = next(issue for key, issue in nights.issues().items() if key.startswith("digest/"))
    assert digest.title.startswith("2 more findings of") and "postgres/17/17.1/regression" in digest.body
    assert nights.sync().done == ()
    assert nights.night(*flood).done == ()
    assert {nights.state(row.key) for row in flood} == {State.FILED, State.DIGESTED}
    assert all(nights.store.links(row.key) for row in flood)


def test_a_row_of_a_digest_that_becomes_worse_is_filed(nights: Nights) -> None:
    filing = nights.settings.filing.model_copy(update={"daily_cap": 1})
    nights.settings = nights.settings.model_copy(update={"filing": filing})
    large = finding("17.4", "17.3", changes=dict.fromkeys(TESTS, 9.0))
    small, other = (
        finding(release, previous, changes=dict.fromkeys(TESTS, 3.0))
        for previous, release in (("17.0", "17.1"), ("17.1", "17.2"))
    )
    assert nights.night(large, small, other).counts == {"file": 1, "digest": 1}
    grown = [finding(row.release, row.previous, changes=dict.fromkeys(TESTS, 8.0)) for row in (small, other)]
    assert nights.night(large, *grown).counts == {"file": 1}, "one a day, and no second digest for the other"
    assert [nights.state(row.key) for row in (small, other)] == [State.FILED, State.DIGESTED]
    assert nights.night(large, *grown).counts == {"file": 1}
    assert nights.night(large, *grown).done == ()
    assert len([key for key in nights.issues() if key.startswith("digest/")]) == 1


def everything_moved() -> list[Finding]:
    return [
        finding("17.6", "17.5", changes=CHANGES),
        finding("8.0.31", "8.0.30", dbms="mysql", line="8.0", changes=CHANGES),
        finding("10.11.6", "10.11.5", dbms="mariadb", line="10.11", changes=CHANGES),
    ]


def test_when_all_lines_move_the_machine_is_asked_first(nights: Nights) -> None:
    moved = everything_moved()
    assert nights.night(*moved).counts == {"hold": 1}
    (issue,) = nights.issues().values()
    assert issue.title.startswith("local: 3 of 3 lines got slower at once")
    assert "environment" in issue.labels
    assert {nights.state(row.key) for row in moved} == {State.HELD}
    assert nights.night(*moved).done == ()
    # Measured again, two of them are gone: what is left is the product's.
    report = nights.night(moved[0])
    assert report.counts["file"] == 1 and report.counts["withdraw"] == 1
    assert [key for key, issue in nights.issues().items() if issue.open] == [moved[0].key]


def test_a_person_says_that_the_machine_is_fine(nights: Nights) -> None:
    moved = everything_moved()
    nights.night(*moved)
    (issue,) = nights.issues().values()
    nights.place.person.say(issue.number, "/not-a-bug the BIOS is the same")
    assert nights.night(*moved).counts == {"file": 3}
    assert sorted(key for key, issue in nights.issues().items() if issue.open) == sorted(row.key for row in moved)


def test_a_history_without_measurements_leaves_issues_alone(nights: Nights) -> None:
    slow = finding(changes=CHANGES)
    nights.night(slow)
    number = nights.issue().number
    empty = Store.open("sqlite://")
    detect(empty, slow)
    copied = Nights(empty, nights.place, nights.settings)
    # Without measurements the issue cannot be written, and it is left alone.
    assert not sync(empty, nights.place.tracker(), nights.settings, now=nights.now, environment={}).complete
    assert [issue.number for issue in copied.issues().values()] == [number]


def test_people_write_below_the_end_line_and_change_titles(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    tracker, issue = nights.place.tracker(), nights.issue()
    tracker.edit(issue.number, title="Executor slower in 17.5", body=issue.body + "\nCause: commit 3f2a9c1.\n")
    nights.night(finding(changes=MORE))
    assert nights.issue().title == "Executor slower in 17.5"
    assert "Cause: commit 3f2a9c1." in nights.issue().body and "`insert`" in nights.issue().body


def test_an_environment_issue_that_was_deleted_stays_away(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    nights, moved = Nights(store, fake_place, settings), everything_moved()
    nights.night(*moved)
    fake.state.repos["o/r"].issues[1].deleted = True
    assert nights.night(*moved).counts == {"gone": 1}
    assert nights.night(*moved).done == () and nights.issues() == {}
    assert {nights.state(row.key) for row in moved} == {State.HELD}


def test_a_persons_close_wins_over_a_recovery_of_the_same_night(nights: Nights) -> None:
    """Closed by a person first: then it is not ours to open again when the recovery no longer holds."""
    lost, back = finding(changes=CHANGES), finding("17.6", "17.5", kind="improvement", changes=CHANGES)
    nights.night(lost)
    nights.place.person.close(nights.issue().number)
    nights.night(lost, back)
    assert nights.state() is State.CLOSED and nights.comments() == []
    nights.night(lost)
    assert not nights.issue().open and nights.state() is State.CLOSED


class Stopped(Exception):
    """The machine, in the middle of a sync."""


@pytest.mark.parametrize("what", ["recovered", "withdrawn", "returned"])
def test_what_was_half_closed_or_opened_by_us_is_no_persons_doing(
    what: str, nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, back = finding(changes=CHANGES), finding("17.6", "17.5", kind="improvement", changes=CHANGES)
    nights.night(lost)
    if what == "withdrawn":
        nights.night()
    if what == "returned":
        nights.night(lost, back)
    last = {"recovered": (lost, back), "withdrawn": (), "returned": (lost,)}[what]
    append = type(nights.store).append_event

    def stops(store: Store, event: FindingEvent) -> bool:
        if event.event == what:
            raise Stopped
        return append(store, event)

    with monkeypatch.context() as patch:
        patch.setattr(type(nights.store), "append_event", stops)
        with pytest.raises(Stopped):
            nights.night(*last)
    said = len(nights.comments())
    assert nights.issue().open is (what == "returned")
    nights.sync()
    assert nights.state() is State(what) and len(nights.comments()) == said
    assert nights.issue().open is (what == "returned") and nights.sync().done == ()


def test_a_clock_that_went_back_does_not_make_one_day_two(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    nights.now -= 5 * NIGHT
    nights.night()
    nights.sync()
    assert nights.issue().open, "missed on one day, whatever day its events have to be dated after"
    assert nights.night().counts == {"withdraw": 1}


def test_nothing_is_folded_into_a_digest_that_a_person_closed(nights: Nights) -> None:
    filing = nights.settings.filing.model_copy(update={"daily_cap": 1})
    nights.settings = nights.settings.model_copy(update={"filing": filing})
    first, second, third = (
        finding(release, previous, changes=dict.fromkeys(TESTS, change))
        for previous, release, change in (("17.0", "17.1", 9.0), ("17.1", "17.2", 5.0), ("17.2", "17.3", 3.0))
    )
    nights.night(first, second)
    (digest,) = (key for key in nights.issues() if key.startswith("digest/"))
    nights.place.person.close(nights.issue(digest).number)
    detect(nights.store, first, second, third)
    nights.sync()
    assert nights.state(third.key) is not State.DIGESTED
    nights.night(first, second, third)
    assert nights.state(third.key) is State.FILED
