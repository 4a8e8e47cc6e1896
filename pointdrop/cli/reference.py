"""Writes docs/cli.md from the commands themselves: `python -m pointdrop.cli.reference [FILE]`.

A test compares the committed file with what this module writes, so the reference cannot go stale.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pointdrop.cli.main import command_tree

HEADER = """# Command reference

Made from the commands by `python -m pointdrop.cli.reference docs/cli.md`; a test keeps it true.
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _usage(names: list[str], command: Any) -> str:
    pieces = command.collect_usage_pieces(command.make_context("", [], resilient_parsing=True))
    return " ".join([*names, *pieces])


def _table(kind: str, command: Any) -> Iterator[str]:
    wanted = [p for p in command.params if p.param_type_name == kind and not p.hidden and p.name != "help"]
    if wanted:
        context = command.make_context("", [], resilient_parsing=True)
        records = (parameter.get_help_record(context) or ("", "") for parameter in wanted)
        rows = (f"| `{_cell(name)}` | {_cell(text)} |" for name, text in records)
        yield "\n".join([f"| {kind} | meaning |", "| --- | --- |", *rows]) + "\n"


def _sections(names: list[str], command: Any) -> Iterator[str]:
    children = getattr(command, "commands", {})
    if not children or command.callback is not None or command.help:
        yield f"{'#' * min(len(names) + 1, 4)} `{' '.join(names)}`\n\n{inspect.cleandoc(command.help or '')}\n"
    if not children:
        yield f"```\n{_usage(names, command)}\n```\n"
    yield from _table("argument", command)
    yield from _table("option", command)
    for name, child in children.items():
        yield from _sections([*names, name], child)


def reference() -> str:
    """The whole page as Markdown; the same commands give the same bytes."""
    return "\n".join([HEADER, *_sections(["pointdrop"], command_tree())])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(reference())
    else:
        sys.stdout.write(reference())
