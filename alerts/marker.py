"""The hidden first line by which Pointdrop knows its own issues and comments.

>>> marker("mysql/8.0/8.0.30/regression")
'<!-- pointdrop:v1 key=mysql/8.0/8.0.30/regression -->'
>>> keys_of(marker("a/b c", also=("x",)) + "\\nThe rest of the body")
('a/b c', 'x')
>>> event_of(event_marker("recovered:8.0.34"))
'recovered:8.0.34'

Only the first line of the text counts, and only in texts our own account wrote: whoever asks checks the author.
Keys are percent-encoded, so that no key can end the comment or carry a second field.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_ISSUE = re.compile(r"<!-- pointdrop:v1 key=(\S+)((?: also=\S+)*) -->")
_EVENT = re.compile(r"<!-- pointdrop:v1 event=(\S+) -->")
_STICKY = re.compile(r"<!-- pointdrop:v1 comment=(\S+) -->")
#: Kept readable; `-` only singly, since two of them end an HTML comment in old parsers.
_READABLE = "/.:_+"

#: What a person writes below this line is kept when the issue is edited.
END = "<!-- pointdrop:end; what you write below this line is kept -->"
#: As a line of its own: the name of a test may be the same words.
_END = re.compile(rf"^{re.escape(END)}[ \t]*$", re.MULTILINE)


def _encode(text: str) -> str:
    return quote(text, safe=_READABLE).replace("--", "-%2D").replace("~", "%7E")


def marker(key: str, also: tuple[str, ...] = ()) -> str:
    """The first line of an issue's body; `also` are keys the same issue answers for."""
    return f"<!-- pointdrop:v1 key={_encode(key)}{''.join(f' also={_encode(other)}' for other in also)} -->"


def event_marker(event: str) -> str:
    """The first line of a comment that must appear once: a repeated attempt finds it."""
    return f"<!-- pointdrop:v1 event={_encode(event)} -->"


def sticky_marker(name: str) -> str:
    """The first line of a comment that is edited in place, one a pull request and name."""
    return f"<!-- pointdrop:v1 comment={_encode(name)} -->"


def keys_of(body: str | None) -> tuple[str, ...]:
    """The keys an issue's body carries on its first line, empty when it is not ours."""
    match = _ISSUE.fullmatch(_first_line(body))
    if not match:
        return ()
    also = [part.removeprefix("also=") for part in match[2].split()]
    return tuple(unquote(key) for key in (match[1], *also))


def event_of(body: str | None) -> str:
    """The event a comment's first line names, empty when there is none."""
    match = _EVENT.fullmatch(_first_line(body))
    return unquote(match[1]) if match else ""


def sticky_of(body: str | None) -> str:
    """The name of an in-place comment, empty when it is none."""
    match = _STICKY.fullmatch(_first_line(body))
    return unquote(match[1]) if match else ""


def ours(body: str | None) -> str:
    """The part of a body that Pointdrop writes."""
    return _END.split((body or "").replace("\r\n", "\n"), maxsplit=1)[0].rstrip()


def with_notes(fresh: str, current: str | None) -> str:
    """`fresh` with what people wrote below the end line of `current`."""
    _, *below = _END.split((current or "").replace("\r\n", "\n"), maxsplit=1)
    notes = "".join(below).strip("\n")
    return f"{fresh.rstrip()}\n\n{END}\n" + (f"\n{notes}\n" if notes else "")


def _first_line(body: str | None) -> str:
    return (body or "").partition("\n")[0].rstrip("\r")
