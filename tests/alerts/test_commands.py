"""Commands in comments: parsed strictly, from writers only, carried out and answered once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts import AlertSettings, sync
from alerts.changes import World
from alerts.commands import MOST_RELEASES, NAMES, Command, Misunderstood, answer, parse
from alerts.existing_issues import _slept_enough
from alerts.issue_state import IssueState, open_requests
from alerts.lifecycle import State
from alerts.subject import Subject
from history.store import Store
from tests.alerts.conftest import GitHubPlace, Place
from tests.alerts.test_life_of_an_issue import CHANGES, KEY, MORE, Nights
from tests.builders import NIGHT, NOW, detect, finding
from tests.fake_github import FakeGitHub, Fault


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/ack", Command("ack")),
        ("/ack fixed in 17.7  ", Command("ack", "fixed in 17.7")),
        ("Thanks!\r\n\r\n/rerun\r\n", Command("rerun")),
        ("/snooze 2", Command("snooze", releases=2)),
        ("/snooze 1 release", Command("snooze", releases=1)),
        ("/not-a-bug planned", Command("not-a-bug", "planned")),
        ("/status", Command("status")),
        ("/bisect", Command("bisect")),
    ],
)
def test_commands(text: str, expected: Command) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "thanks", "I would /ack this", "> /ack", "    /ack", "```\n/ack\n```", "~~~~\n/ack\n~~~\n~~~~",
        "/etc/passwd", "/ACK", "/acknowledge", "/ ack", "//ack", "`/ack`", "/ack\u200b", "/unknown",
    ],
)  # fmt: skip
def test_no_commands(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "/snooze",
        "/snooze x",
        "/snooze 0",
        f"/snooze {MOST_RELEASES + 1}",
        "/snooze 2 days",
        "/rerun now",
        "/ack\n/rerun",
    ],
)
def test_misunderstood_commands_say_why(text: str) -> None:
    assert isinstance(parse(text), Misunderstood)


@given(st.text(max_size=200))
def test_any_comment_can_be_parsed(text: str) -> None:
    command = parse(text)
    assert command is None or "/" in text


@pytest.mark.parametrize("permission", ["none", "read", "triage"])
@pytest.mark.parametrize("name", NAMES)
def test_only_writers_command(name: str, permission: str) -> None:
    command = parse(f"/{name} 2" if name == "snooze" else f"/{name}")
    assert isinstance(command, Command)
    refused = answer(command, IssueState(key="k", state=State.FILED), permission, newest="17.6", summary="s")
    assert (refused.reaction, refused.event) == ("-1", "")


@pytest.mark.parametrize("name", ["rerun", "bisect"])
def test_what_cannot_be_measured_here_is_not_promised(name: str) -> None:
    command = parse(f"/{name}")
    assert isinstance(command, Command)
    filed = IssueState(key="k", state=State.FILED)
    reply = answer(command, filed, "write", newest="17.6", summary="s", measurable=False)
    assert (reply.reaction, reply.event) == ("confused", "") and "machine of your own" in reply.text


@pytest.fixture
def nights(store: Store, place: Place, settings: AlertSettings) -> Nights:
    return Nights(store, place, settings)


def test_acknowledged_is_silent_and_still_recovers(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    nights.place.person.say(nights.issue().number, "/ack known since May")
    report = nights.night(finding(changes=MORE))
    (heard,) = report.heard
    assert (heard.command, heard.event) == ("ack", "acknowledged") and nights.state() is State.ACKNOWLEDGED
    assert report.counts == {"edit": 1}
    (said,) = nights.comments()
    assert "Acknowledged" in said
    event = next(event for event in nights.store.events(KEY) if event.event == "acknowledged")
    assert event.detail["reason"] == "known since May" and event.actor == "mark"
    back = finding("17.6", "17.5", kind="improvement", changes=MORE)
    assert nights.night(finding(changes=MORE), back).counts == {"recover": 1}


def test_snoozed_sleeps_until_releases_were_measured(nights: Nights) -> None:
    first = finding("17.2", "17.1", changes=CHANGES)
    key = first.key
    nights.night(first)
    nights.place.person.say(nights.issue(key).number, "/snooze 1")
    nights.night(finding("17.2", "17.1", changes=MORE))
    assert nights.state(key) is State.SNOOZED and len(nights.comments(key)) == 1
    # 17.6 is the newest release measured; one more is not there yet.
    (event,) = [event for event in nights.store.events(key) if event.event == "snoozed"]
    assert event.detail["from"] == "17.6" and event.detail["releases"] == 1
    nights.store.append_event(
        event.model_copy(update={"detail": {**event.detail, "from": "17.5"}, "at": nights.now + NIGHT / 2})
    )
    assert nights.night(first).counts == {"wake": 1}
    assert nights.state(key) is State.UPDATED and "it is still there at `17.6`" in nights.comments(key)[-1]


def test_not_a_bug_closes_for_good(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    nights.place.person.say(nights.issue().number, "/not-a-bug")
    nights.night(finding(changes=CHANGES))
    assert not nights.issue().open and nights.state() is State.NOT_A_BUG
    assert "not-a-bug" in nights.issue().labels
    nights.night(finding(changes=MORE))
    assert not nights.issue().open and len(nights.comments()) == 1


def test_requests_wait_for_the_next_night(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    nights.place.person.say(nights.issue().number, "/rerun")
    nights.night(finding(changes=CHANGES))
    (waiting,) = open_requests(nights.store.events(KEY))
    assert (waiting.event, waiting.actor) == ("rerun-requested", "mark")
    of_another = {"event": "rerun-done", "key": "postgres/17/17.6/regression", "at": nights.now + NIGHT / 2}
    nights.store.append_event(waiting.model_copy(update=of_another))
    assert open_requests(nights.store.events()) == [waiting], "what was done for another finding settles nothing here"
    nights.store.append_event(waiting.model_copy(update={"event": "rerun-done", "at": nights.now + NIGHT}))
    assert open_requests(nights.store.events(KEY)) == []


def test_a_request_is_about_the_boundary_as_it_is_called_now(nights: Nights) -> None:
    """The boundary moved inside its range, and the older issue answers for it."""
    first = finding("17.5", "17.2", changes=CHANGES, unmeasured=("17.3", "17.4"))
    nights.night(first)
    nights.place.person.say(nights.issue().number, "/rerun")
    nights.night(first)
    (before,) = open_requests(nights.store.events())
    done = {"event": "rerun-done", "at": nights.now + NIGHT / 2, "detail": {"text": "Measured: provisional."}}
    nights.store.append_event(before.model_copy(update=done))
    moved = finding("17.4", "17.3", changes=CHANGES)
    nights.night(moved)
    nights.place.person.say(nights.issue().number, "/rerun")
    nights.night(moved)
    (waiting,) = open_requests(nights.store.events())
    assert (waiting.key, waiting.actor) == (moved.key, "mark")
    done = {"event": "rerun-done", "at": nights.now + NIGHT / 2, "detail": {"text": "Measured again: confirmed."}}
    nights.store.append_event(waiting.model_copy(update=done))
    assert nights.night(moved).counts == {"answer": 1}
    assert nights.comments()[-1].endswith("Measured again: confirmed.")
    assert nights.night(moved).done == () and nights.sync().heard == ()


def test_what_came_of_a_request_is_told_once(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    nights.place.person.say(nights.issue().number, "/bisect")
    nights.night(finding(changes=CHANGES))
    detail = {"text": "The change came after 17.4, with 17.5.", "command": "pointdrop bisect postgres A B"}
    (waiting,) = open_requests(nights.store.events(KEY))
    done = {"event": "bisect-done", "at": nights.now + NIGHT / 2, "actor": "pointdrop", "detail": detail}
    nights.store.append_event(waiting.model_copy(update=done))
    assert nights.night(finding(changes=CHANGES)).counts == {"answer": 1}
    assert "came after 17.4, with 17.5.\n\n```sh\npointdrop bisect postgres A B\n```" in nights.comments()[-1]
    said = len(nights.comments())
    assert nights.night(finding(changes=CHANGES)).counts == {} and len(nights.comments()) == said


def test_each_command_is_answered_once(nights: Nights) -> None:
    nights.night(finding(changes=CHANGES))
    number = nights.issue().number
    for text in ("/status", "/snooze", "just a remark", "/status"):
        nights.place.person.say(number, text)
    report = nights.night(finding(changes=CHANGES))
    assert [result.command for result in report.heard] == ["status", "/snooze", "status"]
    said = nights.comments()
    assert len(said) == 3 and "State: filed" in said[0] and "`/snooze`" in said[1]
    assert nights.sync().heard == () and nights.sync().heard == ()
    assert len(nights.comments()) == 3


def test_strangers_are_refused_with_one_comment_and_a_reaction(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    nights = Nights(store, fake_place, settings)
    nights.night(finding(changes=CHANGES))
    fake_place.person.say(1, "/not-a-bug", who="eve")
    nights.night(finding(changes=CHANGES))
    assert nights.issue().open and "needs write permission" in nights.comments()[0]
    comments = fake.state.repos["o/r"].issues[1].comments
    assert [reaction[2] for comment in comments for reaction in comment.reactions] == ["-1"]


@pytest.mark.parametrize("kind", ["after", "drop_after", "before"])
def test_a_lost_answer_is_not_given_twice(
    kind: str, fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    nights = Nights(store, fake_place, settings)
    nights.night(finding(changes=CHANGES))
    fake_place.person.say(1, "/ack")
    fake.faults.add(Fault(kind, "POST .*", times=1))  # type: ignore[arg-type]
    nights.night(finding(changes=CHANGES))
    assert len(nights.comments()) == 1 and nights.state() is State.ACKNOWLEDGED


def test_a_new_history_learns_what_people_decided_and_repeats_no_work(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings, history_file: Path, tmp_path: Path
) -> None:
    nights = Nights(store, fake_place, settings)
    nights.night(finding(changes=CHANGES))
    for text in ("/rerun", "/ack"):
        fake_place.person.say(1, text)
    nights.night(finding(changes=CHANGES))
    shutil.copy(history_file, tmp_path / "fresh.db")
    with Store.open(f"sqlite:///{tmp_path / 'fresh.db'}") as fresh:
        again = Nights(fresh, fake_place, settings)
        for _ in range(3):
            again.night(finding(changes=CHANGES))
        assert again.state() is State.ACKNOWLEDGED and open_requests(fresh.events(KEY)) == []
        assert len(again.comments()) == 2


def test_a_comment_after_one_that_was_deleted_is_read(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    """As many comments as were read before, and another one among them."""
    nights = Nights(store, fake_place, settings)
    nights.night(finding(changes=CHANGES))
    fake_place.person.say(1, "thanks")
    nights.night(finding(changes=CHANGES))
    fake.state.repos["o/r"].issues[1].comments.clear()
    nights.night(finding(changes=CHANGES))
    fake_place.person.say(1, "/ack")
    nights.night(finding(changes=CHANGES))
    assert nights.state() is State.ACKNOWLEDGED


def test_whoever_lends_their_token_is_heard_as_well(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    nights = Nights(store, fake_place, settings)
    nights.night(finding(changes=CHANGES))
    fake.state.add_comment(fake.state.repos["o/r"].issues[1], "pointdrop-bot", "/ack mine")
    nights.night(finding(changes=CHANGES))
    assert nights.state() is State.ACKNOWLEDGED and nights.sync().heard == ()


@pytest.mark.parametrize("name", ["rerun", "bisect", "snooze 2"])
def test_what_has_no_boundary_today_is_promised_nothing(name: str) -> None:
    command = parse(f"/{name}")
    assert isinstance(command, Command)
    for key, why in (("digest/2026-11-21", "no boundary of its own"), (KEY, "does not find this boundary")):
        reply = answer(command, IssueState(key=key, state=State.FILED), "write", newest="", summary="s")
        assert (reply.reaction, reply.event) == ("confused", "") and why in reply.text


def test_what_was_said_before_the_tracker_failed_is_heeded_the_same_night(
    fake: FakeGitHub, fake_place: GitHubPlace, store: Store, settings: AlertSettings
) -> None:
    """One issue is acknowledged, the comments of the next cannot be read: the first is silent all the same."""
    nights = Nights(store, fake_place, settings)
    other = finding("17.6", "17.5", changes=CHANGES)
    nights.night(finding(changes=CHANGES), other)
    for key, text in ((KEY, "/ack"), (other.key, "/status")):
        fake_place.person.say(nights.issue(key).number, text)
    number = nights.issue(other.key).number
    fake.faults.add(Fault("before", f"GET .*issues/{number}/comments", times=settings.github.attempts + 1))
    detect(store, finding(changes=MORE), other)
    report = sync(store, fake_place.tracker(), settings, now=nights.now + NIGHT, environment={})
    assert [result.command for result in report.heard] == ["ack"] and not report.complete
    assert nights.state() is State.ACKNOWLEDGED and len(nights.comments()) == 1


def test_a_snooze_outlasts_the_release_it_began_at() -> None:
    """On `majors` the newest release of a line takes the place of the one before it: that is one more, not all."""
    slow = finding("17.5", "16.9", line="majors")
    snoozed = IssueState(key="k", state=State.SNOOZED, snoozed={"from": "17.5", "releases": 2})
    for releases, slept in ((("15.9", "16.9", "17.6"), False), (("15.9", "16.9", "17.6", "18.0"), True)):
        world = World(
            now=NOW, subjects=(), drafts={}, issue_states={}, issues={}, gone=frozenset(), recoveries={},
            lines=frozenset(), releases={("postgres", "majors"): releases}, renamed={},
        )  # fmt: skip
        assert _slept_enough(world, Subject(key="k", finding=slow, lead=None), snoozed) is slept
