"""Rows back into values: sessions, runs, blocks and what belongs to them. Each function takes an open connection."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any, TypedDict, Unpack

from sqlalchemy import ColumnElement, Connection, and_, func, not_, or_, select

from history import schema
from history.model import HELD_MARK, MAJORS, METHOD, Block, Fingerprint, LineKey, Measurement, Release, Run, Session
from history.records import unpack
from history.versions import sort_versions, version_key


class RunFilters(TypedDict, total=False):
    """Parts of what a run is of, where a choice is to be narrower."""

    server: str | None
    config: str | None
    benchmark: str | None
    lane: str | None


class TimedFilters(RunFilters, total=False):
    """What takes the same time."""

    dbms: str | None
    profile: str | None


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
    "profile": _run.profile,
}
LINE_COLUMNS = tuple(FILTERS[name] for name in LineKey._fields)
RELEASE_COLUMNS = tuple(
    _release.archive_digest.label("digest") if name == "digest" else _release[name] for name in Release.model_fields
)


def chosen(filters: Mapping[str, Any]) -> Iterator[ColumnElement[bool]]:
    return (FILTERS[name] == value for name, value in filters.items() if value is not None)


def epochs_of_other_methods(connection: Connection) -> list[int]:
    """Epochs that measured by another method than `METHOD`: a test of the same name reported something else then, so
    that no control release joins its values with those of now."""
    query = select(schema.epoch.c.pk, schema.fingerprint.c.facts).join(
        schema.fingerprint, schema.fingerprint.c.pk == schema.epoch.c.fingerprint_pk
    )
    facts = {pk: json.loads(text) for pk, text in connection.execute(query)}
    return [pk for pk, known in facts.items() if "workload" in known and known.get("method") != METHOD]


def counts(connection: Connection) -> ColumnElement[bool]:
    """The condition under which a block counts: it is ok, measured by the method of now, and neither it nor its run or
    session is superseded."""
    gone = schema.supersession.c

    def superseded(kind: str, name: Any) -> ColumnElement[bool]:
        return select(gone.pk).where(gone.kind == kind, gone.target_id == name).exists()

    return and_(
        _block.status == "ok",
        not_(superseded("block", _block.id)),
        not_(superseded("run", _run.id)),
        not_(superseded("session", _session.id)),
        # Figures of others have no control, and methods of their own.
        or_(_session.control == "", _session.epoch_pk.not_in(epochs_of_other_methods(connection))),
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
    plain = [_session[name] for name in ("id", *schema.PLAIN["session"])]
    query = (
        select(*plain, schema.host.c.name.label("host"), schema.fingerprint.c.facts)
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
    """A release from a row that has RELEASE_COLUMNS."""
    return Release(**{name: getattr(row, name) for name in Release.model_fields})


def releases(connection: Connection, dbms: str | None = None) -> list[Release]:
    """Every release that is pinned or was met in a run, one a version, in version order.

    A pin is believed before what a run said.
    """
    query = select(*RELEASE_COLUMNS).where(*chosen({"dbms": dbms})).order_by(_release.pinned.desc(), _release.pk)
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
    plain, bundle = ("id", *schema.PLAIN["run"]), schema.bundle.c
    query = (
        select(*(_run[name] for name in plain), _session.id.label("session_id"), *RELEASE_COLUMNS, bundle.content)
        .select_from(schema.run)
        .join(schema.session, _session.pk == _run.session_pk)
        .join(schema.release, _release.pk == _run.release_pk)
        .join(schema.bundle, bundle.pk == _run.bundle_pk)
        .where(*chosen(filters))
        .order_by(_run.pk)
    )
    for row in connection.execute(query):
        values = {name: getattr(row, name) for name in plain}
        yield Run(**values, session_id=row.session_id, release=release_of(row), **unpack(row.content))


def _measurements(connection: Connection, run_id: str) -> dict[int, list[Measurement]]:
    """All measurements of a run's blocks, by block number.

    The run says which series they can be in, and the key of `measurement` begins with the series.
    """
    series, value = schema.series.c, schema.measurement.c
    of_run = select(_block.pk, *LINE_COLUMNS).select_from(joined()).where(_run.id == run_id).subquery()
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
        .join(schema.series, and_(*(series[name] == of_run.c[name] for name in LineKey._fields)))
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
    """By number. Measurements by test, then metric. Without `details`, no samples, functions, calls and plans."""
    rows = connection.execute(
        select(schema.block)
        .join(schema.run, _run.pk == _block.run_pk)
        .where(_run.id == run_id)
        .order_by(_block.number, _block.pk)
    ).all()
    values = _measurements(connection, run_id) if rows and measurements else {}
    stored_blocks = []
    for row in rows:
        fields: dict[str, Any] = {name: getattr(row, name) for name in ("id", *schema.PLAIN["block"])}
        fields["measurements"] = tuple(sorted(values.get(row.pk, ()), key=attrgetter("test", "metric")))
        if details:
            query = select(schema.detail).where(schema.detail.c.block_pk == row.pk)
            for detail in connection.execute(query):
                if detail.kind in schema.WHOLE_DETAIL_KINDS:
                    fields[detail.kind] = unpack(detail.content)
                else:
                    fields.setdefault(detail.kind, {})[detail.test] = unpack(detail.content)
        stored_blocks.append(Block(run_id=run_id, warnings=tuple(json.loads(row.warnings)), **fields))
    return stored_blocks


def timed_blocks(connection: Connection, host: str | None, newest: int, **filters: Unpack[TimedFilters]) -> list[Block]:
    """The newest blocks of `host` (of any when it is None) that came to their end and have phases; nothing else of them
    is read."""
    detail, columns = schema.detail.c, [_block[name] for name in ("id", "pk", *schema.PLAIN["block"])]
    of_host = [schema.host.c.name == host] if host is not None else []
    ended = (
        select(*columns, _run.id.label("run_id"))
        .select_from(
            joined()
            .join(schema.epoch, schema.epoch.c.pk == _session.epoch_pk)
            .join(schema.host, schema.host.c.pk == schema.epoch.c.host_pk)
        )
        .where(*of_host, _block.status != "failed", *chosen(filters))
        .where(select(detail.block_pk).where(detail.block_pk == _block.pk, detail.kind == "phases").exists())
        .order_by(_block.started.desc(), _block.pk.desc())
        .limit(newest)
        .subquery()
    )
    query = (
        select(ended, detail.test, detail.content)
        .join(schema.detail, and_(detail.block_pk == ended.c.pk, detail.kind == "phases"))
        .order_by(ended.c.started.desc(), ended.c.pk.desc())
    )
    fields: dict[str, dict[str, Any]] = {}
    for row in connection.execute(query):
        plain = {name: getattr(row, name) for name in ("id", "run_id", *schema.PLAIN["block"])}
        fields.setdefault(row.id, {**plain, "phases": {}})["phases"][row.test] = unpack(row.content)
    return [Block(**values) for values in fields.values()]


def block_ids(connection: Connection, session_id: str) -> set[str]:
    """Of every block of a session, whatever its status."""
    query = select(_block.id).select_from(joined()).where(_session.id == session_id)
    return set(connection.execute(query).scalars())


def measured(connection: Connection, **wanted: str | None) -> dict[str, int]:
    """Blocks that count, by version. Filters: dbms, config, benchmark, lane, server."""
    query = (
        select(_release.version, func.count())
        .select_from(joined())
        .where(counts(connection), *chosen(wanted))
        .group_by(_release.version)
    )
    blocks_by_version: dict[str, int] = dict(connection.execute(query).all())
    versions = sort_versions(wanted.get("dbms") or "", blocks_by_version)
    return {version: blocks_by_version[version] for version in versions}


def lines(connection: Connection, dbms: str | None = None) -> list[LineKey]:
    """Lines with blocks that count, in version order, and `majors` where there are two or more, last."""
    held = _run.config.contains(HELD_MARK, autoescape=True)  # the third arm of a boundary is nobody's line
    query = select(*LINE_COLUMNS).select_from(joined()).where(counts(connection), ~held, *chosen({"dbms": dbms}))
    query = query.distinct()
    keys = [LineKey(*row) for row in connection.execute(query)]
    lines_by_place = Counter(key._replace(line=MAJORS) for key in keys)
    keys += [key for key, count in lines_by_place.items() if count > 1]
    return sorted(keys, key=lambda key: (key.dbms, key.line == MAJORS, version_key(key.dbms, key.line), key[2:]))


def newest_details(
    connection: Connection, kind: str, dbms: str, version: str, test: str, filters: RunFilters
) -> list[Any]:
    """Functions, calls or plans of one test of a release, from the newest block that counts and has them, else none."""
    detail = schema.detail.c
    query = (
        select(detail.content)
        .select_from(joined().join(schema.detail, detail.block_pk == _block.pk))
        .where(
            detail.kind == kind,
            detail.test == test,
            _release.dbms == dbms,
            _release.version == version,
            counts(connection),
            *chosen(filters),
        )
        .order_by(_block.started.desc(), _block.id.desc())
        .limit(1)
    )
    content = connection.execute(query).scalar_one_or_none()
    return [] if content is None else list(unpack(content))


def settings(connection: Connection, run_id: str) -> dict[str, Any]:
    """What the server of a run's first block that has them said its options are; empty where none has."""
    query = (
        select(schema.detail.c.content)
        .select_from(joined().join(schema.detail, schema.detail.c.block_pk == _block.pk))
        .where(schema.detail.c.kind == "settings", _run.id == run_id)
        .order_by(_block.started, _block.id)
        .limit(1)
    )
    content = connection.execute(query).scalar_one_or_none()
    return {} if content is None else dict(unpack(content))


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
