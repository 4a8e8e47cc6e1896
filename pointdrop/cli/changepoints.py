"""`pointdrop changepoints`: the detector for anybody's values, as a filter or as a server on standard input."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("changepoints")(changepoints)


def changepoints(
    serve: Annotated[
        bool, typer.Option("--serve", help="Answer JSON objects, one a line, until standard input ends.")
    ] = False,
) -> None:
    """Find the changepoints in series of values."""
    if serve:
        _serve()


def _serve() -> None:
    from pointdrop.changepoints import answer_lines

    for reply in answer_lines(sys.stdin):
        print(reply, flush=True)
