"""The examples in the modules are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import detector.commits

MODULES = ["detector.commits", *(f"detector.commits.{m.name}" for m in pkgutil.iter_modules(detector.commits.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
