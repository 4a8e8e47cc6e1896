"""Measurements into series, a batch of series at a time, so that memory does not grow with the history.

Only blocks that count are read. Which blocks those are is settled once, at the start: rows never change, so what is
read later agrees with it, and no transaction stays open between two series.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection, Engine, select

from history import schema
from history.database import reading
from history.model import MAJORS, Better, BlockValue, Point, Series, SeriesKey
from history.reading import LineKey, counts, joined, lines, releases
from history.versions import version_key

#: Series read with one query.
BATCH = 128
#: Rows taken from the driver at a time.
ROWS = 10_000
#: Up to so many blocks are named in a query; above, all blocks of its series are read and the others dropped.
NAMED_BLOCKS = 400


#: (series, block, value), as the driver gives them.
Read = tuple[int, int, float]


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
    control_rank: Mapping[int, int]
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
        {pk: number for number, pk in enumerate(controls)},
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
    own = line.key[1]
    order = _Order(line)
    for batch in _batches(line.rows):
        here = [row.pk for rows in batch for row in rows if own in (MAJORS, row.line)]
        there = [row.pk for rows in batch for row in rows if own not in (MAJORS, row.line)]
        with reading(engine) as connection:
            values = _read(connection, here, line.blocks.keys() | line.controls.keys(), few=own == MAJORS)
            values |= _read(connection, there, line.controls.keys(), few=True)
        for rows in batch:
            found = [one for row in rows for one in values.get(row.pk, ())]
            if one := _series(line, order, rows[-1], found):
                yield one


def _read(connection: Connection, series: list[int], blocks: Collection[int], *, few: bool) -> dict[int, list[Read]]:
    """Values by series, of the blocks named and perhaps of others."""
    if not series or not blocks:
        return {}
    conditions = [f"series_pk IN ({_numbers(series)})"]
    if few and len(blocks) <= NAMED_BLOCKS:
        conditions.append(f"block_pk IN ({_numbers(blocks)})")
    query = f"SELECT series_pk, block_pk, value FROM measurement WHERE {' AND '.join(conditions)} ORDER BY 1, 2"
    found: dict[int, list[Read]] = defaultdict(list)
    cursor = connection.exec_driver_sql(query).cursor
    # Straight from the driver: an object a row costs more here than everything else together.
    while rows := cursor.fetchmany(ROWS):
        for series_pk, group in groupby(rows, key=itemgetter(0)):
            found[series_pk].extend(group)
    return found


def _numbers(pks: Iterable[int]) -> str:
    """Row numbers as SQL; `int` lets nothing else through."""
    return ",".join(str(int(pk)) for pk in pks)


class _Order:
    """The line's blocks by rank: what is the same for every series, worked out once."""

    def __init__(self, line: Line) -> None:
        self.rank = {pk: number for number, pk in enumerate(line.blocks)}
        blocks = line.blocks.values()
        self.versions = sorted({one.version for one in blocks}, key=line.position.__getitem__)
        place = {version: number for number, version in enumerate(self.versions)}
        self.place = [place[one.version] for one in blocks]
        """By rank: where the block's release stands in `versions`."""
        self.names = [(one.block_id, one.session_id, one.host, one.epoch) for one in blocks]
        """By rank: a BlockValue without its value."""


def _series(line: Line, order: _Order, newest: SeriesRow, found: list[Read]) -> Series | None:
    """One series, or None when no block of the line has a value of it. Group, unit and direction are the newest.

    Values come from the store, where they were checked, so nothing is checked again here: this is the hot path.
    """
    rank, place, names = order.rank, order.place, order.names
    points: list[list[BlockValue]] = [[] for _ in order.versions]
    make = tuple.__new__
    any_value = False
    for at, value in sorted([(rank[block], value) for _, block, value in found if block in rank]):
        any_value = True
        points[place[at]].append(make(BlockValue, (value, *names[at])))
    if not any_value:
        return None
    dbms, name, server, config, benchmark = line.key
    key = SeriesKey(
        dbms=dbms, line=name, server=server, config=config, benchmark=benchmark, test=newest.test, metric=newest.metric
    )
    return Series.model_construct(
        key=key,
        group=newest.group,
        unit=newest.unit,
        better=newest.better,
        points=tuple(
            Point.model_construct(
                version=version,
                position=line.position[version],
                values=tuple(values),
                released=line.released.get(version),
            )
            for version, values in zip(order.versions, points, strict=True)
            if values
        ),
        control=_control(line, points, found),
    )


def _control(line: Line, points: list[list[BlockValue]], found: list[Read]) -> dict[str, tuple[float, ...]]:
    """Values of the control release by session, for sessions that are in the series."""
    control: dict[str, list[tuple[int, float]]] = defaultdict(list)
    if not line.controls:
        return {}
    for _, block, value in found:
        if block in line.controls:
            control[line.controls[block].session_id].append((line.control_rank[block], value))
    met = {one.session_id for values in points for one in values}
    return {name: tuple(value for _, value in sorted(control[name])) for name in sorted(control) if name in met}
