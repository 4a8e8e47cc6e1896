"""`pointdrop changepoints`: the detector for anybody's values, as a filter or as a server on standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pointdrop.cli import options
from pointdrop.cli.rows import emit, print_rows, remark

if TYPE_CHECKING:
    from detector.commits.methods import RupturesMethod

COLUMNS = (
    "series_id", "position", "label", "previous", "direction", "change_pct", "low_pct", "high_pct", "probability",
    "q_value", "tier", "warnings",
)  # fmt: skip


def changepoints(
    file: Annotated[
        Path, typer.Argument(help="Tidy CSV with series_id,position,value and optional columns; - is standard input.")
    ] = Path("-"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Answer JSON objects, one a line, until standard input ends.")
    ] = False,
    no_pool: Annotated[bool, typer.Option("--no-pool", help="Judge every series by itself.")] = False,
    method: Annotated[
        Literal["pointdrop", "pelt", "kernel", "binseg", "bottomup", "window", "dynp"],
        typer.Option("--method", help="pointdrop, or a method of ruptures to compare with."),
    ] = "pointdrop",
    model: Annotated[
        Literal["l1", "l2", "normal", "rank", "rbf"] | None,
        typer.Option("--model", help="Cost of a method of ruptures. [default: l2; rbf of kernel]"),
    ] = None,
    penalty: Annotated[
        str | None,
        typer.Option("--penalty", help="Price of a changepoint there: bic, aic or a number. [default: bic]"),
    ] = None,
    format: Annotated[
        Literal["jsonl", "json", "csv", "markdown", "text"],
        typer.Option("--format", help="jsonl: an object a line; json: an array of them."),
    ] = "jsonl",
    out: options.Out = None,
    quiet: options.Quiet = False,
) -> None:
    """Find the changepoints in series of values: CSV in, JSON Lines out.

    Optional columns: label, block, dbms, line, server, config, benchmark, group, test, metric, unit, better. Series
    with a label at every position and at most 60 positions are releases; those of one dbms, line, config, benchmark
    and set of labels are judged together. All others are commit series.

    JSON keys and CSV columns: series_id, position, label, previous, direction, change_pct, low_pct, high_pct,
    probability, q_value, tier, warnings.

    The other methods judge every series by itself, releases too, on the same scale (logs, divided by the noise of
    neighbours' differences), and tell no probability, q_value and tier: null. kernel takes the models rbf and l2. bic
    and aic are log(n) and 2 for each parameter of a changepoint; a number is in the cost of the model.

    With --serve, `{"values": [...]}` gets `{"indices": [...]}`, with `"tier": "provisional"` also changes not confirmed
    yet; `{"type": "matrix", "qps": [servers][tests][releases][blocks], "cpu": the same or null}` gets
    `{"changes": [[server, test, release], ...]}`; a bad line gets `{"error": "..."}`.
    """
    from pointdrop.jobs.changepoints import answer_lines, judge

    chosen = _ruptures_method(method, model, penalty, serve=serve)
    if serve:
        for reply in answer_lines(sys.stdin.buffer):
            print(reply, flush=True)
        return
    from pointdrop.jobs.tidy_csv import BadTable, read_tidy

    try:
        if str(file) == "-":
            # as a file is read, whatever the locale says
            series = read_tidy(io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline=""))
        else:
            with file.open(encoding="utf-8-sig", newline="") as lines:
                series = read_tidy(lines)
    except OSError as error:
        raise BadTable(f"cannot read {file}: {error.strerror}") from error
    judgement = judge(series, pool=not no_pool, method=chosen)
    if format == "jsonl":
        emit("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in judgement.rows), out)
    else:
        joined = [row | {"warnings": "; ".join(row["warnings"])} for row in judgement.rows]
        print_rows(judgement.rows if format == "json" else joined, format, COLUMNS, out=out)
    for note in judgement.notes:
        remark(note, quiet)


def _ruptures_method(name: str, model: str | None, penalty: str | None, *, serve: bool) -> RupturesMethod | None:
    """The method of `ruptures` that was asked for; None stands for ours."""
    from detector.commits.methods import RupturesMethod

    if name == "pointdrop":
        for option, given in (("--model", model), ("--penalty", penalty)):
            if given is not None:
                raise typer.BadParameter(
                    "is for the methods of ruptures; name one with --method, as in --method pelt", param_hint=option
                )
        return None
    if serve:
        raise typer.BadParameter("answers with pointdrop only; leave --method out", param_hint="--serve")
    try:
        return RupturesMethod(name, model or "", penalty or "bic")
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--method, --model, --penalty") from error
