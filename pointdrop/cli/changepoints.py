"""`pointdrop changepoints`: the detector for anybody's values, as a filter or as a server on standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pointdrop.cli import options
from pointdrop.cli.rows import emit, print_rows, remark

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

    With --serve, `{"values": [...]}` gets `{"indices": [...]}`, with `"tier": "provisional"` also changes not confirmed
    yet; `{"type": "matrix", "qps": [servers][tests][releases][blocks], "cpu": the same or null}` gets
    `{"changes": [[server, test, release], ...]}`; a bad line gets `{"error": "..."}`.
    """
    from pointdrop.jobs.changepoints import answer_lines, judge

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
    judgement = judge(series, pool=not no_pool)
    if format == "jsonl":
        emit("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in judgement.rows), out)
    else:
        joined = [row | {"warnings": "; ".join(row["warnings"])} for row in judgement.rows]
        print_rows(judgement.rows if format == "json" else joined, format, COLUMNS, out=out)
    for note in judgement.notes:
        remark(note, quiet)
