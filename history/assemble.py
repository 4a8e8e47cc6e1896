"""Measurements into series, a batch of series at a time, so that memory does not grow with the history.

Only blocks that count are read. Which blocks those are is settled once, at the start: rows never change, so what is
read later agrees with it, and no transaction stays open between two series.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, Engine, or_, select

from history import schema
from history.database import reading
from history.layout import CountedBlock, Layout
from history.model import MAJORS, Better, LineKey, Series, SeriesKey
from history.queries import chosen, counts, joined, lines, releases
from history.versions import build_mark, version_key

#: Values read with one query, about, which bounds the memory; and series, at most.
BATCH_VALUES = 200_000
BATCH_SERIES = 128
#: Rows taken from the driver at a time.
ROWS = 1_000
#: Up to so many blocks are named in a query; above, all blocks of its series are read and the others dropped.
NAMED_BLOCKS = 400
#: Of so many blocks, each series has a query of its own: two columns are read a quarter faster than three.
LONG_SERIES = 500


#: Of one series: the blocks and the values, in the same order.
Columns = tuple[tuple[int, ...], tuple[float, ...]]


class SeriesRow(NamedTuple):
    """One row of the table `series`."""

    pk: int
    line: str
    test: str
    metric: str
    group: str
    unit: str
    better: Better


class LineIndex(NamedTuple):
    """Everything about one line but its values."""

    key: LineKey
    layout: Layout
    rows: list[SeriesRow]


def read_series(engine: Engine, wanted: dict[str, str | None], until: str | None) -> Iterator[Series]:
    """Series that have values, line by line, by test and metric. `wanted` names parts of the key."""
    with reading(engine) as connection:
        every = lines(connection, wanted.get("dbms"))
    for key in every:
        if all(wanted.get(name) in (None, value) for name, value in key._asdict().items()):
            with reading(engine) as connection:
                line = describe(connection, key, wanted, until)
            yield from _values(engine, line)


def describe(connection: Connection, key: LineKey, wanted: Mapping[str, str | None], until: str | None) -> LineIndex:
    """The blocks, releases and series of a line; of `majors`, those of the newest release of each line."""
    dbms, name = key.dbms, key.line
    candidates = blocks = _blocks(connection, key)
    order_of = {version: version_key(dbms, version) for version in {block.version for block in candidates.values()}}
    if until is not None:
        last = version_key(dbms, until)
        blocks = {pk: block for pk, block in candidates.items() if order_of[block.version] <= last}
    all_releases = releases(connection, dbms)
    if name == MAJORS:
        newest: dict[tuple[str, str], str] = {}
        for block in blocks.values():
            lane = (block.line, block.lane)
            # A line goes on with the builds of one builder: another's stands for it where there is no other.
            newest[lane] = max(
                newest.get(lane, block.version),
                block.version,
                key=lambda version: (not build_mark(version), order_of[version]),
            )
        blocks = {pk: block for pk, block in blocks.items() if newest[block.line, block.lane] == block.version}
        order = sorted({block.version for block in blocks.values()}, key=order_of.__getitem__)
    else:
        blocks = {pk: block for pk, block in blocks.items() if block.line == name}
        order = [release.version for release in all_releases if release.line == name]
    order = list(dict.fromkeys((*order, *(block.version for block in blocks.values()))))
    sessions = {block.session_id for block in blocks.values()}
    controls = {
        pk: block for pk, block in candidates.items() if block.version == block.control and block.session_id in sessions
    }
    of_lines = {block.line for block in (*blocks.values(), *controls.values())}
    position = {version: number for number, version in enumerate(order)}
    if name == MAJORS:
        # A line has one place, whichever of its releases stands there in a lane.
        line_of_version = {block.version: block.line for block in blocks.values()}
        place = {line: number for number, line in enumerate(dict.fromkeys(line_of_version[v] for v in order))}
        position = {version: place[line_of_version[version]] for version in order}
    layout = Layout(blocks, controls, position, {release.version: release.released for release in all_releases})
    tests = {name: value for name in ("test", "metric") if (value := wanted.get(name)) is not None}
    return LineIndex(key, layout, _rows(connection, key, of_lines, tests))


def _blocks(connection: Connection, key: LineKey) -> dict[int, CountedBlock]:
    """Blocks that count, of a line and of the controls, in the order of sessions and starts; of `majors`, all."""
    block, run, session, release = schema.block.c, schema.run.c, schema.session.c, schema.release.c
    query = (
        select(
            block.pk,
            block.id,
            release.version,
            release.line,
            run.lane,
            session.id,
            schema.host.c.name,
            schema.fingerprint.c.digest,
            session.control,
            session.started,
            block.started,
        )
        .select_from(
            joined()
            .join(schema.epoch, schema.epoch.c.pk == session.epoch_pk)
            .join(schema.host, schema.host.c.pk == schema.epoch.c.host_pk)
            .join(schema.fingerprint, schema.fingerprint.c.pk == schema.epoch.c.fingerprint_pk)
        )
        .where(counts(connection), *chosen({**key._asdict(), "line": None}))
    )
    if key.line != MAJORS:
        query = query.where(or_(release.line == key.line, release.version == session.control))
    # Sorted here, since two databases may compare texts in two ways.
    rows = sorted(connection.execute(query), key=lambda row: (row[-2], row[5], row[-1], row[1]))
    return {row[0]: CountedBlock(*row[:-2]) for row in rows}


def _rows(connection: Connection, key: LineKey, of_lines: Collection[str], tests: Mapping[str, str]) -> list[SeriesRow]:
    table = schema.series.c
    parts = {**key._asdict(), **tests}
    del parts["line"]
    query = select(table.pk, table.line, table.test, table.metric, table.test_group, table.unit, table.better).where(
        table.line.in_(of_lines), *(table[name] == value for name, value in parts.items())
    )
    rows = [SeriesRow(*row) for row in connection.execute(query)]
    return sorted(rows, key=lambda row: (row.test, row.metric, row.pk))


def _batches(rows: Iterable[SeriesRow], blocks: int) -> Iterator[list[list[SeriesRow]]]:
    """Rows of one test and metric together, so many at a time that `blocks` values each stay below the bound."""
    most = max(1, min(BATCH_SERIES, BATCH_VALUES // max(blocks, 1)))
    same: dict[tuple[str, str], list[SeriesRow]] = {}
    for row in rows:
        if (row.test, row.metric) not in same and len(same) >= most:
            yield list(same.values())
            same = {}
        same.setdefault((row.test, row.metric), []).append(row)
    if same:
        yield list(same.values())


def _values(engine: Engine, line: LineIndex) -> Iterator[Series]:
    layout, own = line.layout, line.key.line
    if not layout.blocks:
        return
    for batch in _batches(line.rows, len(layout.blocks)):
        own_series = [row.pk for rows in batch for row in rows if own in (MAJORS, row.line)]
        control_series = [row.pk for rows in batch for row in rows if own not in (MAJORS, row.line)]
        with reading(engine) as connection, _collector_paused():
            columns = _read(connection, own_series, layout.blocks.keys() | layout.controls.keys(), few=own == MAJORS)
            columns |= _read(connection, control_series, layout.controls.keys(), few=True)
            batch_series = [
                _series(line, rows[-1], [columns[row.pk] for row in rows if row.pk in columns]) for rows in batch
            ]
        yield from (series for series in batch_series if series is not None)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No search for cycles while a batch is made: there are none in it, and it took half of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _read(connection: Connection, series: list[int], blocks: Collection[int], *, few: bool) -> dict[int, Columns]:
    """Values by series, of the blocks named and perhaps of others.

    Straight from the driver, and into columns while the rows are still in the processor's cache: an object a row costs
    more here than everything else together. Most series are of the same blocks, which are kept once.
    """
    if not series or not blocks:
        return {}
    columns: dict[int, Columns] = {}
    same: dict[tuple[int, ...], tuple[int, ...]] = {}
    named = f"AND block_pk IN ({_numbers(blocks)})" if few and len(blocks) <= NAMED_BLOCKS else ""
    if len(blocks) >= LONG_SERIES:
        for pk in series:
            query = f"SELECT block_pk, value FROM measurement WHERE series_pk = {int(pk)} {named} ORDER BY 1"
            if rows := connection.exec_driver_sql(query).cursor.fetchall():
                of_blocks, values = zip(*rows, strict=True)
                columns[pk] = (same.setdefault(of_blocks, of_blocks), values)
        return columns
    query = f"SELECT series_pk, block_pk, value FROM measurement WHERE series_pk IN ({_numbers(series)}) {named}"
    cursor = connection.exec_driver_sql(f"{query} ORDER BY 1, 2").cursor
    every = chain.from_iterable(iter(partial(cursor.fetchmany, ROWS), []))
    for pk, group in groupby(every, key=itemgetter(0)):
        _, of_blocks, values = zip(*group, strict=True)
        columns[pk] = (same.setdefault(of_blocks, of_blocks), values)
    return columns


def _numbers(pks: Iterable[int]) -> str:
    """Row numbers as SQL; `int` lets nothing else through."""
    return ",".join(str(int(pk)) for pk in pks)


def _series(line: LineIndex, newest: SeriesRow, columns: list[Columns]) -> Series | None:
    """One series, or None when no block of the line has a value of it. Group, unit and direction are the newest."""
    if not columns:
        return None
    blocks, values = columns[0] if len(columns) == 1 else [tuple(chain(*of)) for of in zip(*columns, strict=True)]
    arrangement = line.layout.arrangement(blocks)
    if not arrangement.releases:
        return None
    return Series.model_construct(
        key=SeriesKey(**line.key._asdict(), test=newest.test, metric=newest.metric),
        group=newest.group,
        unit=newest.unit,
        better=newest.better,
        points=line.layout.points(arrangement, values),
        control={session: at(values) for session, at in arrangement.control.items()},
        control_versions=arrangement.control_versions,
        sessions=arrangement.sessions,
    )
