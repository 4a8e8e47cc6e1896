"""Every command of docs/studies.md is one that Pointdrop takes, on plans, tests and profiles that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pointdrop.cli.main import command_tree
from runners.settings import adapted, load_plan

REPOSITORY = Path(__file__).parents[2]
TEXT = (REPOSITORY / "docs" / "studies.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("pointdrop ")
]
STUDIES = {"config-matrix", "insert-benchmark", "mysql-8.0", "binlog-storage-engine", "mariadb-vs-mysql", "local"}


def parsed(command: str) -> Any:
    """The context of the innermost command with its parameters, parsed and not run."""
    arguments = shlex.split(command)[1:]
    here: Any = command_tree()
    context: Any = None
    while hasattr(here, "commands"):
        here, name, arguments = here.commands[arguments[0]], arguments[0], arguments[1:]
        context = here.make_context(name, list(arguments), parent=context) if not hasattr(here, "commands") else context
    return context


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line_takes_it(command: str) -> None:
    context = parsed(command)
    if context.info_name == "bench":
        given = context.params
        plan = adapted(
            load_plan(given["plan"], REPOSITORY / "configs"),
            REPOSITORY / "configs",
            lines=[line for line in given["lines"].split(",") if line],
            tests=given["tests"],
            profile=given["profile"],
            blocks=given["blocks"],
        )
        assert {name for name in given["dbms"].split(",") if name} <= {measure.dbms for measure in plan.measure}


def test_every_study_was_run() -> None:
    assert {parsed(command).params.get("plan") for command in COMMANDS} >= STUDIES


def test_what_was_printed_is_there() -> None:
    assert "| ---: |" in TEXT
    assert "relative to" in TEXT
    assert "{{" not in TEXT
