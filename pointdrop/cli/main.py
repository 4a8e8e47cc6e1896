"""The `pointdrop` command: puts the command modules together and turns errors into exit codes.

Exit codes: 0 done, 1 failed, 2 bad usage or bad input, 3 a gate asked for with --fail-on was hit,
4 done but incomplete.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated

import typer

#: Modules of this package; each has `register(app)`, which adds its commands. The order is that of `--help`.
COMMANDS: tuple[str, ...] = (
    "nightly",
    "bench",
    "bisect",
    "compare",
    "patches",
    "releases",
    "history",
    "sync",
    "alerts",
    "report",
    "doctor",
    "changepoints",
    "detect",
)

app = typer.Typer(
    name="pointdrop",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from pointdrop import __version__

        typer.echo(f"pointdrop {__version__}")
        raise typer.Exit()


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find the point release in which a DBMS got slower, say so in one issue, and be quiet otherwise.

    Data goes to standard output, progress and logs to standard error. State lives under `var/`
    (POINTDROP_STATE); the history is `sqlite:///var/history.db` unless POINTDROP_HISTORY or `--history` names another.

    Exit codes: 0 done (a regression found is not an error), 1 failed, 2 bad usage or bad input,
    3 a gate asked for with `--fail-on` was hit, 4 done but incomplete.
    """


for _module in COMMANDS:
    import_module(f"pointdrop.cli.{_module}").register(app)


def run() -> None:
    """Entry point. Errors of the rooms carry `exit_code` and a message that says what to do next; so does a file that
    cannot be read or written. Anything else is a defect and keeps its traceback."""
    try:
        app()
    except KeyboardInterrupt:
        print("pointdrop: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        code = getattr(error, "exit_code", None)
        if code is not None:
            print(f"pointdrop: {error}", file=sys.stderr)
            sys.exit(code)
        if not isinstance(error, OSError) or not error.filename:
            raise
        print(f"pointdrop: {error.filename}: {error.strerror}; nothing was written there", file=sys.stderr)
        sys.exit(1)
