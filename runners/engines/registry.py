"""Which engine runs which DBMS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runners.engines.account import server_account
from runners.engines.base import Engine, Installed
from runners.engines.errors import EngineError
from runners.engines.postgres import Postgres
from runners.settings.dbms import RenderedOptions

ENGINES: dict[str, type[Engine]] = {"postgres": Postgres}


def engine_for(
    installed: Installed,
    options: RenderedOptions,
    directory: Path,
    *,
    state: Path | None = None,
    user: str | None = None,
    valgrind: Sequence[str] | None = None,
) -> Engine:
    """The engine of the installed release's DBMS.

    `directory` becomes the server's own (data, log, option file); it and everything in it belong to the account servers
    run as. The server is recorded below `state` (default: the directory's parent), where `stop_leftovers(state)` finds
    it. `valgrind` is a command line to put in front of the server. EngineError when there is no such engine, or when
    the account cannot reach `directory` or the release.
    """
    dbms = installed.release.dbms
    if dbms not in ENGINES:
        raise EngineError(f"there is no engine for {dbms!r}; there are {', '.join(sorted(ENGINES))}")
    if options.dbms != dbms or options.version != installed.release.version:
        raise EngineError(f"options for {options.dbms} {options.version} do not fit {installed.release.name}")
    account = server_account(user)
    return ENGINES[dbms](installed, options, directory, account, state or directory.parent, valgrind or ())
