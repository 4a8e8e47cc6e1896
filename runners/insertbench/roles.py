"""A step as roles, and each role as a command line. Pure but for finding the scripts.

step     roles: one process each, one connection a client
l.i0     insert
l.x      index
l.i1     insert + delete           the deletes follow the inserts, which are never far ahead
qr100    range + insert + delete   the inserts at a rate, the deletes follow
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from runners.engines import Connection
from runners.settings import InsertSize, Step, Test
from runners.settings.benchmarks import OptionValue
from runners.sysbench.commands import command, seeded

LUA = Path(__file__).parent / "lua"
"""The scripts of the roles."""

#: sysbench's own figure of the per-second lines: the slowest transaction of the second.
MAXIMUM = 100


@dataclass(frozen=True)
class Role:
    """One process of a step."""

    name: str
    """Also its script."""
    clients: int
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    paired: bool = False
    """It has a socket to its partner for each client."""


def roles_of(step: Step, name: str, size: InsertSize, *, clients: int) -> tuple[Role, ...]:
    """The roles of one step; the first one is what the step measures."""
    rows = step.rows_per_commit
    if step.does == "index":
        return (Role("index", clients, {"commits": 1, "time": 0}),)
    if step.does == "load":
        return (Role("insert", clients, {"rows-per-commit": rows, "commits": commits(size.rows, rows), "time": 0}),)
    delete = Role("delete", clients, {"rows-per-commit": rows, "time": 0}, paired=True)
    if step.does == "replace":
        number = commits(size.replaced[name], rows)
        insert = Role("insert", clients, {"rows-per-commit": rows, "commits": number, "time": 0}, paired=True)
        return insert, delete
    seconds = size.query_s
    behind = {"rows-per-commit": rows, "rate": step.rate, "commits": commits(step.rate * seconds, rows)}
    return (
        Role("query", clients, {"query": step.does, "time": seconds, "deleted": step.rate * seconds}),
        Role("insert", clients, {**behind, "time": seconds}, paired=True),
        delete,
    )


def commits(rows: int, rows_per_commit: int) -> int:
    """Transactions for at least so many rows."""
    return ceil(rows / rows_per_commit)


def role_commands(client: Connection, test: Test, size: InsertSize, *, clients: int, seed: int) -> dict[str, list[str]]:
    """Command lines by role, the measured one first. `--pair-fds` is added where the sockets are."""
    assert test.step is not None
    return {
        role.name: command(
            client,
            role.name,
            {
                "threads": role.clients,
                "events": 0,
                **role.options,
                "report-interval": 1,
                "histogram": "on",
                "percentile": MAXIMUM,
                **seeded(seed),
            },
            "run",
            LUA,
        )
        for role in roles_of(test.step, test.name, size, clients=clients)
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
