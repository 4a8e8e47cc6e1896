"""Commands people give in comments, parsed strictly, and what they are answered. Pure.

A command is a line of its own that begins with a slash, outside code and quotes; one comment may carry one command.

>>> parse("Known since May.\\n\\n/ack fixed in 17.7\\n")
Command(name='ack', argument='fixed in 17.7', releases=0)
>>> parse("/snooze 3 releases").releases
3
>>> parse("/snooze")
Misunderstood(text='/snooze', problem='say for how many releases: /snooze 2')
>>> parse("I would /ack this, but") is None
True
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from alerts.changes import DIGEST, ENVIRONMENT
from alerts.issue_state import BISECT, RERUN, IssueState
from alerts.lifecycle import OPEN, State, next_state
from alerts.trackers import WRITERS, Reaction
from presentation.number_format import count

Name = Literal["ack", "snooze", "not-a-bug", "rerun", "bisect", "status"]
NAMES: tuple[Name, ...] = ("ack", "snooze", "not-a-bug", "rerun", "bisect", "status")
#: A comment this long is no place to look for a command, in characters.
LONGEST = 10_000
#: Releases somebody may snooze for.
MOST_RELEASES = 20

BISECT_ANSWER = (
    "The next night measures both sides again and, where instructions are counted, releases between them. Then a "
    "comment here says what is left, and how to go on with commits."
)

NO_BOUNDARY = "This issue is about no boundary of its own; /{name} is for the issue of one."
NOT_FOUND = "The newest detection does not find this boundary; when it is found again, /{name} can be given again."

NOT_HERE = (
    "Nothing that is configured here can measure this again; the end of the issue says what shows it on a machine of "
    "your own."
)

_LINE = re.compile(r"/([a-z-]+)(?:[ \t]+(\S.*?))?[ \t]*")
_SNOOZE = re.compile(r"(\d{1,3})(?:\s+releases?)?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Command(NamedTuple):
    """What somebody wants."""

    name: Name
    argument: str = ""
    releases: int = 0


class Misunderstood(NamedTuple):
    """Something that begins like a command and is none."""

    text: str
    problem: str


class Answer(NamedTuple):
    """What a command leads to: a reaction, a sentence, and the event to record, if any."""

    reaction: Reaction
    text: str
    event: str = ""
    closes: bool = False


def parse(comment: str) -> Command | Misunderstood | None:
    """The command in a comment; None when there is none, Misunderstood when it is wrong or there are two."""
    lines = _own_lines(comment[:LONGEST])
    command_lines = [line for line in lines if (match := _LINE.fullmatch(line)) and match[1] in NAMES]
    if not command_lines:
        return None
    if len(command_lines) > 1:
        return Misunderstood(command_lines[0], "there is more than one command in the comment; give one a comment")
    match = _LINE.fullmatch(command_lines[0])
    assert match
    name, argument = match[1], match[2] or ""
    if name == "snooze":
        number = _SNOOZE.fullmatch(argument)
        if not number:
            return Misunderstood(command_lines[0], "say for how many releases: /snooze 2")
        if not 1 <= int(number[1]) <= MOST_RELEASES:
            return Misunderstood(command_lines[0], f"between 1 and {MOST_RELEASES} releases, please")
        return Command("snooze", releases=int(number[1]))
    if name in ("rerun", "bisect", "status") and argument:
        return Misunderstood(command_lines[0], f"/{name} takes nothing after it")
    return Command(next(command_name for command_name in NAMES if command_name == name), argument)


def _own_lines(comment: str) -> list[str]:
    """The lines a person wrote as text: no quotes, no code."""
    written: list[str] = []
    fence = ""
    for line in comment.replace("\r\n", "\n").split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line[mark.end() :].strip():
                fence = ""
            continue
        if mark:
            fence = mark[1]
            continue
        if not line.startswith(("    ", "\t", ">")):
            written.append(line.strip())
    return written


def answer(
    command: Command, issue_state: IssueState, permission: str, *, newest: str, summary: str, measurable: bool = True
) -> Answer:
    """What to do for `command`. `newest` is the newest measured release, empty where the newest detection does not name
    the issue's boundary; `summary` the state in words; `measurable`,
    whether anything configured here can measure it again.
    """
    if permission not in WRITERS:
        return Answer("-1", f"/{command.name} needs write permission on this repository.")
    match command.name:
        case "status":
            return Answer("+1", summary)
        case "rerun" | "bisect" if issue_state.state not in OPEN and issue_state.state is not State.CLOSED:
            return Answer("confused", f"This is {issue_state.state.value}; there is nothing to measure.")
        case "rerun" | "bisect" | "snooze" if not newest:
            why = NO_BOUNDARY if issue_state.key.startswith((DIGEST, ENVIRONMENT)) else NOT_FOUND
            return Answer("confused", why.format(name=command.name))
        case "rerun" | "bisect" if not measurable:
            return Answer("confused", NOT_HERE)
        case "rerun":
            return Answer(
                "+1",
                "The next night measures both sides of the boundary again, and a comment here says what came of it.",
                RERUN,
            )
        case "bisect":
            return Answer("+1", BISECT_ANSWER, BISECT)
    event = {"ack": "acknowledged", "snooze": "snoozed", "not-a-bug": "not-a-bug"}[command.name]
    if next_state(issue_state.state, event) is None:
        return Answer("confused", f"This is {issue_state.state.value}; /{command.name} changes nothing.")
    text = {
        "ack": "Acknowledged: the text is kept current, and nothing more is said before a release gives it back.",
        "snooze": f"Silent for {count(command.releases, 'more release')} after {newest}.",
        "not-a-bug": "Closed as no bug. Another changepoint will have its own issue.",
    }[command.name]
    return Answer("+1", text, event, closes=command.name == "not-a-bug")
