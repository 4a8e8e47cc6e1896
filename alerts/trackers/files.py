"""Issues as Markdown files: one file an issue, TOML front matter, comments appended.

```
+++
number = 1
title = "postgres 17.5: point queries 3.1 % more instructions (8 of 11 tests, local)"
state = "open"
close_reason = ""
labels = ["perf-regression", "postgres"]
+++
<!-- pointdrop:v1 key=postgres/17/17.5/regression -->
...
<!-- pointdrop:comment id=1 author=pointdrop at=2026-11-21T02:00:00+00:00 -->
...
```

Writes are atomic (a temporary file, then a rename) and made under one lock, so that readers and a second process
never see half an issue. People may edit the files: change the state, write below the end line of the body, append a
comment with their name. Whoever can write the files may give commands.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tomlkit
from filelock import FileLock, Timeout

from alerts.errors import IssueGone, TrackerRefused, TrackerUnavailable
from alerts.marker import event_of, keys_of
from alerts.render import slug
from alerts.trackers import CloseReason, Comment, Draft, Issue, Permission, Reaction
from history.files import write_atomically

#: How long a second process waits for the first, in seconds.
LOCK_SECONDS = 30.0
AUTHOR = "pointdrop"

_NAME = re.compile(r"\d+-")
_FRONT = re.compile(r"\+\+\+\n(.*?)^\+\+\+\n(.*)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"^<!-- pointdrop:comment id=(\d+) author=(\S+) at=(\S+) -->\n", re.MULTILINE)


class FilesTracker:
    """The tracker `files` in `directory`, which is made when it is missing."""

    name = "files"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def issues(self) -> list[Issue]:
        loaded = (self._load(path) for path in self._files())
        return [issue for issue, _ in loaded if issue.keys]

    def look_again(self) -> list[Issue]:
        return self.issues()

    def issue(self, number: int) -> Issue:
        """IssueGone when its file was deleted; TrackerRefused when the whole directory is not there, since a wrong path
        must not pass for people who deleted every issue."""
        if not self.directory.is_dir():
            raise TrackerRefused(
                f"the history has issue {number} of the files tracker, but there is no {self.directory}. Name the "
                f"directory with --issues or restore it; when its issues are gone for good, make it: mkdir -p "
                f"{self.directory}"
            )
        return self._load(self._path(number))[0]

    def create(self, draft: Draft) -> Issue:
        with self._locked():
            there = [issue for issue in self.issues() if issue.keys[0] == draft.key]
            if there:
                return there[0]
            number = self._next_number()
            path = self.directory / f"{number:04d}-{slug(draft.key)}.md"
            front = {
                "number": number,
                "title": draft.title,
                "state": "open",
                "close_reason": "",
                "labels": sorted(draft.labels),
            }
            self._write(path, front, draft.body, [])
            return self._load(path)[0]

    def edit(self, number: int, *, title: str | None = None, body: str | None = None) -> None:
        self._change(number, {} if title is None else {"title": title}, body=body)

    def add_labels(self, number: int, labels: frozenset[str]) -> None:
        self._change(number, lambda front: {"labels": sorted({*front.get("labels", []), *labels})})

    def close(self, number: int, reason: CloseReason) -> None:
        self._change(number, {"state": "closed", "close_reason": reason})

    def reopen(self, number: int) -> None:
        self._change(number, {"state": "open", "close_reason": ""})

    def comments(self, number: int) -> list[Comment]:
        return self._load(self._path(number))[1]

    def comment(self, number: int, event: str, body: str) -> None:
        def once(comments: list[Comment]) -> list[Comment]:
            if any(comment.ours and event_of(comment.body) == event for comment in comments):
                return comments
            number = max((comment.id for comment in comments), default=0) + 1
            new = Comment(id=number, body=body, author=AUTHOR, ours=True, created=datetime.now(UTC))
            return [*comments, new]

        self._change(number, {}, comments=once)

    def react(self, number: int, comment_id: int, reaction: Reaction) -> None:
        """Files have no reactions; the answer in words is enough."""

    def permission(self, login: str) -> Permission:
        return "admin"

    # --- the files ---------------------------------------------------------------------------------------

    def _files(self) -> list[Path]:
        """Files whose name is that of an issue; people may keep others beside them."""
        return sorted(path for path in self.directory.glob("*.md") if _NAME.match(path.name))

    def _path(self, number: int) -> Path:
        for path in self.directory.glob(f"{number:04d}-*.md"):
            return path
        raise IssueGone(number)

    def _load(self, path: Path) -> tuple[Issue, list[Comment]]:
        front, body, comments = self._read(path)
        try:
            issue = Issue(
                number=front["number"],
                title=front["title"],
                body=body,
                labels=frozenset(front.get("labels", [])),
                open=_is_open(front["state"]),
                url=path.resolve().as_uri(),
                keys=keys_of(body),
                close_reason=front.get("close_reason", ""),
                comments=len(comments),
            )
        except (KeyError, ValueError) as error:
            raise TrackerRefused(f"{path}: {error}. Repair or delete the file.") from None
        return issue, comments

    def _read(self, path: Path) -> tuple[dict[str, Any], str, list[Comment]]:
        try:
            match = _FRONT.fullmatch(path.read_text(encoding="utf-8"))
            front = tomllib.loads(match[1]) if match else None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise TrackerRefused(f"{path} cannot be read: {error}. Repair or delete the file.") from None
        if match is None or front is None:
            raise TrackerRefused(f"{path} has no front matter between two lines of +++. Repair or delete the file.")
        body, *parts = _COMMENT.split(match[2])
        comments: list[Comment] = []
        for at in range(0, len(parts), 4):
            number, author, moment, text = parts[at : at + 4]
            try:
                created = datetime.fromisoformat(moment)
            except ValueError:
                raise TrackerRefused(f"{path}: at={moment} is no time, as in at=2026-11-21T02:00:00+00:00.") from None
            created = created if created.tzinfo else created.replace(tzinfo=UTC)
            # The head of a comment is easily copied with its number; another comment is another one all the same.
            same = any(comment.id == int(number) for comment in comments)
            identifier = _number_of(author, moment, text.strip("\n")) if same else int(number)
            comments.append(
                Comment(id=identifier, body=text.strip("\n"), author=author, ours=author == AUTHOR, created=created)
            )
        return front, body.rstrip("\n") + "\n", comments

    def _change(
        self,
        number: int,
        change: dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]],
        *,
        body: str | None = None,
        comments: Callable[[list[Comment]], list[Comment]] = lambda comments: comments,
    ) -> None:
        with self._locked():
            path = self._path(number)
            front, text, comments_text = self._read(path)
            front |= change(front) if callable(change) else change
            self._write(path, front, text if body is None else body, comments(comments_text))

    def _write(self, path: Path, front: dict[str, Any], body: str, comments: list[Comment]) -> None:
        parts = [f"+++\n{tomlkit.dumps(front)}+++\n", _plain(body)]
        for comment in comments:
            at = comment.created.isoformat()
            parts.append(
                f"\n<!-- pointdrop:comment id={comment.id} author={comment.author} at={at} -->\n{_plain(comment.body)}"
            )
        self._replace(path, "".join(parts))

    def _replace(self, path: Path, text: str) -> None:
        try:
            write_atomically(path, text)
        except OSError as error:
            raise TrackerUnavailable(f"{path} cannot be written: {error}. Make room or fix the permission.") from error

    def _next_number(self) -> int:
        """Numbers are never used twice, also not after a file was deleted: links in the history point to them."""
        counter = self.directory / ".next-number"
        used = [int(path.name.partition("-")[0]) for path in self._files()]
        last_number = counter.read_text(encoding="utf-8").strip() if counter.exists() else ""
        number = max([int(last_number) if last_number.isdecimal() else 1, *(n + 1 for n in used)])
        self._replace(counter, f"{number + 1}\n")
        return number

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with FileLock(self.directory / ".lock", timeout=LOCK_SECONDS):
                yield
        except Timeout as error:
            raise TrackerUnavailable(f"{self.directory} is locked by another process; run it again later.") from error
        except OSError as error:
            raise TrackerUnavailable(f"{self.directory} cannot be written: {error.strerror or error}.") from error


def _is_open(state: object) -> bool:
    """ValueError for what is no state: a slip of the pen must not pass for a person's close."""
    if state not in ("open", "closed"):
        raise ValueError(f"state = {state!r} is neither 'open' nor 'closed'")
    return state == "open"


def _number_of(*parts: str) -> int:
    """A number that is the same whenever the same comment is read."""
    return int.from_bytes(hashlib.sha256("\n".join(parts).encode()).digest()[:6])


def _plain(text: str) -> str:
    """Text in which no line looks like the head of a comment or of the front matter."""
    return _COMMENT.sub(lambda match: " " + match[0], text.rstrip("\n") + "\n")
