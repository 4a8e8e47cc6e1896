"""A step as roles, and each role as a command line. Pure but for finding the scripts.

step     roles: one process each, one connection a client
l.i0     insert
l.x      index
l.i1     insert + delete           the deletes follow the inserts, which are never far ahead
qr100    range + insert + delete   the inserts at a rate, the deletes follow
"""

from __future__ import annotations

from math import ceil
from pathlib import Path

from runners.engines import Connection
from runners.settings import InsertSize, Step, Test
from runners.settings.benchmarks import OptionValue
from runners.sysbench.commands import command, reported, seeded

LUA = Path(__file__).parent / "lua"
"""The scripts of the roles."""

#: sysbench's own figure of the per-second lines: the slowest transaction of the second.
MAXIMUM = 100


def roles_of(step: Step, name: str, size: InsertSize) -> dict[str, dict[str, OptionValue]]:
    """The roles of one step, which are scripts, each with its options; the first one is what the step measures.

    `insert` and `delete` of one step have a socket to each other for each client.
    """
    rows = step.rows_per_commit
    if step.does == "index":
        return {"index": {"commits": 1, "time": 0}}
    if step.does == "load":
        return {"insert": {"rows_per_commit": rows, "commits": commits(size.rows, rows), "time": 0}}
    delete: dict[str, OptionValue] = {"rows_per_commit": rows, "time": 0}
    if step.does == "replace":
        replaced = commits(size.replaced[name], rows)
        return {"insert": {"rows_per_commit": rows, "commits": replaced, "time": 0}, "delete": delete}
    seconds = size.query_s
    behind = {"rows_per_commit": rows, "rate": step.rate, "commits": commits(step.rate * seconds, rows)}
    return {
        "query": {"query": step.does, "time": seconds},
        "insert": {**behind, "time": seconds},
        "delete": delete,
    }


def commits(rows: int, rows_per_commit: int) -> int:
    """Transactions for at least so many rows."""
    return ceil(rows / rows_per_commit)


def role_commands(client: Connection, test: Test, size: InsertSize, *, clients: int, seed: int) -> dict[str, list[str]]:
    """Command lines by role, the measured one first. `--pair-fds` is added where the sockets are."""
    assert test.step is not None
    common = reported(percentile=MAXIMUM) | seeded(seed)
    return {
        role: command(client, role, {"threads": clients, "events": 0, **options, **common}, "run", LUA)
        for role, options in roles_of(test.step, test.name, size).items()
    }


def prepare_command(client: Connection, *, clients: int) -> list[str]:
    """Create the clients' tables, empty."""
    return command(client, "insert", {"threads": clients}, "prepare", LUA)


def explain_command(client: Connection, test: Test) -> list[str] | None:
    """Print the plans of the statements that a step's plan can move: queries, or the deletes; None when it has none."""
    assert test.step is not None
    if test.step.queries:
        return command(client, "query", {"threads": 1, "query": test.step.does}, "explain", LUA)
    if test.step.does == "replace":
        return command(client, "delete", {"threads": 1}, "explain", LUA)
    return None
