"""The line protocol: an answer to every line, also to bad ones."""

from __future__ import annotations

import json

import pytest

from detector.commits import answer
from tests.detector.commits.made import made


def ask(question: object) -> object:
    return json.loads(answer(json.dumps(question).encode()))


def test_values_get_indices() -> None:
    values = made(steps={60: -0.1})
    assert ask({"values": values}) == {"indices": [60]}
    values[3] = None  # type: ignore[call-overload]
    assert ask({"values": values}) == {"indices": [60]}


def test_the_provisional_tier_is_asked_for() -> None:
    values = made(61, steps={60: -0.2}, seed=2)
    assert ask({"values": values}) == {"indices": []}
    assert ask({"values": values, "tier": "provisional"}) == {"indices": [60]}


def test_other_types_go_to_their_handlers() -> None:
    handlers = {"twice": lambda question: {"answer": 2 * question["n"]}}
    assert json.loads(answer(b'{"type": "twice", "n": 4}', handlers)) == {"answer": 8}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "Expecting value"),
        ("[1, 2]", "one JSON object"),
        ("{}", '"values" must be an array'),
        ('{"values": "1,2"}', '"values" must be an array'),
        ('{"values": [1, true]}', '"values" must be an array'),
        ('{"values": [1, [2]]}', '"values" must be an array'),
        ('{"values": [1], "tier": "sure"}', '"tier" must be one of'),
        ('{"type": "song"}', '"type" must be one of series'),
        ("[" * 100_000, ""),
        (f'{{"values": [1, 2, 3, 4, 5, {10**400}]}}', "too large"),
        ('{"type": ["twice"], "n": 4}', '"type" must be one of series, twice'),
    ],
)
def test_a_bad_line_gets_an_error(line: str, message: str) -> None:
    reply = json.loads(answer(line.encode(), {"twice": lambda question: {"answer": 2 * question["n"]}}))
    assert list(reply) == ["error"]
    assert message in reply["error"]


@pytest.mark.parametrize("line", [b'{"values": "\xe9"}', b"\xff\xfe{", b"\xed\xa0\x80", b"caf\xe9"])
def test_a_line_that_is_no_utf_8_gets_an_error(line: bytes) -> None:
    assert "a line must be UTF-8" in json.loads(answer(line))["error"]


def test_a_byte_order_mark_is_no_part_of_a_line() -> None:
    assert json.loads(answer(b'\xef\xbb\xbf{"values": [5, 5, 5]}')) == {"indices": []}
