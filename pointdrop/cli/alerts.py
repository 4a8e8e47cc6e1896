"""`pointdrop alerts`: findings to issues, and what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from alerts import AlertSettings, SyncReport
    from alerts.changes import Change
    from alerts.measurable import Measurable
    from alerts.trackers import Tracker
    from history.store import Store

History = Annotated[str | None, typer.Option("--history", help="History's URL; else POINTDROP_HISTORY.")]
TrackerName = Annotated[
    Literal["auto", "files", "github"],
    typer.Option("--tracker", help="auto: GitHub when GITHUB_REPOSITORY and a token are set, else files."),
]
Issues = Annotated[Path | None, typer.Option("--issues", help="Directory of the files tracker; else var/issues.")]
Format = Annotated[Literal["text", "json"], typer.Option(help="text for people, json for programs.")]
Provisional = Annotated[
    bool,
    typer.Option("--provisional", help="Findings nobody can measure again, as in published figures, count as well."),
]

#: Columns of a table that no terminal shows, so that a row stays on one line.
PIPED_WIDTH = 200

group = typer.Typer(help="Findings become issues; what would be filed, what was, and what people said.")


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="alerts", no_args_is_help=True)


def _open(
    history: str | None, tracker: str, issues: Path | None, provisional: bool = False
) -> tuple[Store, Tracker, AlertSettings]:
    import os

    from alerts import load_settings
    from alerts.trackers.choose import tracker_for
    from history.store import Store
    from pointdrop.paths import configs_dir, history_url, state_dir

    settings = load_settings(configs_dir() / "alerts.toml")
    if provisional:
        filing = settings.filing.model_copy(update={"tiers": (*settings.filing.tiers, "provisional")})
        settings = settings.model_copy(update={"filing": filing})
    where = tracker_for(tracker, os.environ, issues or state_dir() / "issues", settings)
    return Store.open(history_url(history)), where, settings


def _measurable() -> Measurable:
    from pointdrop.jobs.measurable import measurable
    from pointdrop.paths import configs_dir

    return measurable(configs_dir())


@group.command("sync")
def sync_command(
    history: History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
    format: Format = "text",
    provisional: Provisional = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same as `preview`.")] = False,
) -> None:
    """File, edit, comment, close and re-open issues until they agree with the newest detection.

    Safe to stop and to repeat. Exit code 4 when something could not be done; the next sync does it.
    """
    if dry_run:
        preview_command(history, tracker, issues, format, provisional)
        return
    from alerts import sync

    store, where, settings = _open(history, tracker, issues, provisional)
    with store:
        report = sync(store, where, settings, can=_measurable())
    if format == "json":
        typer.echo(report.model_dump_json(indent=2))
    else:
        _print_report(report)
    if not report.complete:
        raise typer.Exit(4)


def _print_report(report: SyncReport) -> None:
    for done in report.done:
        where = f" #{done.number}" if done.number else ""
        typer.echo(f"{done.action:10}{done.key}{where}: {done.title or done.why}")
    typer.echo(f"{report.tracker}: {len(report.done)} changes, {report.open} open issues.")
    for message in (*report.warnings, *report.refused, *report.failed):
        typer.echo(message, err=True)


@group.command("preview")
def preview_command(
    history: History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
    format: Annotated[
        Literal["text", "json", "markdown"], typer.Option(help="markdown prints the issues and comments in full.")
    ] = "text",
    provisional: Provisional = False,
) -> None:
    """Show what a sync would file, change and close. Writes nothing anywhere."""
    from alerts import preview

    store, where, settings = _open(history, tracker, issues, provisional)
    with store:
        changes = preview(store, where, settings, can=_measurable())
    if format == "json":
        import json

        typer.echo(json.dumps([change.model_dump(mode="json") for change in changes], indent=2))
        return
    if not changes:
        typer.echo("Nothing to file, change or close.", err=True)
    unsure = sum(change.action == "record" and change.why == "the finding is provisional" for change in changes)
    if unsure:
        typer.echo(
            f"{unsure} provisional: filed once `pointdrop nightly` has measured both releases side by side; "
            "--provisional files them as they are.",
            err=True,
        )
    for change in changes:
        if format == "markdown":
            typer.echo(_in_full(change))
        else:
            number = f" #{change.number}" if change.number else ""
            title = change.draft.title if change.draft else change.title or change.why
            typer.echo(f"{change.action:10}{change.key}{number}: {title}")


def _in_full(change: Change) -> str:
    body = change.draft.body if change.draft else change.body
    title = change.draft.title if change.draft else change.title
    parts = [f"## {change.action} {change.key}", f"**{title}**" if title else "", body or ""]
    parts += [change.comment[1]] if change.comment else []
    return "\n\n".join(part for part in parts if part) + "\n"


@group.command("list")
def list_command(
    history: History = None, tracker: TrackerName = "auto", issues: Issues = None, format: Format = "text"
) -> None:
    """List every finding and issue with its state."""
    from datetime import UTC, datetime

    from alerts.observe import observe
    from alerts.overview import overview

    store, where, settings = _open(history, tracker, issues)
    with store:
        lines = overview(observe(store, where, settings, datetime.now(UTC), can=_measurable()))
    if format == "json":
        import json

        typer.echo(json.dumps([line.model_dump(mode="json") for line in lines], indent=2))
        return
    if not lines:
        typer.echo("No findings and no issues; `pointdrop detect` looks for some.", err=True)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("state", "issue", "key", "title"):
        table.add_column(column, overflow="fold")
    for line in lines:
        number = f"#{line.number}" if line.number else "-"
        title = f"{line.title} ({line.note})" if line.note else line.title
        table.add_row(line.state, number, escape(line.key), escape(title))
    console = Console()
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    console.print(table)


@group.command("show")
def show_command(
    key: Annotated[str, typer.Argument(help="Key of a finding or issue, as `alerts list` and `detect` print it.")],
    history: History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
    format: Format = "text",
) -> None:
    """Show one finding: its state, everything that happened to it, and the text of its issue."""
    from datetime import UTC, datetime

    from alerts.errors import UnknownIssue
    from alerts.observe import observe
    from alerts.overview import key_of, overview

    store, where, settings = _open(history, tracker, issues)
    with store:
        observed = observe(store, where, settings, datetime.now(UTC), can=_measurable())
        key = key_of(store.findings(), key)
        line = next((line for line in overview(observed) if line.key == key), None)
        events = store.events(key)
    if line is None:
        raise UnknownIssue(f"nothing is known of {key}; `pointdrop alerts list` prints the keys.")
    draft = observed.world.drafts.get(key)
    if format == "json":
        import json

        values = {
            **line.model_dump(mode="json"),
            "events": [event.model_dump(mode="json") for event in events],
            "body": draft.body if draft else None,
        }
        typer.echo(json.dumps(values, indent=2))
        return
    typer.echo(f"{line.title}\n{line.state}{f', issue {line.number} {line.url}' if line.number else ''}\n")
    for event in events:
        reason = event.detail.get("reason") or event.detail.get("release") or ""
        typer.echo(f"{event.at:%Y-%m-%d %H:%M}  {event.event:14}{event.actor}  {reason}".rstrip())
    if draft:
        typer.echo(f"\n{draft.body}")


@group.command("ack")
def ack_command(
    key: Annotated[str, typer.Argument(help="Key of a finding or issue, as `alerts list` and `detect` print it.")],
    reason: Annotated[str, typer.Option(help="Why it is known or accepted.")] = "",
    history: History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
) -> None:
    """Acknowledge a finding: its issue stays, and nothing more is said of it before it recovers."""
    import getpass
    from datetime import UTC, datetime

    from alerts.overview import acknowledge, key_of

    store, where, _ = _open(history, tracker, issues)
    with store:
        key = key_of(store.findings(), key)
        state = acknowledge(store, key, where.name, actor=getpass.getuser(), reason=reason, at=datetime.now(UTC))
    typer.echo(f"{key} is {state.value} now.")
