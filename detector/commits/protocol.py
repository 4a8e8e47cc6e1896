r"""One line in, one line out: the protocol that harnesses and other languages speak to the detector.

>>> answer(b'{"values": [5, 5.1, 5, 4.9, 5, 5.1, 4.9, 9, 9.1, 9, 8.9, 9]}')
'{"indices": [7]}'
>>> answer(b'{"values": "five"}')
'{"error": "\\"values\\" must be an array of numbers and nulls"}'
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from detector.commits.analysis import analyse

#: Answers the objects of one `type`: the decoded line in, the answer out; raises ValueError when it is no use.
Handler = Callable[[dict[str, Any]], dict[str, Any]]

TIERS = ("confirmed", "provisional")


def answer(line: bytes, handlers: Mapping[str, Handler] | None = None) -> str:
    """The answer to one line of UTF-8, without its line end. A line that is no use gets `{"error": ...}`, never an
    exception: it comes as bytes, since one that cannot be decoded is an answer's matter too.

    `{"values": [...]}` gets `{"indices": [...]}`: the confirmed changepoints, or with `"tier": "provisional"` those
    not yet confirmed too. `{"type": NAME, ...}` goes to the handler of that name.
    """
    try:
        question = json.loads(_text(line))
        if not isinstance(question, dict):
            raise ValueError("a line must be one JSON object")
        kind = question.get("type", "series")
        if kind == "series":
            reply = series(question)
        elif handlers and isinstance(kind, str) and kind in handlers:
            reply = handlers[kind](question)
        else:
            types = ", ".join(["series", *(handlers or {})])
            raise ValueError(f'"type" must be one of {types}, got {kind!r}')
    # An integer may have more digits than a float can hold.
    except (ValueError, OverflowError, RecursionError) as error:
        reply = {"error": str(error) or type(error).__name__}
    return json.dumps(reply)


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"a line must be UTF-8: {error.reason} at byte {error.start + 1}") from error


def series(question: dict[str, Any]) -> dict[str, Any]:
    """The answer to a series."""
    values, tier = question.get("values"), question.get("tier", "confirmed")
    if tier not in TIERS:
        raise ValueError(f'"tier" must be one of {", ".join(TIERS)}, got {tier!r}')
    if not isinstance(values, list) or not all(value is None or type(value) in (int, float) for value in values):
        raise ValueError('"values" must be an array of numbers and nulls')
    return {"indices": analyse(values).indices(provisional=tier == "provisional")}
