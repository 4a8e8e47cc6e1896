"""A real Postgres: its whole life, what it must never do, and how its errors read."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from runners.engines import Engine, EngineError, Installed, server_account, stop_leftovers
from runners.engines.mirrors import reachable_directory, reachable_release
from runners.engines.server_records import ProcessId, read_records
from runners.errors import ServerDied, WrongVersion
from runners.settings.dbms import ConfigNotRunnable, RenderedOptions, UnknownOption

pytestmark = pytest.mark.e2e

#: The configs of the posts whose lz4 forms depend on the build.
CONFIGS = [f"sync{sync}_comp{comp}_fpi{fpi}" for sync in (0, 1) for comp in ("0", "1", "LZ4") for fpi in (0, 1)]
LINE = "17"


@pytest.fixture(scope="module")
def postgres(release: Callable[..., Installed]) -> Installed:
    return release("postgres", LINE, "maven")


def started(engine: Engine, wrapper: Sequence[str] = ()) -> Engine:
    engine.initialise()
    engine.start(wrapper)
    engine.wait_ready()
    return engine


def changed(options: RenderedOptions, **values: str) -> RenderedOptions:
    return options.model_copy(update={"options": {**options.options, **values}})


def test_a_whole_life(make: Callable[..., Engine], postgres: Installed, place: Path) -> None:
    with make(postgres) as engine:
        started(engine)
        assert engine.version() == postgres.release.version
        engine.query("CREATE TABLE t AS SELECT generate_series(1, 1000) AS id")
        engine.query("DELETE FROM t WHERE id % 2 = 0")
        engine.settle()
        (pages, visible), *_ = engine.query("SELECT relpages, relallvisible FROM pg_class WHERE relname = 't'")
        assert pages == visible > 0, "settling vacuums"
        assert engine.stop() == ()
        engine.save(place / "kept")
        engine.start()
        engine.wait_ready()
        engine.query("DROP TABLE t")
        engine.stop()
        engine.restore(place / "kept")
        engine.start()
        engine.wait_ready()
        assert engine.query("SELECT count(*) FROM t") == [(500,)]
    assert not engine.server.running
    assert list(read_records(place / "state")) == []


def test_settling_leaves_no_dead_row_in_an_index(make: Callable[..., Engine], postgres: Installed) -> None:
    """A vacuum of its own accord skips indexes while dead rows are on less than 2 % of the pages."""
    engine = started(make(postgres))
    engine.query("CREATE TABLE t AS SELECT generate_series(1, 20000) AS id, repeat('x', 200) AS pad")
    engine.query("CREATE INDEX i ON t (id)")
    engine.settle()
    engine.query("UPDATE t SET id = -id WHERE id % 8000 = 7")
    engine.settle()
    ((pages, visible),) = engine.query("SELECT relpages, relallvisible FROM pg_class WHERE relname = 't'")
    assert pages == visible > 500


def test_it_runs_as_nobody_special_and_listens_nowhere(make: Callable[..., Engine], postgres: Installed) -> None:
    engine = started(make(postgres))
    account = server_account()
    pids = engine.server.pids()
    assert engine.server.pid in pids
    assert len(pids) > 3
    owners = [Path(f"/proc/{pid}").stat().st_uid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert set(owners) == {account.uid}
    assert account.uid != 0
    assert [connection for connection in psutil.net_connections("inet") if connection.pid in pids] == []
    assert engine.directory.stat().st_mode & 0o777 == 0o700
    assert engine.connection.socket.stat().st_mode & 0o777 == 0o700
    assert len(str(engine.connection.socket / ".s.PGSQL.5432")) < 107


def test_the_environment_of_the_harness_does_not_reach_it(
    make: Callable[..., Engine], postgres: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=1GB")
    monkeypatch.setenv("LD_PRELOAD_MARK", "x")
    engine = started(make(postgres))
    assert "LD_PRELOAD_MARK" not in psutil.Process(engine.server.pid).environ()


def test_the_harness_talks_to_its_own_server_whatever_its_environment_says(
    make: Callable[..., Engine], postgres: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGOPTIONS": "-c statement_timeout=1 -c work_mem=64kB",
        "PGHOSTADDR": "127.0.0.1",
        "PGTARGETSESSIONATTRS": "standby",
        "PGSSLMODE": "require",
    }.items():
        monkeypatch.setenv(name, value)
    engine = started(make(postgres))
    assert engine.query("SHOW work_mem") != [("64kB",)]
    engine.query("SELECT pg_sleep(0.05)")


@pytest.mark.parametrize("name", ["closed", "deep-" + "x" * 90])
def test_the_socket_is_where_the_server_can_make_it_whatever_tmpdir_says(
    make: Callable[..., Engine], postgres: Installed, place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (place / name).mkdir(mode=0o700 if name == "closed" else 0o755)
    monkeypatch.setattr("tempfile.tempdir", str(place / name))
    assert started(make(postgres)).query("SELECT 1") == [(1,)]


def test_a_kill_leaves_nothing(make: Callable[..., Engine], postgres: Installed) -> None:
    engine = started(make(postgres))
    pids, socket, shared = engine.server.pids(), engine.connection.socket, engine.server.record.shared_files
    assert shared
    engine.kill()
    assert [pid for pid in pids if ProcessId.of(pid)] == []
    assert not socket.exists()
    assert [name for name in shared if Path(name).exists()] == []
    segments = Path("/proc/sysvipc/shm")
    if segments.exists():
        assert [row for row in segments.read_text().splitlines()[1:] if int(row.split()[4]) in pids] == []


def test_a_dead_harness_leaves_nothing(
    postgres: Installed, rendered: Callable[..., RenderedOptions], place: Path
) -> None:
    script = (
        "import sys, pickle, os, signal\n"
        "from pathlib import Path\n"
        "from runners.engines import engine_for\n"
        "installed, options, place = pickle.load(sys.stdin.buffer)\n"
        "engine = engine_for(installed, options, place / 'server', state=place / 'state')\n"
        "engine.initialise(); engine.start(); engine.wait_ready()\n"
        "print(*engine.server.pids(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    dead = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps((postgres, rendered(postgres), place)),
        capture_output=True,
        check=False,
    )
    pids = [int(pid) for pid in dead.stdout.split()]
    assert len(pids) > 3
    stop_leftovers(place / "state")
    assert [pid for pid in pids if ProcessId.of(pid)] == []


def test_two_at_once_do_not_meet(make: Callable[..., Engine], postgres: Installed) -> None:
    first, second = started(make(postgres)), started(make(postgres))
    first.query("CREATE TABLE only_here ()")
    assert second.query("SELECT to_regclass('only_here')") == [(None,)]
    first.kill()
    assert second.query("SELECT 1") == [(1,)]


def test_another_version_than_asked_for(
    make: Callable[..., Engine], postgres: Installed, rendered: Callable[..., RenderedOptions]
) -> None:
    lying = replace(postgres, release=postgres.release.model_copy(update={"version": "17.0"}))
    engine = make(lying, rendered(lying))
    engine.initialise()
    engine.start()
    with pytest.raises(WrongVersion, match=rf"postgres {postgres.release.version}, not 17\.0"):
        engine.wait_ready()
    assert not engine.server.running


def test_an_option_the_release_does_not_have(
    make: Callable[..., Engine], postgres: Installed, rendered: Callable[..., RenderedOptions]
) -> None:
    engine = make(postgres, changed(rendered(postgres), wal_of_sound="on"))
    engine.initialise()
    engine.start()
    with pytest.raises(UnknownOption, match=rf"config default on postgres {postgres.release.version}.*wal_of_sound"):
        engine.wait_ready()


def test_a_server_that_dies_shows_its_last_words(make: Callable[..., Engine], postgres: Installed) -> None:
    engine = make(postgres)
    engine.initialise()
    (engine.data / "PG_VERSION").write_text("9.9\n")
    engine.start()
    with pytest.raises(ServerDied, match=r"ended while starting:\n(?s:.*)version 9\.9, which is not compatible"):
        engine.wait_ready()


def test_a_statement_that_fails_is_named(make: Callable[..., Engine], postgres: Installed) -> None:
    engine = started(make(postgres))
    with pytest.raises(EngineError, match="SELECT nothing_here"):
        engine.query("SELECT nothing_here")


def test_it_tells_its_settings_and_two_alike_tell_the_same(
    make: Callable[..., Engine], postgres: Installed, rendered: Callable[..., RenderedOptions]
) -> None:
    options = rendered(postgres)
    settings = [started(make(postgres, options)).effective_settings() for _ in range(2)]
    assert settings[0] == settings[1]
    told = settings[0]
    assert told["shared_buffers"].source == "file"
    assert told["shared_buffers"].value == "65536kB", "the 64 MB of the option file, as an option file takes them"
    assert (told["work_mem"].value, told["work_mem"].source) == ("4096kB", "default")
    assert not told.keys() & {"port", "data_directory", "unix_socket_directories", "config_file", "server_version"}
    assert told["block_size"].source == "built in"
    sized = re.compile(r"\d+(kB|MB|ms|s|min)")
    units = {n: s.value for n, s in told.items() if sized.fullmatch(s.value) and s.source != "built in"}
    again = started(make(postgres, options.model_copy(update={"options": {**options.options, **units}})))
    assert {name: again.effective_settings()[name].value for name in units} == units, (
        "an option file takes the values as the server reports them"
    )


@pytest.mark.slow
def test_the_twelve_configs_of_the_post(
    make: Callable[..., Engine], postgres: Installed, rendered: Callable[..., RenderedOptions], place: Path
) -> None:
    first = make(postgres)
    first.initialise()
    first.save(place / "empty")
    for config in CONFIGS:
        options = rendered(postgres, config)
        engine = make(postgres, options)
        engine.restore(place / "empty")
        engine.start()
        try:
            engine.wait_ready()
        except ConfigNotRunnable as error:
            assert "LZ4" in config, config
            assert "this build does not have wal_compression" in str(error)
            continue
        for name in ("synchronous_commit", "full_page_writes", "wal_sync_method"):
            assert engine.query(f"SHOW {name}") == [(options.options[name],)], config
        shown = engine.query("SHOW wal_compression")[0][0]
        assert shown == {"on": "pglz"}.get(options.options["wal_compression"], options.options["wal_compression"])
        engine.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("line", "source"), [("15", "debian-bookworm"), ("17", "debian-trixie")])
@pytest.mark.parametrize("sandbox", [False, True])
def test_a_build_of_debian_starts_through_its_own_loader_and_has_lz4(
    make: Callable[..., Engine], release: Callable[..., Installed], rendered: Callable[..., RenderedOptions],
    line: str, source: str, sandbox: bool,
) -> None:  # fmt: skip
    """Also on a machine with an older C library, where initdb cannot start the server that lies beside it."""
    installed = release("postgres", line, source)
    assert installed.loader is not None
    engine = started(make(installed, rendered(installed, "sync1_compLZ4_fpi1"), sandbox=sandbox))
    assert engine.query("SHOW wal_compression") == [("lz4",)]
    assert "Debian" in engine.query("SELECT version()")[0][0]
    assert list((engine.server.state / "initdb").iterdir()) == [], "what initdb needed is gone"


@pytest.mark.slow
def test_it_answers_under_valgrind_in_the_lane_that_counts(
    make: Callable[..., Engine], postgres: Installed, rendered: Callable[..., RenderedOptions]
) -> None:
    valgrind = ["valgrind", "--tool=none", "--trace-children=yes", "--vgdb=no"]
    engine = make(postgres, rendered(postgres, "default", "instructions"))
    started(engine, wrapper=valgrind)
    assert engine.under_valgrind
    assert engine.query("SHOW autovacuum") == [("off",)]
    assert engine.query("SHOW jit") == [("off",)]
    assert engine.stop() == ()


def test_inside_the_sandbox_it_sees_nothing_else(make: Callable[..., Engine], postgres: Installed, place: Path) -> None:
    (place / "secret").write_text("mine")
    (place / "secret").chmod(0o644)
    engine = started(make(postgres, sandbox=True))
    with pytest.raises(EngineError, match="No such file"):
        engine.query(f"SELECT pg_read_file('{place / 'secret'}')")
    with pytest.raises(EngineError, match=r"Read-only file system|could not execute|child process"):
        engine.query(f"COPY (SELECT 1) TO PROGRAM 'cat > {postgres.prefix}/planted'")
    (interfaces,), *_ = engine.query("SELECT pg_read_file('/proc/net/dev')")
    assert {line.split(":")[0].strip() for line in interfaces.splitlines()[2:]} <= {"lo"}
    assert psutil.Process(engine.server.pid).name() == "postgres"
    assert engine.stop() == ()
    assert not (postgres.prefix / "planted").exists()


def test_a_sandboxed_server_that_fills_the_disk_is_killed(
    make: Callable[..., Engine], postgres: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it runs, initdb or the server; one outside a sandbox is our own, and is left alone."""
    monkeypatch.setattr("runners.bounds.LOOK_S", 0.02)
    monkeypatch.setattr("runners.engines.server_process.LEAST_FREE_BYTES", 1 << 60)
    with pytest.raises(ServerDied, match=r"initdb failed .*GiB are free on the disk"):
        make(postgres, sandbox=True).initialise()
    own = started(make(postgres))
    assert own.query("SELECT 1") == [(1,)] and own.stop() == ()
    monkeypatch.setattr("runners.engines.server_process.LEAST_FREE_BYTES", 1)
    engine = make(postgres, sandbox=True)
    engine.initialise()
    monkeypatch.setattr("runners.engines.server_process.LEAST_FREE_BYTES", 1 << 60)
    with pytest.raises(ServerDied, match=r"its disk: less than .* GiB are free on the disk"):
        engine.start()
        engine.wait_ready()
    engine.kill()
    assert not engine.server.running


def test_where_root_keeps_its_state_to_itself(
    postgres: Installed, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has folders that its servers cannot enter")
    private, mirrors = place / "private", place / "mirrors"
    private.mkdir(mode=0o700)
    account = server_account()
    hidden = private / "release-17.2"
    subprocess.run(["cp", "-a", postgres.prefix, hidden], check=True)
    installed = reachable_release(replace(postgres, prefix=hidden), account, mirrors)
    assert account.barrier(installed.prefix / "bin") is None
    assert (installed.prefix / "bin/postgres").stat().st_ino == (hidden / "bin/postgres").stat().st_ino
    again = reachable_release(replace(postgres, prefix=hidden), account, mirrors)
    assert again.prefix == installed.prefix
    directory = reachable_directory(private / "servers" / "one", account, mirrors)
    assert account.barrier(directory) is None
    subprocess.run(["chmod", "-R", "u+w", hidden], check=True)
    subprocess.run(["rm", "-rf", hidden], check=True)
    other = private / "other"
    subprocess.run(["cp", "-a", postgres.prefix, other], check=True)
    with monkeypatch.context() as killed:
        killed.setattr("shutil.rmtree", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            reachable_release(replace(postgres, prefix=other), account, mirrors)
    assert not installed.prefix.exists(), "a kill in the middle leaves no half of a mirror in its place"
    reachable_release(replace(postgres, prefix=other), account, mirrors)
    assert not installed.prefix.exists(), "a mirror goes when its release is gone"
