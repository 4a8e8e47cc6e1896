"""What docs/history.md and the docstrings of the room say is so."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import sys
from pathlib import Path

import pytest

import history
from history.exporters import FORMATS as EXPORTS
from history.importers import FORMATS as IMPORTS
from history.importers import OWN
from pointdrop.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "history.md").read_text()
#: One that the dataset brings.
A_BLOCK = "smalldatum/2023-09-18/ser4/ibench-cached-20m-1u/mysql/8.0.30/cy10a_bee/1"
MODULES = [
    module.name
    for module in pkgutil.walk_packages(history.__path__, "history.")
    if not module.name.startswith("history.migrations")
]
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POINTDROP_STATE", str(tmp_path / "var"))
    monkeypatch.delenv("POINTDROP_HISTORY", raising=False)
    monkeypatch.chdir(tmp_path)
    said = ""
    for line in "".join(BLOCKS).splitlines():
        program, *arguments = shlex.split(line)
        assert program == "pointdrop"
        arguments = [A_BLOCK if one == "BLOCK" else one for one in arguments]
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        with pytest.raises(SystemExit) as left:
            main.run()
            raise SystemExit(0)
        captured = capsys.readouterr()
        assert not left.value.code, captured.err
        said += captured.out
    assert "16949" in said
    assert "the fan was broken" in said


def test_every_format_is_on_the_page() -> None:
    for name in (*IMPORTS, *EXPORTS, OWN):
        assert f"`{name}`" in PAGE, name


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (Path(__file__).parents[2] / "docs" / target).exists(), target


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
