"""Which engine runs which DBMS."""

from __future__ import annotations

from pathlib import Path

from history.model import Release
from runners.engines.account import server_account
from runners.engines.base import Engine
from runners.engines.mariadb import MariaDB
from runners.engines.mirrors import reachable_directory, reachable_release
from runners.engines.myrocks import MyRocksInMariaDB, MyRocksInMySQL
from runners.engines.mysql import MySQL
from runners.engines.postgres import Postgres
from runners.errors import EngineError
from runners.releases.installed import Installed
from runners.settings.dbms import RenderedOptions, release_numbers

ENGINES: dict[str, type[Engine]] = {"postgres": Postgres, "mysql": MySQL, "mariadb": MariaDB}
#: MyRocks of this version and later is MariaDB's plugin; MySQL's forks stop at 8.0.
MYROCKS_IN_MARIADB_SINCE = (10,)


def engine_class(release: Release) -> type[Engine]:
    """The engine that runs `release`; EngineError when there is none."""
    if release.dbms == "myrocks":
        numbers = release_numbers(release.dbms, release.version)
        return MyRocksInMariaDB if numbers >= MYROCKS_IN_MARIADB_SINCE else MyRocksInMySQL
    if release.dbms in ENGINES:
        return ENGINES[release.dbms]
    raise EngineError(f"there is no engine for {release.dbms!r}; there are mariadb, myrocks, mysql, postgres")


def engine_for(
    installed: Installed,
    options: RenderedOptions,
    directory: Path,
    *,
    state: Path,
    sandbox: bool = False,
) -> Engine:
    """The engine of the installed release's DBMS.

    `directory` becomes the server's own (data, log, option file); it and everything in it belong to the account servers
    run as. The server is recorded below `state`, where `stop_leftovers(state)` finds it. Where the account cannot get
    to `directory` or to the release, stand-ins elsewhere are used (see `mirrors`): take the engine's own `directory`
    afterwards. `sandbox` runs everything of the release inside bubblewrap.

    EngineError when there is no such engine; NoAccount when there is nobody to run it as.
    """
    release = installed.release
    engine = engine_class(release)
    if (options.dbms, options.version) != (release.dbms, release.version):
        raise EngineError(f"options for {options.dbms} {options.version} do not fit {release.name}")
    account = server_account()
    return engine(
        reachable_release(installed, account),
        options,
        reachable_directory(directory, account),
        account,
        state,
        sandbox,
    )
