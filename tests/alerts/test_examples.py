"""The examples in the docstrings of the room are executed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import alerts

MODULES = [module.name for module in pkgutil.walk_packages(alerts.__path__, "alerts.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_most_of_the_pure_modules_have_some() -> None:
    finder = doctest.DocTestFinder()
    counted = [name for name in MODULES if any(t.examples for t in finder.find(importlib.import_module(name)))]
    assert len(counted) >= 7, counted
