"""Command lines carry the test's options, and the catalogue names only options that the scripts know."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from runners.engines import Connection
from runners.settings import Scale, load_benchmark
from runners.sysbench.commands import count_command, prepare_command, run_command
from runners.sysbench.scripts import SCRIPTS, scripts_digest

CATALOGUE = load_benchmark("sysbench", Path(__file__).parents[3] / "configs")
POSTGRES = Connection("pgsql", Path("/run/pg"), 5432, "pointdrop", "postgres")
MYSQL = Connection("mysql", Path("/run/my/mysql.sock"), 0, "pointdrop", "pointdrop")
SCALE = Scale(tables=8, rows=10_000, threads=12)


def test_a_run_resets_its_counters_after_the_warm_up() -> None:
    (test,) = CATALOGUE.select(("points-notcovered-si.range100",))
    command = run_command(POSTGRES, test, SCALE, seconds=300, warmup_s=30, seed=5)
    assert {"--time=330", "--report-checkpoints=30", "--threads=12", "--on-id=off", "--covered=off"} < set(command)
    assert "--report-checkpoints=0" not in run_command(POSTGRES, test, SCALE, seconds=300, warmup_s=0, seed=5)


def test_a_seed_is_never_zero_which_sysbench_takes_for_the_clock() -> None:
    (test,) = CATALOGUE.select(("scan.range100",))
    for seed in (0, 2**31 - 1):
        command = run_command(MYSQL, test, SCALE, seconds=1, warmup_s=0, seed=seed)
        assert "--rand-seed=0" not in command


def test_counting_uses_one_connection_whatever_the_server() -> None:
    (test,) = CATALOGUE.select(("insert.range100",))
    command = count_command(MYSQL, test, SCALE, pid=7, events=20, vgdb="vgdb --x", seed=1)
    assert {"--threads=1", "--events=21", "--time=0", "--count-pid=7", "--count-vgdb=vgdb --x"} < set(command)


def test_the_socket_is_named_as_each_driver_wants_it() -> None:
    assert "--pgsql-host=/run/pg" in prepare_command(POSTGRES, SCALE, seed=1)
    assert "--mysql-socket=/run/my/mysql.sock" in prepare_command(MYSQL, SCALE, seed=1)


def test_tables_load_in_parallel_but_never_with_idle_threads() -> None:
    assert "--threads=8" in prepare_command(POSTGRES, SCALE, seed=1)


def test_every_option_of_the_catalogue_is_one_of_the_scripts() -> None:
    options = set(re.findall(r"^   (\w+) = \{ \"", (SCRIPTS / "pointdrop.lua").read_text(), re.MULTILINE))
    assert "range_size" in options
    assert {option for test in CATALOGUE.tests for option in test.options} <= options


def test_the_scripts_digest_is_stable() -> None:
    assert scripts_digest() == scripts_digest()
    assert len(shlex.quote(scripts_digest())) == 16
