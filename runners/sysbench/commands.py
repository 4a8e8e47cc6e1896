"""Command lines for sysbench: test, scale and connection in, argument vector out. Pure but for reading the scripts.

>>> client = Connection("pgsql", Path("/run/pg"), 5432, "pointdrop", "postgres")
>>> command = prepare_command(client, Scale(tables=1, rows=50_000), seed=7)
>>> command[:3], command[-1]
(['sysbench', '--db-driver=pgsql', '--pgsql-user=pointdrop'], 'prepare')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from runners.engines import Connection
from runners.settings import Scale, Test
from runners.settings.benchmarks import OptionValue
from runners.sysbench.scripts import SCRIPTS, scripts_dir

#: Any family can load data; they all share the tables.
_PREPARE_SCRIPT = "point_select"
_AGE_SCRIPT = "update_index"
#: sysbench draws its own seed when told 0.
_SEED_LIMIT = 2**31 - 1
#: The script multiplies it by 1000 and must stay within 32 bits.
_DATA_SEEDS = 1_000_000


def environment(base: Mapping[str, str], argv: Sequence[str]) -> dict[str, str]:
    """`base` with modules where `require` finds them, and none of the user's: those beside the script of `argv`, then
    ours."""
    beside = next((Path(part).parent for part in argv if part.endswith(".lua")), scripts_dir())
    return {**base, "LUA_PATH": f"{beside}/?.lua;{scripts_dir()}/?.lua;;", "LC_ALL": "C"}


def prepare_command(client: Connection, scale: Scale, *, seed: int) -> list[str]:
    """Create and fill the tables, one thread a table up to the scale's threads."""
    threads = min(scale.tables, max(1, scale.threads))
    options = {**_tables(scale), "threads": threads, "data_seed": seed % _DATA_SEEDS + 1}
    return command(client, _PREPARE_SCRIPT, options, "prepare")


def age_command(client: Connection, scale: Scale, *, updates: int, seed: int) -> list[str]:
    """Run indexed updates on one connection: a fixed number, so that every release ages alike."""
    options = {**_tables(scale), "threads": 1, "time": 0, "events": updates, **seeded(seed)}
    return command(client, _AGE_SCRIPT, options, "run")


def heat_command(client: Connection, scale: Scale, *, seconds: int) -> list[str]:
    """Read all rows by both indexes for at most about `seconds`, one thread a table up to the scale's threads."""
    threads = min(scale.tables, max(1, scale.threads))
    return command(client, _PREPARE_SCRIPT, {**_tables(scale), "threads": threads, "heat_s": seconds}, "heat")


def explain_command(client: Connection, test: Test, scale: Scale) -> list[str]:
    """Print the plan of every statement of the test."""
    return command(client, test.script, {**_tables(scale), **test.options}, "explain")


def run_command(client: Connection, test: Test, scale: Scale, *, seconds: int, warmup_s: int, seed: int) -> list[str]:
    """Run a test for `warmup_s` + `seconds`; the counters are reset in between, and reported once a second."""
    options = {
        **_tables(scale), **test.options, "threads": scale.threads, "time": warmup_s + seconds,
        **reported(percentile=99), **seeded(seed), "report_checkpoints": warmup_s or "",
    }  # fmt: skip
    return command(client, test.script, options, "run")


def count_command(
    client: Connection, test: Test, scale: Scale, *, pid: int, events: int, vgdb: str, seed: int
) -> list[str]:
    """Run a warm-up, which is sysbench's first event, and `events` events on one connection, the instructions of the
    latter counted in process `pid` (-1: in the connection's own)."""
    options = {
        **_tables(scale), **test.options, "threads": 1, "time": 0, "events": 1 + events, "count_pid": pid,
        "count_events": events, "count_vgdb": vgdb, **seeded(seed),
    }  # fmt: skip
    return command(client, test.script, options, "run")


def _tables(scale: Scale) -> dict[str, OptionValue]:
    return {"tables": scale.tables, "table_size": scale.rows}


def reported(percentile: int) -> dict[str, OptionValue]:
    """A line a second with this percentile of the response times, and their histogram at the end."""
    return {"report_interval": 1, "histogram": "on", "percentile": percentile}


def seeded(seed: int) -> dict[str, OptionValue]:
    return {"rand_type": "uniform", "rand_seed": seed % _SEED_LIMIT or 1}


def command(
    client: Connection, script: str, options: Mapping[str, OptionValue], verb: str, scripts: Path = SCRIPTS
) -> list[str]:
    """One script of the folder `scripts` with its options; an empty value leaves an option out."""
    return [
        "sysbench",
        *_connection(client),
        *(f"--{name.replace('_', '-')}={_text(value)}" for name, value in options.items() if value != ""),
        str(scripts_dir(scripts) / f"{script}.lua"),
        verb,
    ]


def _connection(client: Connection) -> list[str]:
    options = {"user": client.user, "db": client.database}
    if client.driver == "pgsql":
        options |= {"host": str(client.socket), "port": str(client.port)}
    else:
        options |= {"socket": str(client.socket)}
    return [f"--db-driver={client.driver}", *(f"--{client.driver}-{name}={value}" for name, value in options.items())]


def _text(value: OptionValue) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
