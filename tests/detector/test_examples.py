"""The examples in the room's modules are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import detector

MODULES = ["detector", *(module.name for module in pkgutil.walk_packages(detector.__path__, "detector."))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0
