"""Measurements into series, a batch of series at a time, so that memory does not grow with the history.

Only blocks that count are read. Which blocks those are is settled once, at the start: rows never change, so what is
read later agrees with it, and no transaction stays open between two series.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Engine, func, select

from history import schema
from history.database import reading
from history.model import MAJORS, Better, BlockValue, Point, Series, SeriesKey
from history.reading import LineKey, counts, joined, lines, releases
from history.versions import version_key

#: Series read with one query.
BATCH = 128
#: Up to so many blocks are named in a query; above, all blocks of its series are read and the others dropped.
NAMED_BLOCKS = 400


class Ran(NamedTuple):
    """A block that counts, as its values see it."""

    pk: int
    block_id: str
    version: str
    line: str
    lane: str
    session_id: str
    host: str
    epoch: str
    control: str


class SeriesRow(NamedTuple):
    """One row of the table `series`."""

    pk: int
    line: str
    test: str
    metric: str
    group: str
    unit: str
    better: Better


class Line(NamedTuple):
    """Everything about one line but its values."""

    key: LineKey
    blocks: dict[int, Ran]
    """By number, in an order that does not depend on the order of arrival."""
    controls: dict[int, Ran]
    """Blocks of the control releases of the sessions in `blocks`; some may be in `blocks` too."""
    position: Mapping[str, int]
    released: Mapping[str, date | None]
    rows: list[SeriesRow]


def read_series(engine: Engine, wanted: dict[str, str | None], until: str | None) -> Iterator[Series]:
    """Series that have values, line by line, by test and metric. `wanted` names parts of the key."""
    with reading(engine) as connection:
        every = lines(connection, wanted.get("dbms"))
    names = ("dbms", "line", "server", "config", "benchmark")
    for key in every:
        if all(wanted.get(name) in (None, value) for name, value in zip(names, key, strict=True)):
            with reading(engine) as connection:
                line = describe(connection, key, wanted.get("test"), wanted.get("metric"), until)
            yield from _values(engine, line)


def describe(connection: Connection, key: LineKey, test: str | None, metric: str | None, until: str | None) -> Line:
    """The blocks, releases and series of a line; of `majors`, those of the newest release of each line."""
    dbms, name = key[0], key[1]
    place = _blocks(connection, key)
    if until is not None:
        last = version_key(dbms, until)
        kept = {pk: one for pk, one in place.items() if version_key(dbms, one.version) <= last}
    else:
        kept = place
    known = releases(connection, dbms)
    if name == MAJORS:
        newest: dict[tuple[str, str], str] = {}
        for one in kept.values():
            spot = (one.line, one.lane)
            newest[spot] = max(newest.get(spot, one.version), one.version, key=lambda text: version_key(dbms, text))
        kept = {pk: one for pk, one in kept.items() if newest[one.line, one.lane] == one.version}
        order = sorted({one.version for one in kept.values()}, key=lambda text: version_key(dbms, text))
    else:
        kept = {pk: one for pk, one in kept.items() if one.line == name}
        order = [one.version for one in known if one.line == name]
    order += [one for one in dict.fromkeys(ran.version for ran in kept.values()) if one not in order]
    sessions = {one.session_id for one in kept.values()}
    controls = {pk: one for pk, one in place.items() if one.version == one.control and one.session_id in sessions}
    of_lines = {one.line for one in (*kept.values(), *controls.values())}
    return Line(
        key,
        kept,
        controls,
        {version: position for position, version in enumerate(order)},
        {one.version: one.released for one in known},
        _rows(connection, key, of_lines, test, metric),
    )


def _blocks(connection: Connection, key: LineKey) -> dict[int, Ran]:
    """Blocks that count, of all lines of a place, in the order of their sessions and starts."""
    dbms, _, server, config, benchmark = key
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
        .where(
            counts(),
            release.dbms == dbms,
            session.server == server,
            run.config == config,
            run.benchmark == benchmark,
        )
    )
    # Sorted here, since two databases may compare texts in two ways.
    found = sorted(connection.execute(query), key=lambda row: (row[-2], row[5], row[-1], row[1]))
    return {row[0]: Ran(*row[:-2]) for row in found}


def _rows(
    connection: Connection, key: LineKey, of_lines: Collection[str], test: str | None, metric: str | None
) -> list[SeriesRow]:
    table = schema.series.c
    dbms, _, server, config, benchmark = key
    query = select(table.pk, table.line, table.test, table.metric, table.test_group, table.unit, table.better).where(
        table.dbms == dbms,
        table.server == server,
        table.config == config,
        table.benchmark == benchmark,
        table.line.in_(of_lines),
    )
    query = query.where(table.test == test) if test is not None else query
    query = query.where(table.metric == metric) if metric is not None else query
    found = [SeriesRow(*row) for row in connection.execute(query)]
    return sorted(found, key=lambda one: (one.test, one.metric, one.pk))


def _batches(rows: Iterable[SeriesRow]) -> Iterator[list[list[SeriesRow]]]:
    """Rows of one test and metric together, BATCH of them at a time."""
    same: dict[tuple[str, str], list[SeriesRow]] = {}
    for row in rows:
        if (row.test, row.metric) not in same and len(same) >= BATCH:
            yield list(same.values())
            same = {}
        same.setdefault((row.test, row.metric), []).append(row)
    if same:
        yield list(same.values())


def _values(engine: Engine, line: Line) -> Iterator[Series]:
    if not line.blocks:
        return
    rank = {pk: number for number, pk in enumerate(line.blocks)}
    for batch in _batches(line.rows):
        own = line.key[1]
        here = [row.pk for rows in batch for row in rows if own in (MAJORS, row.line)]
        there = [row.pk for rows in batch for row in rows if own not in (MAJORS, row.line)]
        with reading(engine) as connection:
            values = _read(connection, here, line.blocks.keys() | line.controls.keys(), few=own == MAJORS)
            values |= _read(connection, there, line.controls.keys(), few=True)
        for rows in batch:
            found = [pair for row in rows for pair in values.get(row.pk, ())]
            if one := _series(line, rows, found, rank):
                yield one


def _read(
    connection: Connection, series: list[int], blocks: Collection[int], *, few: bool
) -> dict[int, list[tuple[int, float]]]:
    """(block, value) by series, of the blocks named and perhaps of others."""
    if not series or not blocks:
        return {}
    table = schema.measurement.c
    conditions: list[ColumnElement[bool]] = [table.series_pk.in_(series)]
    if few and len(blocks) <= NAMED_BLOCKS:
        conditions.append(table.block_pk.in_(blocks))
    found: dict[int, list[tuple[int, float]]] = defaultdict(list)
    query = select(table.series_pk, table.block_pk, table.value).where(*conditions)
    for series_pk, block_pk, value in connection.execute(query):
        found[series_pk].append((block_pk, value))
    return found


def _series(
    line: Line, rows: list[SeriesRow], found: list[tuple[int, float]], rank: Mapping[int, int]
) -> Series | None:
    """One series, or None when no block of the line has a value of it. Group, unit and direction are the newest."""
    values: dict[str, list[BlockValue]] = defaultdict(list)
    control: dict[str, list[float]] = defaultdict(list)
    last = max(rank.values()) + 1
    for block_pk, value in sorted(found, key=lambda pair: (rank.get(pair[0], last), pair[0])):
        one = line.blocks.get(block_pk)
        if one is not None:
            values[one.version].append(
                BlockValue(
                    value=value, block_id=one.block_id, session_id=one.session_id, host=one.host, epoch=one.epoch
                )
            )
        if block_pk in line.controls:
            control[line.controls[block_pk].session_id].append(value)
    if not values:
        return None
    met = {one.session_id for series in values.values() for one in series}
    newest = rows[-1]
    dbms, name, server, config, benchmark = line.key
    key = SeriesKey(
        dbms=dbms, line=name, server=server, config=config, benchmark=benchmark, test=newest.test, metric=newest.metric
    )
    return Series(
        key=key,
        group=newest.group,
        unit=newest.unit,
        better=newest.better,
        points=tuple(
            Point(
                version=version,
                position=line.position[version],
                values=tuple(values[version]),
                released=line.released.get(version),
            )
            for version in sorted(values, key=line.position.__getitem__)
        ),
        control={session: tuple(control[session]) for session in sorted(control) if session in met},
    )


def count_measurements(connection: Connection) -> int:
    """All values stored, also of blocks that do not count."""
    return int(connection.execute(select(func.count()).select_from(schema.measurement)).scalar_one())
