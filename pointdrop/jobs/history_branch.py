"""A history without a database server: JSON Lines on a branch of its own of a Git repository.

    runs/2026-11/20261121T0217Z-bee-postgres-17.jsonl      one file a session, format pointdrop.run/1
    readings/2026-11.jsonl                                 the machine canary of every host that month, same format
    outcomes/2026-11.jsonl                                 what happened to findings that month
    outcomes/links.jsonl  outcomes/releases.jsonl          issues of findings; pinned releases

Nothing is ever merged: `push` takes the branch as it is, imports it, writes the union, and begins anew when somebody
else pushed meanwhile. Two publishers at once therefore lose nothing, and a file never has two authors' halves.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from history.errors import HistoryError, InvalidRecord
from history.importing import import_file
from history.interchange import header_line, line_of_record
from history.model import FindingEvent, IssueLink, Release, Row, Session
from history.records import text_of
from history.store import Store

BRANCH = "pointdrop-history"
ATTEMPTS = 12
#: What stands in the files of outcomes, by the key of its line, and how it is stored.
OUTCOMES: dict[str, tuple[type[Row], Callable[[Store, Any], bool]]] = {
    "event": (FindingEvent, Store.append_event),
    "link": (IssueLink, Store.append_link),
    "release": (Release, Store.pin_release),
}
GIT_TIMEOUT_S = 600
#: Commits of the branch are the tool's own; nobody's name and address are needed for them.
IDENTITY = ("-c", "user.name=pointdrop", "-c", "user.email=pointdrop@localhost")


class BranchMoved(HistoryError):
    """Somebody else pushed first, every time; run the same command again."""


class GitFailed(HistoryError):
    """Git could not do it; its own message says why."""


@dataclass
class Synced:
    """What a sync did."""

    imported: dict[str, int] = field(default_factory=dict)
    """New records by kind."""
    written: int = 0
    """Files that changed on the branch."""
    commit: str = ""


def repository_of(environment: Mapping[str, str]) -> str:
    """Where the branch is: POINTDROP_HISTORY_GIT, the repository of the workflow, or `origin` of this checkout."""
    if named := environment.get("POINTDROP_HISTORY_GIT"):
        return named
    if repository := environment.get("GITHUB_REPOSITORY"):
        return f"{environment.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    done = subprocess.run(("git", "remote", "get-url", "origin"), capture_output=True, text=True, check=False)
    if done.returncode:
        raise GitFailed(
            "no repository for the history branch: set POINTDROP_HISTORY_GIT, or give origin to this checkout"
        )
    return done.stdout.strip()


class HistoryBranch:
    """The branch, checked out below `folder`; `token` is for HTTPS and never stands on a command line."""

    def __init__(self, repository: str, folder: Path, branch: str = BRANCH, token: str = "") -> None:
        self.repository = repository
        self.folder = folder
        self.branch = branch
        self._token = token

    # --- git ---

    def _git(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                ("git", *IDENTITY, *arguments),
                cwd=self.folder,
                env=self._environment(),
                capture_output=True,
                text=True,
                timeout=GIT_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {arguments[0]} on {self.repository}: no end after {GIT_TIMEOUT_S} s") from error
        if check and done.returncode:
            raise GitFailed(f"git {arguments[0]} on {self.repository}: {done.stderr.strip() or done.stdout.strip()}")
        return done

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}  # what git says is read below
        if self._token and self.repository.startswith("https://"):
            secret = base64.b64encode(f"x-access-token:{self._token}".encode()).decode()
            environment |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{self.repository}.extraheader",
                "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {secret}",
            }
        return environment

    def _refresh(self) -> None:
        """The branch as the repository has it now; an empty one when there is none yet."""
        if not (self.folder / ".git").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            self._git("init", "--quiet", f"--initial-branch={self.branch}")
        ref = f"+refs/heads/{self.branch}:refs/remotes/origin/{self.branch}"
        fetched = self._git("fetch", "--quiet", "--no-tags", "--depth=1", self.repository, ref, check=False)
        if fetched.returncode == 0:
            self._git("checkout", "--quiet", "--force", "-B", self.branch, f"refs/remotes/origin/{self.branch}")
            self._git("clean", "-qdfx")
        elif "couldn't find remote ref" not in fetched.stderr:
            raise GitFailed(f"git fetch from {self.repository}: {fetched.stderr.strip()}")
        else:
            # What the folder holds is of another repository or branch, or was committed and never pushed.
            self._git("update-ref", "-d", "HEAD")
            self._git("read-tree", "--empty")
            self._git("clean", "-qdfx")

    # --- both ways ---

    def pull(self, store: Store) -> Synced:
        """Everything on the branch into `store`. InvalidRecord names the file when one cannot be taken."""
        self._refresh()
        return Synced(self._import(store))

    def push(self, store: Store, message: str = "Append results") -> Synced:
        """The union of branch and store onto both; tried again while others push. BranchMoved when they never stop."""
        for attempt in Retrying(
            retry=retry_if_exception_type(BranchMoved),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.2, max=20),
            reraise=True,
        ):
            with attempt:
                synced = self.pull(store)
                synced.written = self._write(store)
                self._git("add", "--all")
                if self._git("diff", "--cached", "--quiet", check=False).returncode == 0:
                    return synced
                self._git("commit", "--quiet", "--no-gpg-sign", "-m", message)
                self._push()
                synced.commit = self._git("rev-parse", "HEAD").stdout.strip()
        return synced

    def _push(self) -> None:
        done = self._git("push", "--quiet", self.repository, f"HEAD:refs/heads/{self.branch}", check=False)
        if done.returncode == 0:
            return
        lost = ("[rejected]", "non-fast-forward", "fetch first", "cannot lock ref", "[remote rejected]")
        if any(word in done.stderr for word in lost) and "declined" not in done.stderr:  # by a hook, or a protection
            raise BranchMoved(f"others pushed to {self.branch} {ATTEMPTS} times in a row; run the same command again")
        raise GitFailed(f"git push to {self.repository}: {done.stderr.strip()}")

    def _import(self, store: Store) -> dict[str, int]:
        new: dict[str, int] = {}
        runs, readings = (self.folder / "runs").glob("*/*.jsonl"), (self.folder / "readings").glob("*.jsonl")
        for path in (*sorted(runs), *sorted(readings)):
            report = import_file(store, path)
            if not report.stored:
                first = report.rejected[0]
                raise InvalidRecord(f"{self.branch}:{path.relative_to(self.folder)}:{first.line}: {first.reason}")
            for kind, count in report.new.items():
                new[kind] = new.get(kind, 0) + count
        for path in sorted((self.folder / "outcomes").glob("*.jsonl")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                kind = _take(store, line, f"{self.branch}:outcomes/{path.name}:{number}")
                new |= {kind: new.get(kind, 0) + 1} if kind else {}
        return new

    def _write(self, store: Store) -> int:
        """Files as the store would have them; how many changed."""
        files: dict[Path, list[str]] = {}
        header = header_line()
        for session in store.sessions():
            # two ids may make one name: letters that no file name should have, and its length
            files.setdefault(self._session_file(session), [header]).extend(_session_lines(store, session))
        for reading in store.readings():
            month = files.setdefault(self.folder / "readings" / f"{reading.at:%Y-%m}.jsonl", [header])
            month.append(line_of_record(reading))
        outcomes = self.folder / "outcomes"
        for event in store.events():
            files.setdefault(outcomes / f"{event.at:%Y-%m}.jsonl", []).append(_line("event", event))
        files[outcomes / "links.jsonl"] = [_line("link", link) for link in store.links()]
        files[outcomes / "releases.jsonl"] = [_line("release", r) for r in store.releases() if r.digest]
        changed = 0
        for path, lines in files.items():
            lines = lines if path.parent != outcomes else _in_order(lines, path)
            text = "".join(f"{line}\n" for line in lines)
            held = path.read_text(encoding="utf-8") if path.exists() else ""
            if lines[:1] == [header]:  # another writer is no reason to write a file anew
                held = "\n".join((header, held.partition("\n")[2]))
            if lines and held != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                changed += 1
        return changed

    def _session_file(self, session: Session) -> Path:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", session.id)[:120]
        return self.folder / "runs" / f"{session.started:%Y-%m}" / f"{name}.jsonl"


def _session_lines(store: Store, session: Session) -> Iterable[str]:
    yield line_of_record(session)
    for run in sorted(store.runs(session.id), key=lambda run: run.id):
        yield line_of_record(run)
        for block in store.blocks(run.id):
            yield line_of_record(block)


def _in_order(lines: list[str], path: Path) -> list[str]:
    """What the file has in its order, then what is new: every machine stored the outcomes of others in another order,
    and none shall write the file anew for that."""
    held = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    place = {_line(*_outcome(line)): number for number, line in enumerate(held)}
    return sorted(lines, key=lambda line: place.get(line, len(place)))


def _outcome(line: str) -> tuple[str, Row]:
    """One line of a file of outcomes; ValueError when it is none."""
    data = json.loads(line)
    if not isinstance(data, dict) or len(data) != 1:
        raise ValueError("a line is an object with one key")
    ((kind, row),) = data.items()
    if kind not in OUTCOMES:
        raise ValueError(f"no such kind: {kind!r}")
    return kind, OUTCOMES[kind][0].model_validate(row)


def _line(kind: str, row: Row) -> str:
    return text_of({kind: row.model_dump(mode="json")})


def _take(store: Store, line: str, where: str) -> str:
    """Append one outcome; its kind when the store did not have it. InvalidRecord names file and line."""
    try:
        kind, row = _outcome(line)
        new = OUTCOMES[kind][1](store, row)
    except ValueError as error:
        raise InvalidRecord(f"{where}: {str(error).splitlines()[0]}") from error
    return kind if new else ""
