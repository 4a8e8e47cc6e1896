"""Data that is prepared twice is the same data: where it is not, two releases differ by how their data came out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runners.engines import Engine, Installed
from runners.sessions.prepared_data import DataRecipe, prepare
from runners.settings import load_profile
from runners.settings.dbms import RenderedOptions

CONFIGS = Path(__file__).parents[3] / "configs"

pytestmark = pytest.mark.e2e

INNODB_PAGES = (
    "SELECT index_name, stat_name, stat_value FROM mysql.innodb_index_stats "
    "WHERE database_name = '{db}' AND stat_name IN ('n_leaf_pages', 'size') ORDER BY 1, 2"
)
POSTGRES_PAGES = (
    "SELECT relname, 'size', pg_relation_size(oid) / 8192 FROM pg_class WHERE relname ~ '^(sbtest|k_)' ORDER BY 1"
)


def pages(engine: Engine) -> dict[tuple[str, str], int]:
    """Pages of every index, by its name and what was counted."""
    if engine.connection.driver == "pgsql":
        return {(str(index), str(what)): int(count) for index, what, count in engine.query(POSTGRES_PAGES)}
    database = engine.connection.database
    for table in [row[0] for row in engine.query(f"SHOW TABLES IN {database}")]:
        engine.query(f"ANALYZE TABLE {database}.{table}")
    rows = engine.query(INNODB_PAGES.format(db=database))
    return {(str(index), str(what)): int(count) for index, what, count in rows}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dbms", "line", "source"),
    [("postgres", "17", "maven"), ("mysql", "9.7", "debian-sid"), ("mariadb", "11.4", "maven")],
)
def test_data_prepared_twice_has_the_same_pages(
    make: Callable[..., Engine],
    release: Callable[..., Installed],
    rendered: Callable[..., RenderedOptions],
    place: Path,
    dbms: str,
    line: str,
    source: str,
) -> None:
    profile = load_profile("instructions", CONFIGS)
    installed = release(dbms, line, source)
    recipe = DataRecipe(profile.scale, profile.age_updates, 1)
    pages_of_turns = []
    for turn in ("once", "again"):
        with make(installed, rendered(installed, "default", "instructions")) as engine:
            prepared = prepare(engine, recipe, (), place / turn, needed=0)
            engine.restore(prepared.path)
            engine.start()
            engine.wait_ready()
            pages_of_turns.append(pages(engine))
            engine.stop()
    once, again = pages_of_turns
    assert once and once.keys() == again.keys()
    assert again == pytest.approx(once, rel=0.002)
