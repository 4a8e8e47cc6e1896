"""MyRocks: RocksDB as the storage engine, in MariaDB (a plugin) or in the MySQL fork it came from (built in)."""

from __future__ import annotations

from runners.engines.mariadb import MariaDB
from runners.engines.mysql import MySQL
from runners.engines.mysqlfamily import SETTLE_DEADLINE_S, SETTLE_POLL_S, MySQLFamily


class RocksDBStorage(MySQLFamily):
    """What settling means for RocksDB; a mix-in."""

    def _flush(self) -> None:
        """Write the memtable, compact it with level 0, and wait until no flush or compaction is left to do."""
        self.query("SET GLOBAL rocksdb_force_flush_memtable_and_lzero_now = 1")
        self.server.wait_until(self._idle, SETTLE_DEADLINE_S, SETTLE_POLL_S, "compaction")

    def _idle(self) -> bool:
        pending = self.query(
            "SELECT SUM(value) FROM information_schema.rocksdb_cfstats "
            "WHERE stat_type IN ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING', 'NUM_IMMUTABLE_MEM_TABLE')"
        )
        return not int(pending[0][0] or 0)


class MyRocksInMariaDB(RocksDBStorage, MariaDB):
    """MariaDB with the plugin ha_rocksdb."""


class MyRocksInMySQL(RocksDBStorage, MySQL):
    """The MySQL fork that MyRocks was made for."""
