"""`pointdrop history sync`: a history without a database server, kept on a branch of a Git repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from pointdrop.cli import options
from pointdrop.cli.options import Format
from pointdrop.cli.rows import print_rows
from pointdrop.paths import history_url, state_dir


def sync(
    pull: Annotated[bool, typer.Option("--pull", help="Take what is on the branch into the local history.")] = False,
    push: Annotated[bool, typer.Option("--push", help="Put both together, on the branch and here.")] = False,
    git: Annotated[
        str,
        typer.Option(
            "--git",
            envvar="POINTDROP_HISTORY_GIT",
            help="Repository of the branch; that of the workflow, or origin, by default.",
        ),
    ] = "",
    branch: Annotated[str, typer.Option("--branch", help="The orphan branch.")] = "pointdrop-history",
    history: options.History = None,
    format: options.RowFormat = Format.text,
) -> None:
    """Keep the history on a branch of its own, as JSON Lines by month, where there is no database server.

    Nothing is lost when two push at once: the later one takes over what the earlier one pushed and pushes again. Where
    POINTDROP_HISTORY names a database server there is nothing to do, and the same workflow serves both. GITHUB_TOKEN is
    used for repositories at an HTTPS address.
    """
    from history.store import Store
    from pointdrop.jobs.history_branch import HistoryBranch, repository_of

    if pull == push:
        raise typer.BadParameter("say --pull or --push", param_hint="--pull/--push")
    url = history_url(history)
    if not url.startswith("sqlite"):
        typer.echo("The history is in a database server; no branch is needed.", err=True)
        return
    repository = git or repository_of(os.environ)
    folder: Path = state_dir() / "history-branch"
    history_branch = HistoryBranch(repository, folder, branch, os.environ.get("GITHUB_TOKEN", ""))
    with Store.open(url) as store:
        done = history_branch.pull(store) if pull else history_branch.push(store)
    row = {"imported": sum(done.imported.values()), "files_written": done.written, "commit": done.commit}
    print_rows([row], format)
