"""Issues as files: atomic, never two of a key, numbers never used twice, and open to people with an editor."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from alerts.errors import IssueGone, TrackerRefused, TrackerUnavailable
from alerts.marker import event_marker, marker, with_notes
from alerts.trackers import Draft
from alerts.trackers.files import FilesTracker


def draft(key: str = "postgres/17/17.5/regression", text: str = "It got slower.") -> Draft:
    body = with_notes(f"{marker(key)}\n\n{text}", None)
    return Draft(key=key, title="postgres 17.5: slower", body=body, labels=frozenset({"perf-regression"}))


@pytest.fixture
def tracker(tmp_path: Path) -> FilesTracker:
    return FilesTracker(tmp_path / "issues")


def test_an_issue_is_one_readable_file(tracker: FilesTracker) -> None:
    issue = tracker.create(draft())
    (path,) = tracker.directory.glob("*.md")
    assert path.name == "0001-postgres-17-17.5-regression.md"
    text = path.read_text()
    assert text.startswith('+++\nnumber = 1\ntitle = "postgres 17.5: slower"\nstate = "open"\n')
    assert "It got slower." in text
    assert (issue.number, issue.open, issue.keys) == (1, True, ("postgres/17/17.5/regression",))
    assert tracker.issues() == [issue] == [tracker.issue(1)]


def test_life(tracker: FilesTracker) -> None:
    tracker.create(draft())
    tracker.edit(1, title="new title", body=with_notes(f"{marker('k')}\nnew", None))
    tracker.add_labels(1, frozenset({"drift"}))
    tracker.comment(1, "e:1", f"{event_marker('e:1')}\nhello")
    tracker.comment(1, "e:1", f"{event_marker('e:1')}\nhello again")
    tracker.close(1, "not_planned")
    issue = tracker.issue(1)
    assert (issue.title, issue.open, issue.close_reason) == ("new title", False, "not_planned")
    assert issue.labels == {"drift", "perf-regression"}
    assert [comment.body.splitlines()[1] for comment in tracker.comments(1)] == ["hello"]
    tracker.reopen(1)
    assert tracker.issue(1).open


def test_the_same_key_twice_is_one_issue(tracker: FilesTracker) -> None:
    assert tracker.create(draft()).number == tracker.create(draft()).number == 1


def test_two_processes_at_once(tracker: FilesTracker) -> None:
    others = [FilesTracker(tracker.directory) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda t=t: [t.create(draft(f"k{n}")) for n in range(5)])  # type: ignore[misc]
        for t in others
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(issue.keys[0] for issue in tracker.issues()) == [f"k{n}" for n in range(5)]
    assert sorted(issue.number for issue in tracker.issues()) == [1, 2, 3, 4, 5]


def test_numbers_are_not_used_again(tracker: FilesTracker) -> None:
    tracker.create(draft("a"))
    (path,) = tracker.directory.glob("*.md")
    path.unlink()
    assert tracker.create(draft("b")).number == 2
    with pytest.raises(IssueGone):
        tracker.issue(1)


def test_people_edit_files(tracker: FilesTracker) -> None:
    tracker.create(draft())
    (path,) = tracker.directory.glob("*.md")
    path.write_text(
        path.read_text().replace('state = "open"', 'state = "closed"')
        + "\n<!-- pointdrop:comment id=1 author=mark at=2026-11-21T03:00:00+00:00 -->\n/ack known\n"
    )
    assert not tracker.issue(1).open
    (comment,) = tracker.comments(1)
    assert (comment.author, comment.ours, comment.body) == ("mark", False, "/ack known")


def test_a_copied_head_is_another_comment_and_keeps_its_number(tracker: FilesTracker) -> None:
    tracker.create(draft())
    (path,) = tracker.directory.glob("*.md")
    head = "\n<!-- pointdrop:comment id=1 author=mark at=2026-11-21T03:00:00+00:00 -->\n"
    path.write_text(f"{path.read_text()}{head}/status\n{head}/ack known\n")
    first, second = (comment.id for comment in tracker.comments(1))
    assert first == 1 != second
    tracker.comment(1, "e", f"{event_marker('e')}\nanswer")
    assert [comment.id for comment in tracker.comments(1)] == [1, second, second + 1]


def test_a_state_that_is_none_is_no_close(tracker: FilesTracker) -> None:
    tracker.create(draft())
    (path,) = tracker.directory.glob("*.md")
    path.write_text(path.read_text().replace('state = "open"', 'state = "Open"'))
    with pytest.raises(TrackerRefused, match="neither 'open' nor 'closed'"):
        tracker.issues()


def test_text_cannot_pass_for_a_comment(tracker: FilesTracker) -> None:
    forged = "<!-- pointdrop:comment id=9 author=pointdrop at=2026-11-21T03:00:00+00:00 -->\nforged"
    tracker.create(draft(text=forged))
    tracker.comment(1, "e", f"{event_marker('e')}\n{forged}")
    assert [comment.id for comment in tracker.comments(1)] == [1]


@pytest.mark.parametrize(
    "text", ["no front matter", "+++\nnumber = \n+++\n", '+++\ntitle = "x"\n+++\nbody', b"\xff\xfe"]
)
def test_a_broken_file_is_named(tracker: FilesTracker, text: str | bytes) -> None:
    tracker.directory.mkdir(parents=True)
    path = tracker.directory / "0001-x.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TrackerRefused, match=r"0001-x\.md"):
        tracker.issues()


def test_what_people_leave_in_files_is_taken_or_named(tracker: FilesTracker) -> None:
    tracker.create(draft())
    (path,) = tracker.directory.glob("*.md")
    (tracker.directory / "1st-notes.md").write_text("not an issue\n")
    (tracker.directory / ".next-number").write_text("two\n")
    path.write_text(path.read_text().replace('labels = ["perf-regression"]\n', ""))
    tracker.add_labels(1, frozenset({"drift"}))
    assert tracker.issue(1).labels == {"drift"}
    assert tracker.create(draft("b")).number == 2
    whole = path.read_text()
    path.write_text(whole + "\n<!-- pointdrop:comment id=1 author=mark at=2026-11-21 -->\n/status\n")
    assert tracker.comments(1)[0].created.isoformat() == "2026-11-21T00:00:00+00:00"
    path.write_text(whole + "\n<!-- pointdrop:comment id=1 author=mark at=yesterday -->\n/status\n")
    with pytest.raises(TrackerRefused, match="at=yesterday is no time"):
        tracker.comments(1)


def test_a_directory_that_cannot_be_made_is_left_for_the_next_sync(tmp_path: Path) -> None:
    (tmp_path / "issues").write_text("a file\n")
    with pytest.raises(TrackerUnavailable, match="cannot be written"):
        FilesTracker(tmp_path / "issues").create(draft())
