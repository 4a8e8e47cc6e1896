"""Examples in the room's docstrings run, and the commands of docs/reports.md exist with the options they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
from pathlib import Path

import pytest

import reports
from pointdrop.cli.main import command_tree

MODULES = sorted(one.name for one in pkgutil.walk_packages(reports.__path__, "reports."))
PAGE = (Path(__file__).parents[2] / "docs/reports.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^pointdrop (report .*?)(?: {2,}.*)?$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_in_the_docs_parse(line: str) -> None:
    group, name, *arguments = shlex.split(line)
    commands = command_tree().commands[group].commands  # type: ignore[attr-defined]
    commands[name].make_context(name, arguments)


def test_the_docs_have_commands_and_every_picture() -> None:
    assert len(COMMANDS) >= 7
    assert {path.stem for path in (Path(__file__).parents[2] / "docs/img").glob("*.png")} >= {
        "overview", "line-mysql-8.0", "line-postgres-majors", "test", "finding", "compare",
    }  # fmt: skip
