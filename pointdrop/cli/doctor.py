"""`pointdrop doctor`: is this machine fit to measure, and what would make it so."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pointdrop.cli import options
from pointdrop.cli.options import Format
from pointdrop.cli.rows import emit, print_rows
from pointdrop.paths import state_dir

if TYPE_CHECKING:
    from runners.doctor import Check


def doctor(
    format: options.RowFormat = Format.text,
    out: options.Out = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Print the commands that mend what was found. Changes nothing.")
    ] = False,
    clear: Annotated[
        bool, typer.Option("--clear", help="Let a host in quarantine measure again, and learn anew what is usual.")
    ] = False,
) -> None:
    """Check this machine for measuring: what was found, why it matters, what it costs, how to mend it.

    Reads only, takes about two seconds. Exit code 4 when a check fails, so that a runner can refuse a sick host.

    JSON keys and CSV columns: name, status, found, why, cost, fix.
    """
    from runners.canary import Canary
    from runners.doctor import examine, probe

    if clear:
        was = Canary(state_dir()).clear()
        typer.echo("This host may measure again." if was else "This host was not in quarantine.", err=True)
    checks = examine(probe(state_dir()))
    if format is Format.json:
        print_rows([asdict(check) for check in checks], format, out=out)
    elif fix:
        commands = [
            f"{command}   # {check.name}: {check.found}" if "#" not in command else command
            for check in checks
            for command in check.fix
        ]
        emit("".join(f"{command}\n" for command in commands), out)
        if not commands:
            typer.echo("Nothing that a command could mend.", err=True)
    elif format is Format.text and out is None:
        _print(checks)
    else:
        print_rows([asdict(check) | {"fix": "; ".join(check.fix)} for check in checks], format, out=out)
    if any(check.status == "fail" for check in checks):
        raise typer.Exit(4)


def _print(checks: list[Check]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("check", "", "found", "why, and what it costs if ignored"):
        table.add_column(column, overflow="fold")
    marks = {"ok": "[green]ok[/]", "warn": "[yellow]warn[/]", "fail": "[red]FAIL[/]", "unknown": "[dim]?[/]"}
    for check in checks:
        detail = f"{check.why} [dim]Cost: {check.cost}.[/]" if check.status in ("warn", "fail") else ""
        table.add_row(check.name, marks[check.status], check.found, detail)
    Console().print(table)
    if any(check.fix for check in checks):
        typer.echo("\n`pointdrop doctor --fix` prints the commands that mend what can be mended.", err=True)
