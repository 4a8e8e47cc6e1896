"""The `pointdrop` command: puts the command modules together and turns errors into exit codes.

Exit codes: 0 done, 1 failed, 2 bad usage or bad input, 3 a gate asked for with --fail-on was hit,
4 done but incomplete.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, Literal

import typer
import typer.main
from typer.core import TyperGroup

#: Commands and groups in the order of `--help`: the module of this package that has the command as a function of its
#: name, or the group as `group`; and what the list of commands says of it.
COMMANDS: dict[str, tuple[str, str]] = {
    "nightly": ("nightly", "Measure what is new, detect, confirm, file findings, draw the site."),
    "bench": ("bench", "Measure what a plan wants and the history lacks."),
    "bisect": ("bisect", "Find the release or commit that moved a test."),
    "compare": ("compare", "Measure two releases, configs or builds side by side."),
    "repeat": ("compare", "Measure a run again as it was measured."),
    "doctor": ("doctor", "Check whether this machine is fit to measure."),
    "changepoints": ("changepoints", "Find the changepoints in series of values."),
    "detect": ("detect", "Find changes in the history."),
    "replay": ("detect", "Say what would have been found, and when."),
    "explain": ("detect", "Explain one series in words."),
    "patch": ("patch", "Patches in pull requests: who may ask, measuring in a sandbox, one comment and a check."),
    "releases": ("releases", "What can be measured: discover, verify, pin, fetch, build."),
    "history": ("history", "The history: load, import, export, look, verify, back up."),
    "alerts": ("alerts", "Findings become issues; what would be filed, what was, and what people said."),
    "report": ("report", "The static site and its tables."),
}
#: Boxes and colours are for people; they take longer to load than the rest of the help.
MARKUP: Literal["markdown"] | None = "markdown" if sys.stdout.isatty() else None


def load(name: str) -> Any:
    """The command or group of that name, from its module."""
    module, help = COMMANDS[name]
    commands = import_module(f"pointdrop.cli.{module}")
    loaded = typer.Typer(rich_markup_mode=MARKUP)
    if hasattr(commands, "group"):
        loaded.add_typer(commands.group, name=name, help=help)
    else:
        loaded.command(name)(getattr(commands, name))
    return typer.main.get_group(loaded).commands[name]


class CommandsOnDemand(TyperGroup):
    """Imports the module of a command when the command is called; `--help` imports none."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and load(name), rest


app = typer.Typer(
    name="pointdrop",
    cls=CommandsOnDemand,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, (_, _help) in COMMANDS.items():
    app.command(_name, short_help=_help)(lambda: None)


def command_tree() -> TyperGroup:
    """Every command, loaded: for the reference and whoever else walks through all of them."""
    root = typer.main.get_group(app)
    root.commands = {name: load(name) for name in COMMANDS}
    return root


def _version(wanted: bool) -> None:
    if wanted:
        from history.records import tool_version

        typer.echo(f"pointdrop {tool_version()}")
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
