"""Options that several commands share: each is declared once and has one help text."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from runners import settings


class Format(StrEnum):
    """How rows are written."""

    text = "text"
    json = "json"
    csv = "csv"
    markdown = "markdown"


# --- where data comes from and goes to ---

History = Annotated[
    str | None,
    typer.Option(
        "--history",
        help="History URL, sqlite:///FILE or postgresql://... [default: POINTDROP_HISTORY, else var/history.db].",
    ),
]
RowFormat = Annotated[Format, typer.Option("--format", help="text, json, csv or markdown.")]
TextOrJson = Annotated[Literal["text", "json"], typer.Option("--format", help="text for people, json for programs.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write the output there instead of standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on standard error.")]
Dataset = Annotated[
    str | None, typer.Option("--dataset", help="Read these shipped published results instead of the history.")
]

# --- which series ---

Dbms = Annotated[str | None, typer.Option("--dbms", help="postgres, mysql, mariadb, myrocks or another name.")]
Line = Annotated[str | None, typer.Option("--line", help="The line, such as 8.0, or `majors` for steps between lines.")]
Server = Annotated[str | None, typer.Option("--server", help="The server: small, medium, local or another name.")]
Config = Annotated[str | None, typer.Option("--config", help="The named set of options.")]
Benchmark = Annotated[str | None, typer.Option("--benchmark", help="sysbench or insert.")]
Test = Annotated[str | None, typer.Option("--test", help="The microbenchmark or step.")]

# --- what is measured, and how ---

Plan = Annotated[str, typer.Option("--plan", help="Plan below configs/plans, or a TOML file.")]
MeasuredServer = Annotated[str, typer.Option("--server", help="Server, for scale and memory: small, medium or local.")]
Profile = Annotated[str, typer.Option("--profile", help="Durations; the lane's quickest by default.")]
Lane = Annotated[
    Literal["instructions", "time"],
    typer.Option("--lane", help="Count instructions (any machine), or time (a quiet one)."),
]
Tests = Annotated[str, typer.Option("--tests", help="A set of the catalogue, or tests, comma-separated.")]
BenchmarkCatalogue = Annotated[str, typer.Option("--benchmark", help="Catalogue of tests.")]
Rounds = Annotated[int, typer.Option("--rounds", min=1, help="At most so many rounds of fresh servers.")]
BudgetMinutes = Annotated[float, typer.Option("--budget-minutes", help="No round is begun after so many minutes.")]
Seed = Annotated[int, typer.Option("--seed", help="Order of blocks.")]
Offline = Annotated[
    bool, typer.Option("--offline", help="Ask no network: last known lists, and releases that are in the cache.")
]
GithubOutput = Annotated[
    Path | None, typer.Option("--github-output", help="Append the outputs named above to this file of a workflow step.")
]
Forecast = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be measured, with its machine time; measure nothing.")
]
Discover = Annotated[
    bool, typer.Option("--discover", help="With --dry-run: ask the sources for new releases first, as a real run does.")
]


def names_in(text: str) -> list[str]:
    """The names of an option that takes several with commas between them.

    >>> names_in("scan, insert,,")
    ['scan', 'insert']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


def tests_in(text: str, benchmark: settings.Benchmark) -> tuple[settings.Test, ...]:
    """The tests of a set, of `all`, or named. BadSettings when the benchmark has no such test."""
    return benchmark.select(text if text in (*benchmark.sets, "all") else tuple(names_in(text)))


def write_outputs(path: Path | None, **values: object) -> None:
    """Append the outputs of a workflow step to the file of `--github-output`, when there is one."""
    if path:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{key}={value}\n" for key, value in values.items())
