"""Rows back into values: sessions, runs, blocks and what belongs to them. Each function takes an open connection."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, TypedDict

from sqlalchemy import ColumnElement, Connection, and_, func, not_, select

from history import schema
from history.model import MAJORS, Block, Fingerprint, FunctionCost, Measurement, Release, Run, Session, StatementPlan
from history.records import unpack
from history.versions import version_key

#: (dbms, line, server, config, benchmark)
LineKey = tuple[str, str, str, str, str]


class RunFilters(TypedDict, total=False):
    """Parts of what a run is of, where a choice is to be narrower."""

    server: str | None
    config: str | None
    benchmark: str | None
    lane: str | None


_session, _run, _block, _release = schema.session.c, schema.run.c, schema.block.c, schema.release.c


#: What results can be chosen by.
FILTERS: dict[str, Any] = {
    "id": _run.id,
    "session_id": _session.id,
    "dbms": _release.dbms,
    "line": _release.line,
    "version": _release.version,
    "server": _session.server,
    "config": _run.config,
    "benchmark": _run.benchmark,
    "lane": _run.lane,
}


def _chosen(filters: Mapping[str, Any]) -> Iterator[ColumnElement[bool]]:
    return (FILTERS[name] == value for name, value in filters.items() if value is not None)


def counts() -> ColumnElement[bool]:
    """The condition under which a block counts: it is ok, and neither it nor its run or session is superseded."""
    gone = schema.supersession.c

    def superseded(kind: str, name: Any) -> ColumnElement[bool]:
        return select(gone.pk).where(gone.kind == kind, gone.target_id == name).exists()

    return and_(
        _block.status == "ok",
        not_(superseded("block", _block.id)),
        not_(superseded("run", _run.id)),
        not_(superseded("session", _session.id)),
    )


def joined() -> Any:
    """Blocks with their run, session and release."""
    return (
        schema.block.join(schema.run, _run.pk == _block.run_pk)
        .join(schema.session, _session.pk == _run.session_pk)
        .join(schema.release, _release.pk == _run.release_pk)
    )


def sessions(connection: Connection) -> list[Session]:
    """By start, then id."""
    query = (
        select(
            _session.id,
            schema.host.c.name.label("host"),
            _session.server,
            _session.plan,
            schema.fingerprint.c.facts,
            _session.seed,
            _session.started,
            _session.control,
        )
        .select_from(schema.session)
        .join(schema.epoch, schema.epoch.c.pk == _session.epoch_pk)
        .join(schema.host, schema.host.c.pk == schema.epoch.c.host_pk)
        .join(schema.fingerprint, schema.fingerprint.c.pk == schema.epoch.c.fingerprint_pk)
    )
    stored = []
    for row in connection.execute(query).mappings():
        values = dict(row)
        facts = json.loads(values.pop("facts"))
        stored.append(Session(**values, fingerprint=Fingerprint(facts=facts)))
    return sorted(stored, key=lambda session: (session.started, session.id))


def release_of(row: Any) -> Release:
    """A release from a row that has its columns."""
    return Release(
        dbms=row.dbms,
        version=row.version,
        line=row.line,
        build=row.build,
        digest=row.archive_digest,
        released=row.released,
        source=row.source,
    )


RELEASE_COLUMNS = (
    _release.dbms,
    _release.version,
    _release.line,
    _release.build,
    _release.archive_digest,
    _release.released,
    _release.source,
)


def releases(connection: Connection, dbms: str | None = None) -> list[Release]:
    """Every release that is pinned or was met in a run, one a version, in version order.

    A pin is believed before what a run said.
    """
    query = select(*RELEASE_COLUMNS, _release.pinned).order_by(_release.pinned.desc(), _release.pk)
    query = query.where(_release.dbms == dbms) if dbms is not None else query
    by_version: dict[tuple[str, str], Release] = {}
    for row in connection.execute(query):
        by_version.setdefault((row.dbms, row.version), release_of(row))
    return [by_version[name] for name in sorted(by_version, key=lambda name: (name[0], version_key(*name)))]


def pins(connection: Connection) -> list[Release]:
    """Every pinned build, in the order of the pins."""
    query = select(*RELEASE_COLUMNS).where(_release.pinned).order_by(_release.pk)
    return [release_of(row) for row in connection.execute(query)]


def runs(connection: Connection, **filters: str | None) -> Iterator[Run]:
    """In the order they were stored. Filters: id, session_id, dbms, line, version, server, config, benchmark, lane."""
    query = (
        select(
            _run.id,
            _session.id.label("session_id"),
            *RELEASE_COLUMNS,
            _run.config,
            _run.benchmark,
            _run.profile,
            _run.lane,
            schema.bundle.c.content,
        )
        .select_from(schema.run)
        .join(schema.session, _session.pk == _run.session_pk)
        .join(schema.release, _release.pk == _run.release_pk)
        .join(schema.bundle, schema.bundle.c.pk == _run.bundle_pk)
        .where(*_chosen(filters))
        .order_by(_run.pk)
    )
    for row in connection.execute(query):
        yield Run(
            id=row.id,
            session_id=row.session_id,
            release=release_of(row),
            config=row.config,
            benchmark=row.benchmark,
            profile=row.profile,
            lane=row.lane,
            **unpack(row.content),
        )


def _measurements(connection: Connection, run_id: str) -> dict[int, list[Measurement]]:
    """All measurements of a run's blocks, by block number.

    The run says which series they can be in, and the key of `measurement` begins with the series.
    """
    series, value = schema.series.c, schema.measurement.c
    of_run = (
        select(_block.pk, _release.dbms, _release.line, _session.server, _run.config, _run.benchmark)
        .select_from(joined())
        .where(_run.id == run_id)
        .subquery()
    )
    query = (
        select(
            value.block_pk,
            series.test,
            series.test_group.label("group"),
            series.metric,
            value.value,
            series.unit,
            series.better,
            value.operations,
            value.warnings,
        )
        .select_from(of_run)
        .join(
            schema.series,
            and_(*(series[name] == of_run.c[name] for name in ("dbms", "line", "server", "config", "benchmark"))),
        )
        .join(schema.measurement, and_(value.series_pk == series.pk, value.block_pk == of_run.c.pk))
    )
    measurements: dict[int, list[Measurement]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        values = dict(row)
        pk = values.pop("block_pk")
        values["warnings"] = json.loads(values["warnings"] or "[]")
        measurements[pk].append(Measurement(**values))
    return measurements


def blocks(connection: Connection, run_id: str, *, details: bool = True, measurements: bool = True) -> list[Block]:
    """By number. Measurements by test, then metric. Without `details`, no samples, functions and plans."""
    rows = connection.execute(
        select(schema.block)
        .join(schema.run, _run.pk == _block.run_pk)
        .where(_run.id == run_id)
        .order_by(_block.number, _block.pk)
    ).all()
    values = _measurements(connection, run_id) if rows and measurements else {}
    stored_blocks = []
    for row in rows:
        block_details: dict[str, dict[str, Any]] = defaultdict(dict)
        if details:
            query = select(schema.detail).where(schema.detail.c.block_pk == row.pk)
            for detail in connection.execute(query):
                block_details[detail.kind][detail.test] = unpack(detail.content)
        of_block = sorted(values.get(row.pk, ()), key=attrgetter("test", "metric"))
        stored_blocks.append(
            Block(
                id=row.id,
                run_id=run_id,
                number=row.number,
                started=row.started,
                ended=row.ended,
                status=row.status,
                reason=row.reason,
                measurements=tuple(of_block),
                warnings=tuple(json.loads(row.warnings)),
                **block_details,
            )
        )
    return stored_blocks


def block_ids(connection: Connection, session_id: str) -> set[str]:
    """Of every block of a session, whatever its status."""
    query = (
        select(_block.id)
        .join(schema.run, _run.pk == _block.run_pk)
        .join(schema.session, _session.pk == _run.session_pk)
        .where(_session.id == session_id)
    )
    return set(connection.execute(query).scalars())


def measured(connection: Connection, **wanted: str | None) -> dict[str, int]:
    """Blocks that count, by version. Filters: dbms, config, benchmark, lane, server."""
    query = (
        select(_release.version, func.count())
        .select_from(joined())
        .where(counts(), *_chosen(wanted))
        .group_by(_release.version)
    )
    blocks_by_version: dict[str, int] = dict(connection.execute(query).all())
    dbms = wanted.get("dbms") or ""
    return {
        version: blocks_by_version[version]
        for version in sorted(blocks_by_version, key=lambda version: version_key(dbms, version))
    }


def lines(connection: Connection, dbms: str | None = None) -> list[LineKey]:
    """Lines with blocks that count, in version order, and `majors` where there are two or more, last."""
    query = (
        select(_release.dbms, _release.line, _session.server, _run.config, _run.benchmark)
        .select_from(joined())
        .where(counts())
        .distinct()
    )
    query = query.where(_release.dbms == dbms) if dbms is not None else query
    keys = [(row[0], row[1], row[2], row[3], row[4]) for row in connection.execute(query)]
    by_place: dict[tuple[str, ...], int] = defaultdict(int)
    for name, _, *place in keys:
        by_place[name, *place] += 1
    keys += [(place[0], MAJORS, place[1], place[2], place[3]) for place, count in by_place.items() if count > 1]
    return sorted(keys, key=lambda key: (key[0], key[1] == MAJORS, version_key(key[0], key[1]), key[2:]))


def newest_detail(connection: Connection, kind: str, dbms: str, version: str, test: str, filters: RunFilters) -> Any:
    """The newest stored detail of one test of a release, over blocks that count; None when there is none."""
    detail = schema.detail.c
    query = (
        select(detail.content)
        .select_from(joined().join(schema.detail, detail.block_pk == _block.pk))
        .where(
            detail.kind == kind,
            detail.test == test,
            _release.dbms == dbms,
            _release.version == version,
            counts(),
            *_chosen(filters),
        )
        .order_by(_block.started.desc(), _block.id.desc())
        .limit(1)
    )
    content = connection.execute(query).scalar_one_or_none()
    return None if content is None else unpack(content)


def functions(
    connection: Connection, dbms: str, version: str, test: str, filters: RunFilters
) -> tuple[FunctionCost, ...]:
    """Costs of the newest block that has them, the most expensive function first; empty without any."""
    costs = newest_detail(connection, "functions", dbms, version, test, filters)
    return tuple(FunctionCost.model_validate(cost) for cost in costs or ())


def plans(connection: Connection, dbms: str, version: str, test: str, filters: RunFilters) -> tuple[StatementPlan, ...]:
    """Plans of the newest block that has them; empty without any."""
    stored_plans = newest_detail(connection, "plans", dbms, version, test, filters)
    return tuple(StatementPlan.model_validate(plan) for plan in stored_plans or ())


def samples(connection: Connection, block_id: str) -> dict[str, dict[str, tuple[float, ...]]]:
    """One block's values a second, by test, then metric."""
    detail = schema.detail.c
    query = (
        select(detail.test, detail.content)
        .join(schema.block, _block.pk == detail.block_pk)
        .where(_block.id == block_id, detail.kind == "samples")
        .order_by(detail.test)
    )
    return {
        test: {metric: tuple(values) for metric, values in unpack(content).items()}
        for test, content in connection.execute(query)
    }
