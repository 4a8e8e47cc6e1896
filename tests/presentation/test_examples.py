"""The examples in the docstrings of this room, and of the alerts that print it, are executed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import alerts
import presentation


def modules(room: ModuleType) -> list[str]:
    return [module.name for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]


@pytest.mark.parametrize("name", [*modules(alerts), *modules(presentation)])
def test_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize(("room", "fewest"), [(alerts, 5), (presentation, 7)])
def test_most_of_the_pure_modules_have_some(room: ModuleType, fewest: int) -> None:
    finder = doctest.DocTestFinder()
    with_examples = [
        name
        for name in modules(room)
        if any(example.examples for example in finder.find(importlib.import_module(name)))
    ]
    assert len(with_examples) >= fewest, with_examples
