"""Foreign text made safe for Markdown: names of tests and branches, statements, server errors, other people's words.

Three ways out, and no other (the template accepts only their type, `Markdown`):

>>> code("point-query `x` | y\\u202e")
"`point-query 'x' / y`"
>>> prose("8 of 8 blocks agree on select_x @octocat www.example.org.")
'8 of 8 blocks agree on `select_x` `@octocat` `www.example.org`.'
>>> title("mysql 8.0.30: @all #1 `x` slower")
'mysql 8.0.30: all 1 x slower'

A code span is the only thing in GitHub's Markdown in which mentions, references, links, HTML and mail addresses are all
inert (an HTML `<code>` element is not enough: mail clients link inside it), so whatever is not a plain word goes
into one.
"""

from __future__ import annotations

import re
import unicodedata

#: Longest foreign text shown in one code span, in characters.
CODE_LIMIT = 200
#: GitHub's limit for a title is 256 characters; a cut title ends with an ellipsis.
TITLE_LIMIT = 200

#: Unicode categories that are dropped: control, format (bidi, zero-width, tags), surrogate, private use, unassigned.
_DROPPED = {"Cc", "Cf", "Cs", "Co", "Cn"}
_SPACES = {"Zs", "Zl", "Zp"}
#: Characters that draw nothing and are none of those categories: fillers, joiners, variation selectors.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {chr(c) for c in range(0xFE00, 0xFE10)}
#: A word that no Markdown dialect gives a meaning: letters, or a number with sign, percent, unit or fraction.
_WORD = re.compile(r"[A-Za-z]+(?:['’/-][A-Za-z]+)*|[-+−±<>≥≤~]?\d{1,3}(?:,\d{3})*(?:\.\d+)*(?:%|x|ms|us)?|[-–=%±+/&→]")
#: Characters of such words that could still begin a tag, an entity or a strike-through.
_ENTITY = re.compile(r"[<>~&]")
_BLOCK_START = re.compile(r"[-+=]|\d+[.)]$")
_OPEN, _CLOSE = "(", ".,;:)!?"
#: `GH-12` is a reference to an issue on GitHub.
_REFERENCE = re.compile(r"(?i)gh-?\d*$")
_TITLE_OK = re.compile(r"[A-Za-z0-9 .,:;()%+=/_&'×−–±→-]")


class Markdown(str):
    """Text that is safe to put into Markdown as it stands."""

    __slots__ = ()


def visible(text: str) -> str:
    """`text` on one line, without characters that draw nothing or change the direction of reading."""
    characters = []
    for char in text:
        category = unicodedata.category(char)
        if char in "\t\n\r\v\f\x1c\x1d\x1e\x1f\x85" or category in _SPACES:
            characters.append(" ")
        elif category not in _DROPPED and char not in _INVISIBLE:
            characters.append(char)
    return " ".join("".join(characters).split())


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, with an ellipsis for what is missing."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def code(text: object, limit: int = CODE_LIMIT) -> Markdown:
    """`text` as one code span that fits a table cell; backticks become quotes, pipes slashes."""
    inner = cut(visible(str(text)).replace("`", "'").replace("|", "/"), limit).strip()
    # A span of only backslashes or with one at the end is fine in Markdown, but not before a table's pipe.
    inner = inner.replace("\\", "/") if inner.endswith("\\") else inner
    return Markdown(f"`{inner}`" if inner else "`(empty)`")


def prose(text: object, limit: int = 1000) -> Markdown:
    """A sentence: plain words and numbers stay, every other word becomes a code span."""
    words = [_token(word) for word in cut(visible(str(text)), limit).split(" ") if word]
    if words and _BLOCK_START.match(words[0]):
        # `- x`, `+ x`, `1. x` and `=` would begin a list or underline a heading.
        words[0] = words[0][:-1] + "\\" + words[0][-1] if words[0][0].isdigit() else "\\" + words[0]
    return Markdown(" ".join(words))


def _token(word: str) -> str:
    core = word.lstrip(_OPEN)
    opened = word[: len(word) - len(core)]
    core, closed = core.rstrip(_CLOSE), core[len(core.rstrip(_CLOSE)) :]
    if not core:
        # Only punctuation; `!` before a code span or at a link's place has no meaning without brackets.
        return word
    if _WORD.fullmatch(core) and not _REFERENCE.fullmatch(core):
        return f"{opened}{_ENTITY.sub(_escape, core)}{closed}"
    return f"{opened}{code(core)}{closed}"


def _escape(match: re.Match[str]) -> str:
    return "\\" + match[0]


def title(text: str, limit: int = TITLE_LIMIT) -> str:
    """A title of letters, digits and harmless signs; everything else is dropped."""
    harmless = "".join(char if _TITLE_OK.fullmatch(char) else " " if char.isspace() else "" for char in visible(text))
    return cut(" ".join(harmless.split()), limit)


def fenced(lines: list[str], language: str = "") -> Markdown:
    """Lines as a fenced code block; nothing inside can end the fence."""
    body = [_fence_line(line) for line in lines]
    return Markdown("\n".join([f"```{language}", *body, "```"]))


def _fence_line(line: str) -> str:
    """One line inside a fence: layout spaces stay, backticks become quotes, so that the fence cannot be closed."""
    drawn = "".join(
        " " if char == "\t" else char
        for char in line
        if char == "\t" or (unicodedata.category(char) not in _DROPPED | {"Zl", "Zp"} and char not in _INVISIBLE)
    )
    # A line of foreign text must not look like one of our markers, which stand alone on theirs.
    return drawn.replace("`", "'").replace("<!-- pointdrop:", "<!--pointdrop:").rstrip()
