"""What clients really send: the statement log of a real server, which knows nothing of our scripts.

with logging_server(catalogue, configs, place, "mariadb", "11.4.5") as engine:
    statements = sent(engine, lambda: run_sysbench(...))
statements[0]   # Sent(connection="9", prepared=True, text="SELECT c FROM sbtest3 WHERE id=17")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from runners.engines import Engine, engine_for
from runners.releases import Catalogue
from runners.settings.dbms import Sizing, load_dbms, render

SIZING = Sizing(pool_mib=64, log_mib=64, cores=2, connections=20)
#: Newest releases of two lines that the other tests fetch too, one DBMS of each protocol.
SERVERS = [("postgres", "17.5"), ("mariadb", "11.4.5")]

_POSTGRES = re.compile(
    r"\[(?P<pid>\d+)\] LOG:  (?P<how>execute|statement)[^:]*: (?P<text>.*)"
    r"(?:\n.*\[(?P=pid)\] DETAIL:  [Pp]arameters: (?P<values>.*))?"
)


class Sent(NamedTuple):
    """One statement that reached the server, its values in place."""

    connection: str
    prepared: bool
    text: str

    @property
    def shape(self) -> str:
        """How it was sent and what, with N for each number and 'S' for each string.

        >>> Sent("9", False, "SELECT c FROM sbtest3 WHERE id IN (1, 20)").shape
        'text: SELECT c FROM sbtestN WHERE id IN (N, N)'
        """
        text = re.sub(r"'[^']*'", "'S'", " ".join(self.text.split()))
        return ("prepared: " if self.prepared else "text: ") + re.sub(r"\d+(\.\d+)?", "N", text)


@contextmanager
def logging_server(configs: Path, download_state: Path, place: Path, dbms: str, version: str) -> Iterator[Engine]:
    """A running server of the `default` config below `place` that logs all statements when `sent` asks it to."""
    for folder in (place, *place.parents[:2]):
        folder.chmod(0o755)
    options = render(load_dbms(dbms, configs), "default", version, SIZING)
    if dbms == "postgres":
        options = options.model_copy(update={"options": {**options.options, "log_statement": "all"}})
    with closing(Catalogue(configs, download_state)) as catalogue:
        installed = catalogue.fetch(dbms, version)
    with engine_for(installed, options, place / f"{dbms}-{version}", state=place / "state") as engine:
        engine.initialise()
        engine.start()
        engine.wait_ready()
        yield engine


def sent(engine: Engine, run: Callable[[], object]) -> list[Sent]:
    """The statements that clients sent while `run` ran, in order; not those of the harness's own connections."""
    if engine.connection.driver == "pgsql":
        before = engine.server.log.stat().st_size
        run()
        with engine.server.log.open("rb") as log:
            log.seek(before)
            text = log.read().decode()
        return [
            Sent(match["pid"], match["how"] == "execute", _with_values(match["text"], match["values"] or ""))
            for match in _POSTGRES.finditer(text)
        ]
    engine.query("SET GLOBAL log_output = 'TABLE'")
    engine.query("TRUNCATE TABLE mysql.general_log")
    engine.query("SET GLOBAL general_log = 1")
    try:
        run()
    finally:
        engine.query("SET GLOBAL general_log = 0")
    statements = []
    for thread, command, argument in engine.query("SELECT thread_id, command_type, argument FROM mysql.general_log"):
        text = argument.decode() if isinstance(argument, bytes) else str(argument)
        if command in ("Execute", "Query") and not text.startswith("SET "):
            statements.append(Sent(str(thread), command == "Execute", text))
    return statements


def _with_values(text: str, values: str) -> str:
    """`WHERE id=$1` and `$1 = '7'` as `WHERE id=7`; the log quotes numbers too."""
    by_name = dict(re.findall(r"(\$\d+) = ('[^']*')", values))
    plain = {name: value.strip("'") if value.strip("'").isdigit() else value for name, value in by_name.items()}
    return re.sub(r"\$\d+", lambda match: plain.get(match[0], match[0]), text)
