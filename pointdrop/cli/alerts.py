"""`pointdrop alerts`: findings to issues, and what became of them."""

from __future__ import annotations

import getpass
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pointdrop.cli import options
from pointdrop.cli.options import Format
from pointdrop.cli.rows import emit, json_text, print_rows, remark

if TYPE_CHECKING:
    from alerts import AlertSettings
    from alerts.changes import Change
    from alerts.trackers import Draft, Tracker
    from history.store import Store

TrackerName = Annotated[
    Literal["auto", "files", "github"],
    typer.Option("--tracker", help="auto: GitHub when GITHUB_REPOSITORY and a token are set, else files."),
]
Issues = Annotated[Path | None, typer.Option("--issues", help="Directory of the files tracker; else var/issues.")]
Provisional = Annotated[
    bool,
    typer.Option(
        "--provisional",
        help="Suspected findings count as well: what nobody can measure again, as in published figures.",
    ),
]

#: Columns in CSV and Markdown.
CHANGED = ("action", "key", "number", "title", "why")
LISTED = ("key", "state", "number", "url", "title", "kind", "tier", "since", "note")
SHOWN = ("state", "issue", "key", "title")

group = typer.Typer(no_args_is_help=True)


def _open(
    history: str | None, tracker: str, issues: Path | None, provisional: bool = False
) -> tuple[Store, Tracker, AlertSettings]:
    from alerts import load_settings
    from alerts.trackers.choose import tracker_for
    from history.store import Store
    from pointdrop.jobs.room_settings import measurable
    from pointdrop.paths import configs_dir, history_url, state_dir

    settings = load_settings(configs_dir(), measurable(configs_dir()))
    if provisional:
        filing = settings.filing.model_copy(update={"tiers": (*settings.filing.tiers, "provisional")})
        settings = settings.model_copy(update={"filing": filing})
    where = tracker_for(tracker, os.environ, issues or state_dir() / "issues", settings)
    return Store.open(history_url(history)), where, settings


@group.command("sync")
def sync_command(
    history: options.History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
    format: Annotated[
        Literal["text", "json", "csv", "markdown"],
        typer.Option(help="csv and markdown: a row for each change. With --dry-run as `preview`."),
    ] = "text",
    out: options.Out = None,
    provisional: Provisional = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same as `preview`.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """File, edit, comment, close and re-open issues until they agree with the newest detection.

    Safe to stop and to repeat. Exit code 4 when something could not be done; the next sync does it.

    JSON keys: tracker, dry_run, done, heard, refused, failed, warnings, open, counts. CSV columns: action, key, number,
    title, why.
    """
    if dry_run:
        preview_command(history, tracker, issues, format, out, provisional, quiet)
        return
    from alerts import sync

    store, where, settings = _open(history, tracker, issues, provisional)
    with store:
        report = sync(store, where, settings)
    if format == "json":
        emit(report.model_dump_json(indent=2) + "\n", out)
    else:
        ending = f"{report.tracker}: {len(report.done)} changes, {report.open} open issues.\n"
        _print_changes([done.model_dump() for done in report.done], format, out, ending)
    for message in report.warnings:
        remark(message, quiet)
    for message in (*report.refused, *report.failed):
        remark(message)
    if not report.complete:
        raise typer.Exit(4)


def _print_changes(rows: list[dict[str, Any]], format: str, out: Path | None, ending: str = "") -> None:
    """A line for each change, then `ending`; or a table."""
    if format != "text":
        print_rows(rows, format, CHANGED, out=out)
        return
    lines = []
    for row in rows:
        number = f" #{row['number']}" if row["number"] else ""
        lines.append(f"{row['action']:10}{row['key']}{number}: {row['title'] or row['why']}\n")
    emit("".join((*lines, ending)), out)


@group.command("preview")
def preview_command(
    history: options.History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
    format: Annotated[
        Literal["text", "json", "csv", "markdown"],
        typer.Option(help="markdown prints the issues and comments in full, csv a row for each change."),
    ] = "text",
    out: options.Out = None,
    provisional: Provisional = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what a sync would file, change and close. Writes nothing anywhere.

    JSON keys: action, key, why, number, draft, title, body, reopen, comment, close, labels, events, carries, sub. CSV
    columns: action, key, number, title, why.
    """
    from alerts import preview
    from alerts.plan import not_filed_yet

    store, where, settings = _open(history, tracker, issues, provisional)
    with store:
        changes = preview(store, where, settings)
    if format == "json":
        emit(json_text([change.model_dump(mode="json") for change in changes]), out)
        return
    if not changes:
        remark("Nothing to file, change or close.", quiet)
    unsure = sum(change.action == "record" and change.why == not_filed_yet("provisional") for change in changes)
    if unsure:
        remark(
            f"{unsure} suspected: filed once `pointdrop nightly` has measured both releases side by side; "
            "--provisional files them as they are.",
            quiet,
        )
    if format == "markdown":
        emit("\n".join(_in_full(change) for change in changes), out)
    else:
        rows = [change.model_dump(include={*CHANGED}) | {"title": _text(change).title} for change in changes]
        _print_changes(rows, format, out)


def _text(change: Change) -> Draft | Change:
    """What holds the title and body that the issue gets."""
    return change.draft or change


def _in_full(change: Change) -> str:
    title, body = _text(change).title, _text(change).body
    parts = [f"## {change.action} {change.key}", f"**{title}**" if title else "", body or ""]
    parts += [change.comment[1]] if change.comment else []
    return "\n\n".join(part for part in parts if part) + "\n"


@group.command("list")
def list_command(
    history: options.History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
    format: options.RowFormat = Format.text,
    out: options.Out = None,
    quiet: options.Quiet = False,
) -> None:
    """List every finding and issue with its state.

    JSON keys and CSV columns: key, state, number, url, title, kind, tier, since, note.
    """
    from alerts.issue_list import issue_list
    from alerts.observation import observe

    store, where, settings = _open(history, tracker, issues)
    with store:
        lines = issue_list(observe(store, where, settings, datetime.now(UTC)))
    if not lines:
        remark("No findings and no issues; `pointdrop detect` looks for some.", quiet)
    rows = [line.model_dump(mode="json") for line in lines]
    shown = [
        {
            "state": line.state,
            "issue": f"#{line.number}" if line.number else "-",
            "key": line.key,
            "title": f"{line.title} ({line.note})" if line.note else line.title,
        }
        for line in lines
    ]
    for_people = format in (Format.text, Format.markdown)
    if lines or out is not None or format is not Format.text:
        print_rows(rows, format, SHOWN if for_people else LISTED, out=out, shown=shown)


@group.command("show")
def show_command(
    key: Annotated[str, typer.Argument(help="Key of a finding or issue, as `alerts list` and `detect` print it.")],
    history: options.History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
    format: options.TextOrJson = "text",
    out: options.Out = None,
) -> None:
    """Show one finding: its state, everything that happened to it, and the text of its issue.

    JSON keys: those of `alerts list`, events, body.
    """
    from alerts.errors import UnknownIssue
    from alerts.issue_list import issue_list, key_of
    from alerts.observation import observe

    store, where, settings = _open(history, tracker, issues)
    with store:
        observed = observe(store, where, settings, datetime.now(UTC))
        key = key_of(store, key, where.name)
        line = next((line for line in issue_list(observed) if line.key == key), None)
        events = store.events(key)
    if line is None:
        raise UnknownIssue(f"nothing is known of {key}; `pointdrop alerts list` prints the keys.")
    draft = observed.world.drafts.get(key)
    if format == "json":
        happened = [event.model_dump(mode="json") for event in events]
        body = draft.body if draft else None
        emit(json_text(line.model_dump(mode="json") | {"events": happened, "body": body}), out)
        return
    paragraphs = [f"{line.title}\n{line.state}{f', issue {line.number} {line.url}' if line.number else ''}\n"]
    for event in events:
        reason = event.detail.get("reason") or event.detail.get("release") or ""
        paragraphs.append(f"{event.at:%Y-%m-%d %H:%M}  {event.event:14}{event.actor}  {reason}".rstrip())
    if draft:
        paragraphs.append(f"\n{draft.body}")
    emit("\n".join(paragraphs) + "\n", out)


@group.command("ack")
def ack_command(
    key: Annotated[str, typer.Argument(help="Key of a finding or issue, as `alerts list` and `detect` print it.")],
    reason: Annotated[str, typer.Option(help="Why it is known or accepted.")] = "",
    history: options.History = None,
    tracker: TrackerName = "auto",
    issues: Issues = None,
) -> None:
    """Acknowledge a finding: its issue stays, and nothing more is said of it before it recovers."""
    from alerts.issue_list import acknowledge, key_of

    store, where, _ = _open(history, tracker, issues)
    with store:
        key = key_of(store, key, where.name)
        state = acknowledge(store, key, where.name, actor=_who(), reason=reason, at=datetime.now(UTC))
    typer.echo(f"{key} is {state.value} now.")


def _who() -> str:
    """The account this runs as; its number where the machine has no name for it, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
