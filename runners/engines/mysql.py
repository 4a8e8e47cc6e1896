"""MySQL with InnoDB, 5.5 and later."""

from __future__ import annotations

import re
from typing import ClassVar

from history.model import EffectiveSetting
from runners.engines.effective_settings import of_mysql
from runners.engines.mysqlfamily import MySQLFamily

#: `mysqld --initialize-insecure` since; before it the system tables are made by scripts.
INITIALIZE_SINCE = (5, 7, 6)
#: information_schema.innodb_metrics came with 5.6; before it only the monitor's text tells how far purge is.
METRICS_SINCE = (5, 6)
_HISTORY = re.compile(r"History list length (\d+)")
#: The server says where the value of a variable comes from.
SOURCES_SINCE = (8, 0)
SETTINGS_WITH_SOURCES = (
    "SELECT variable_name, variable_value, variable_source FROM performance_schema.global_variables "
    "JOIN performance_schema.variables_info USING (variable_name) ORDER BY 1"
)
#: RESET MASTER is gone in 8.4; its successor came with 8.2.
RESET_BINARY_LOGS_SINCE = (8, 2)
SCRIPTS = (("mysql_system_tables.sql",), ("mysql_system_tables_data.sql",), ("fill_help_tables.sql",))


class MySQL(MySQLFamily):
    """A MySQL server."""

    local_only: ClassVar[tuple[str, ...]] = (
        "--loose-mysqlx=0",
        "--loose-auto-generate-certs=0",
        "--loose-sha256-password-auto-generate-rsa-keys=0",
        "--loose-caching-sha2-password-auto-generate-rsa-keys=0",
    )

    def initialise(self) -> None:
        if self.numbers >= INITIALIZE_SINCE:
            self._fresh_data()
            self._initialise("--initialize-insecure")
        else:
            self._bootstrap(self._scripts(SCRIPTS))

    def _work_left(self) -> tuple[int, int]:
        if self.numbers >= METRICS_SINCE:
            return super()._work_left()
        [(_, dirty)] = self.query("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")
        [(_, _, monitor)] = self.query("SHOW ENGINE INNODB STATUS")
        history = _HISTORY.search(monitor)
        assert history is not None, "every monitor of InnoDB says it"
        return int(dirty), int(history[1])

    def effective_settings(self) -> dict[str, EffectiveSetting]:
        question = SETTINGS_WITH_SOURCES if self.numbers >= SOURCES_SINCE else "SHOW GLOBAL VARIABLES"
        return of_mysql(self.query(question), self._given)

    def _reset_binlog_statement(self) -> str:
        return "RESET BINARY LOGS AND GTIDS" if self.numbers >= RESET_BINARY_LOGS_SINCE else "RESET MASTER"
