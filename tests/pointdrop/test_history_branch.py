"""The history on a branch: nothing is lost, nothing doubled, whoever pushes when."""

from __future__ import annotations

import multiprocessing
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from history.errors import InvalidRecord
from history.model import Block, CanaryReading, FindingEvent, Fingerprint, IssueLink, Measurement, Release, Run, Session
from history.store import Store
from pointdrop.jobs.history_branch import BRANCH, GitFailed, HistoryBranch, repository_of

START = datetime(2026, 11, 21, 2, 17, tzinfo=UTC)


@pytest.fixture
def remote(tmp_path: Path) -> str:
    """A bare repository with a main branch that has nothing to do with the history."""
    path = tmp_path / "remote.git"
    subprocess.run(("git", "init", "--quiet", "--bare", "--initial-branch=main", path), check=True)
    return str(path)


def store_at(path: Path) -> Store:
    return Store.open(f"sqlite:///{path}")


def add_night(store: Store, name: str, day: int = 0, blocks: int = 2) -> None:
    started = START + timedelta(days=day)
    release = Release(dbms="postgres", version=f"17.{day}", line="17", digest=f"{day:064x}")
    store.pin_release(release)
    store.append_session(
        Session(id=name, host="bee", server="small", fingerprint=Fingerprint(facts={"cores": "8"}), started=started)
    )
    store.append_run(Run(id=f"{name}/run", session_id=name, release=release, config="default", benchmark="sysbench"))
    for number in range(1, blocks + 1):
        store.append_block(
            Block(
                id=f"{name}/run/{number}", run_id=f"{name}/run", number=number, started=started, ended=started,
                measurements=(Measurement(test="scan", group="range", metric="qps", value=0.1 + day + number),),
                samples={"scan": {"qps": (1.0, 2.5)}},
            )
        )  # fmt: skip
    store.append_reading(
        CanaryReading(
            host="bee", at=started, session_id=name, phase="before", cpu_ms=100.0 + day, memory_ms=1.0, sync_ms=1.0,
            verdict="usual",
        )
    )  # fmt: skip
    store.append_event(FindingEvent(key=f"postgres/17/17.{day}/regression", event="filed", at=started))
    store.append_link(IssueLink(key=f"postgres/17/17.{day}/regression", tracker="github:o/r", number=day + 1))


def contents(store: Store) -> dict[str, object]:
    return {
        "sessions": store.sessions(),
        "blocks": [store.blocks(run.id) for run in sorted(store.runs(), key=lambda run: run.id)],
        "events": sorted(store.events(), key=lambda event: event.at),
        "links": sorted(store.links(), key=lambda link: link.number),
        "releases": store.releases(),
        "readings": store.readings(),
    }


def test_what_one_machine_pushes_another_pulls_unchanged(tmp_path: Path, remote: str) -> None:
    with store_at(tmp_path / "a.db") as one, store_at(tmp_path / "b.db") as other:
        add_night(one, "night-1")
        add_night(one, "night/2", day=30)
        pushed = HistoryBranch(remote, tmp_path / "a").push(one)
        assert pushed.commit
        pulled = HistoryBranch(remote, tmp_path / "b").pull(other)
        ran = {"session": 2, "run": 2, "block": 4, "reading": 2}
        assert pulled.imported == {**ran, "event": 2, "link": 2, "release": 2}
        assert contents(other) == contents(one)
        assert HistoryBranch(remote, tmp_path / "b").push(other).commit == "", "nothing new, nothing committed"
    tree = subprocess.run(
        ("git", "-C", remote, "ls-tree", "-r", "--name-only", BRANCH), capture_output=True, text=True, check=True
    ).stdout.split()
    assert tree == [
        "outcomes/2026-11.jsonl", "outcomes/2026-12.jsonl", "outcomes/links.jsonl", "outcomes/releases.jsonl",
        "readings/2026-11.jsonl", "readings/2026-12.jsonl", "runs/2026-11/night-1.jsonl", "runs/2026-12/night_2.jsonl",
    ]  # fmt: skip


def test_publishers_at_once_lose_nothing(tmp_path: Path, remote: str) -> None:
    def publish(number: int) -> None:
        with store_at(tmp_path / f"{number}.db") as store:
            add_night(store, f"night-{number}", day=number)
            HistoryBranch(remote, tmp_path / f"work-{number}").push(store)

    fork = multiprocessing.get_context("fork")
    publishers = [fork.Process(target=publish, args=(number,)) for number in range(4)]
    for publisher in publishers:
        publisher.start()
    for publisher in publishers:
        publisher.join(120)
    assert [publisher.exitcode for publisher in publishers] == [0, 0, 0, 0]
    with store_at(tmp_path / "all.db") as everything:
        HistoryBranch(remote, tmp_path / "all").pull(everything)
        assert [session.id for session in everything.sessions()] == [f"night-{n}" for n in range(4)]
        assert len(everything.events()) == len(everything.links()) == 4


def test_machines_do_not_write_each_others_outcomes_anew(tmp_path: Path, remote: str) -> None:
    """Each stored its own link before it knew of the other's."""
    with store_at(tmp_path / "a.db") as one, store_at(tmp_path / "b.db") as other:
        add_night(one, "night-1")
        add_night(other, "night-2", day=1)
        a, b = HistoryBranch(remote, tmp_path / "a"), HistoryBranch(remote, tmp_path / "b")
        a.push(one)
        b.push(other)
        assert [link.number for link in other.links()] == [2, 1]
        assert [a.push(one).commit, b.push(other).commit, a.push(one).commit] == ["", "", ""]
        assert [link.number for link in one.links()] == [1, 2]


def test_another_version_does_not_write_files_of_earlier_ones_anew(
    tmp_path: Path, remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store_at(tmp_path / "a.db") as one:
        add_night(one, "night-1")
        branch = HistoryBranch(remote, tmp_path / "a")
        branch.push(one)
        monkeypatch.setattr("history.records.tool_version", lambda: "0.2.0")
        assert branch.push(one).commit == ""
        add_night(one, "night-2", day=30)
        assert branch.push(one).commit
    files = sorted((branch.folder / "runs").glob("*/*.jsonl"))
    assert ["0.2.0" in path.read_text().partition("\n")[0] for path in files] == [False, True]


def test_a_session_that_goes_on_later_keeps_its_file(tmp_path: Path, remote: str) -> None:
    with store_at(tmp_path / "a.db") as one:
        add_night(one, "night", blocks=1)
        HistoryBranch(remote, tmp_path / "a").push(one)
        add_night(one, "night", blocks=3)
        HistoryBranch(remote, tmp_path / "a").push(one)
    with store_at(tmp_path / "b.db") as other:
        HistoryBranch(remote, tmp_path / "b").pull(other)
        assert other.block_ids("night") == {f"night/run/{n}" for n in (1, 2, 3)}


def test_a_branch_that_is_not_there_yet_is_an_empty_history(tmp_path: Path, remote: str) -> None:
    with store_at(tmp_path / "a.db") as store:
        assert HistoryBranch(remote, tmp_path / "a").pull(store).imported == {}


def test_a_new_repository_gets_all_of_it_and_nothing_comes_out_of_an_empty_one(tmp_path: Path, remote: str) -> None:
    empty = tmp_path / "new.git"
    subprocess.run(("git", "init", "--quiet", "--bare", empty), check=True)
    with store_at(tmp_path / "a.db") as one, store_at(tmp_path / "b.db") as other:
        add_night(one, "night")
        HistoryBranch(remote, tmp_path / "a").push(one)
        assert HistoryBranch(str(empty), tmp_path / "a").pull(other).imported == {}
        assert HistoryBranch(str(empty), tmp_path / "a").push(one).commit  # the same folder, as the command has it
        HistoryBranch(str(empty), tmp_path / "b").pull(other)
        assert contents(other) == contents(one)


def test_what_was_committed_and_not_pushed_is_pushed_the_next_time(
    tmp_path: Path, remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store_at(tmp_path / "a.db") as one:
        add_night(one, "night")
        branch = HistoryBranch(remote, tmp_path / "a")
        with monkeypatch.context() as patch:
            patch.setattr(branch, "_push", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                branch.push(one)
        assert branch.push(one).commit


def test_sessions_whose_ids_make_one_file_name_are_both_kept(tmp_path: Path, remote: str) -> None:
    names = ["host/night", "host_night", "x" * 130 + "time", "x" * 130 + "instructions"]
    with store_at(tmp_path / "a.db") as one, store_at(tmp_path / "b.db") as other:
        for day, name in enumerate(names):
            add_night(one, name, day=day)
        HistoryBranch(remote, tmp_path / "a").push(one)
        HistoryBranch(remote, tmp_path / "b").pull(other)
        assert sorted(session.id for session in other.sessions()) == sorted(names)


def test_a_push_that_a_hook_declines_is_told_in_its_words_and_not_tried_again(tmp_path: Path, remote: str) -> None:
    hook = Path(remote) / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho run >> ran\necho the branch is protected >&2\nexit 1\n")
    hook.chmod(0o755)
    with store_at(tmp_path / "a.db") as one:
        add_night(one, "night")
        with pytest.raises(GitFailed, match="the branch is protected"):
            HistoryBranch(remote, tmp_path / "a").push(one)
    assert (Path(remote) / "ran").read_text() == "run\n"


def test_a_damaged_file_is_named_and_nothing_of_it_is_taken(tmp_path: Path, remote: str) -> None:
    with store_at(tmp_path / "a.db") as one:
        add_night(one, "night")
        branch = HistoryBranch(remote, tmp_path / "a")
        branch.push(one)
    outcomes = tmp_path / "a" / "outcomes" / "2026-11.jsonl"
    outcomes.write_text('{"event": {"key": 1}}\n')
    git = ("git", "-c", "user.name=x", "-c", "user.email=x@localhost", "-C", str(tmp_path / "a"))
    subprocess.run((*git, "commit", "-qam", "damage"), check=True)
    subprocess.run((*git, "push", "-q", remote, BRANCH), check=True)
    with store_at(tmp_path / "b.db") as other, pytest.raises(InvalidRecord, match=r"outcomes/2026-11.jsonl:1"):
        HistoryBranch(remote, tmp_path / "b").pull(other)


def test_where_the_branch_is() -> None:
    assert repository_of({"GITHUB_REPOSITORY": "o/r"}) == "https://github.com/o/r"
    assert repository_of({"GITHUB_REPOSITORY": "o/r", "GITHUB_SERVER_URL": "https://ghe"}) == "https://ghe/o/r"
    assert repository_of({"POINTDROP_HISTORY_GIT": "/x", "GITHUB_REPOSITORY": "o/r"}) == "/x"


def test_the_token_is_in_no_argument_and_no_file(tmp_path: Path) -> None:
    branch = HistoryBranch("https://github.invalid/o/r", tmp_path / "w", token="s3cret")
    environment = branch._environment()
    assert "s3cret" not in " ".join(environment.values())
    assert environment["GIT_CONFIG_KEY_0"] == "http.https://github.invalid/o/r.extraheader"
