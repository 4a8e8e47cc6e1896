"""MariaDB with InnoDB, 10.2 and later."""

from __future__ import annotations

from typing import ClassVar

from history.model import EffectiveSetting
from runners.engines.effective_settings import of_mariadb
from runners.engines.mysqlfamily import MySQLFamily

SETTINGS = (
    "SELECT variable_name, global_value, default_value, global_value_origin "
    "FROM information_schema.system_variables ORDER BY 1"
)
#: Since then root would be let in by its account's name only; NULL gives it an empty password instead.
SOCKET_AUTHENTICATION_SINCE = (10, 4)
SCRIPTS = (
    ("mariadb_system_tables.sql", "mysql_system_tables.sql"),
    ("mariadb_performance_tables.sql", "mysql_performance_tables.sql"),
    ("mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"),
    ("fill_help_tables.sql",),
    ("maria_add_gis_sp_bootstrap.sql",),
)
#: Came with 10.6.
SYS_SCHEMA = (("mariadb_sys_schema.sql", "mysql_sys_schema.sql"),)


class MariaDB(MySQLFamily):
    """A MariaDB server."""

    programs: ClassVar[tuple[str, ...]] = ("mariadbd", "mysqld")
    local_only: ClassVar[tuple[str, ...]] = ("--skip-ssl",)

    def initialise(self) -> None:
        normal = "SET @auth_root_socket = NULL;" if self.numbers >= SOCKET_AUTHENTICATION_SINCE else ""
        self._bootstrap([*self._scripts(SCRIPTS), *self._scripts(SYS_SCHEMA, optional=True)], normal)

    def effective_settings(self) -> dict[str, EffectiveSetting]:
        return of_mariadb(self.query(SETTINGS), self._given)

    def _reset_binlog_statement(self) -> str:
        return "RESET MASTER"

    def _valgrind_options(self) -> list[str]:
        """Valgrind cannot reserve the address range that a pool which may grow asks for."""
        pool = self.options.options.get("innodb_buffer_pool_size", "128M")
        return [*super()._valgrind_options(), f"--loose-innodb-buffer-pool-size-max={pool}"]
