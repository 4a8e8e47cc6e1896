"""The line protocol: an answer to every line, also to bad ones."""

from __future__ import annotations

import json

import pytest

from detector.commits import answer
from tests.detector.commits.made import made


def test_values_get_indices() -> None:
    values = made(steps={60: -0.1})
    assert json.loads(answer(json.dumps({"values": values}))) == {"indices": [60]}
    values[3] = None  # type: ignore[call-overload]
    assert json.loads(answer(json.dumps({"values": values}))) == {"indices": [60]}


def test_the_provisional_tier_is_asked_for() -> None:
    values = made(61, steps={60: -0.2}, seed=2)
    assert json.loads(answer(json.dumps({"values": values}))) == {"indices": []}
    assert json.loads(answer(json.dumps({"values": values, "tier": "provisional"}))) == {"indices": [60]}


def test_other_types_go_to_their_handlers() -> None:
    handlers = {"twice": lambda question: {"answer": 2 * question["n"]}}
    assert json.loads(answer('{"type": "twice", "n": 4}', handlers)) == {"answer": 8}


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
    reply = json.loads(answer(line, {"twice": lambda question: {"answer": 2 * question["n"]}}))
    assert list(reply) == ["error"]
    assert message in reply["error"]
