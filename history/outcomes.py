"""What became of measurements: detections and their findings, events, issue links, and supersessions.

Same habits as `history.writing`: an open transaction, one value, True when it was new.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, ScalarSelect, func, select

from history import schema
from history.database import MIGRATION_LOCK
from history.errors import ConflictingRecord, InvalidRecord, UnknownSeries
from history.model import Finding, FindingEvent, IssueLink
from history.records import digest, pack, shown, text_of, unpacked
from history.writing import RowKeys, append_row, insert_new, stamp

#: The advisory lock under which PostgreSQL takes a detection: the one of migrations, and one more.
DETECTION_LOCK = MIGRATION_LOCK + 1


class Supersession(NamedTuple):
    """A correction: what no longer counts, what stands in its place if anything does, and why."""

    kind: str
    """`session`, `run` or `block`."""
    target_id: str
    reason: str
    replacement_id: str | None
    at: datetime


class Detection(NamedTuple):
    """One look at the whole history."""

    pk: int
    at: datetime
    settings_digest: str
    digest: str


def append_detection(
    connection: Connection, row_keys: RowKeys, findings: Sequence[Finding], settings_digest: str
) -> bool:
    """One detection with all its findings. The same findings under the same settings as last time add nothing.

    ConflictingRecord when two findings share a key.
    """
    ordered = sorted(findings, key=lambda finding: finding.key)
    for finding, following in pairwise(ordered):
        if finding.key == following.key:
            raise ConflictingRecord(f"a detection has one finding of a key, but {finding.key} is there twice")
    content = hashlib.sha256("".join((settings_digest, *(digest(finding) for finding in ordered))).encode()).hexdigest()
    table = schema.detection.c
    _one_at_a_time(connection)
    newest = connection.execute(select(table.digest, table.at).where(table.pk == _newest())).one_or_none()
    if newest and newest.digest == content:
        return False
    # The newest is the one written last, also where another host's clock is ahead.
    at = max(datetime.now(UTC), newest.at) if newest else datetime.now(UTC)
    _insert_detection(connection, row_keys, Detection(0, at, settings_digest, content), findings)
    return True


def _one_at_a_time(connection: Connection) -> None:
    """Wait for another publisher's detection, or both would be stored as new; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(DETECTION_LOCK)))


def _newest() -> ScalarSelect[int]:
    table = schema.detection.c
    return select(table.pk).order_by(table.at.desc(), table.pk.desc()).limit(1).scalar_subquery()


def _insert_detection(
    connection: Connection, row_keys: RowKeys, detection: Detection, findings: Sequence[Finding]
) -> None:
    row = detection._asdict() | stamp(connection, row_keys)
    del row["pk"]
    pk = insert_new(connection, schema.detection, row)
    rows = [
        {
            "detection_pk": pk,
            "number": number,
            **finding.model_dump(include={"key", "kind", "tier", "dbms", "line", "release"}),
            "content": pack(shown(finding)),
        }
        for number, finding in enumerate(findings)
    ]
    if rows:
        connection.execute(schema.finding.insert(), rows)


def take_over(connection: Connection, row_keys: RowKeys, detection: Detection, findings: Sequence[Finding]) -> bool:
    """A detection of another history, with its moment; False when it is here already."""
    table = schema.detection.c
    _one_at_a_time(connection)
    same = (table.digest == detection.digest, table.at == detection.at)
    if connection.execute(select(table.pk).where(*same)).first():
        return False
    _insert_detection(connection, row_keys, detection, findings)
    return True


def detections(connection: Connection) -> list[Detection]:
    """Every detection, oldest first."""
    table = schema.detection.c
    query = select(*(table[name] for name in Detection._fields)).order_by(table.at, table.pk)
    return [Detection(*row) for row in connection.execute(query)]


def findings(connection: Connection, detection_pk: int | None = None, **wanted: str | None) -> list[Finding]:
    """Findings of one detection, else the newest, in the order they were given. Filters: dbms, line, kind, tier."""
    table = schema.finding.c
    of_detection = table.detection_pk == (_newest() if detection_pk is None else detection_pk)
    chosen = (table[name] == value for name, value in wanted.items() if value is not None)
    query = select(table.content).where(of_detection, *chosen).order_by(table.number)
    return [Finding.model_validate_json(unpacked(content)) for content in connection.execute(query).scalars()]


def append_event(connection: Connection, row_keys: RowKeys, event: FindingEvent) -> bool:
    """An event; one that is equal in everything, its moment included, is the same event."""
    row = event.model_dump(exclude={"detail"}) | {"detail": text_of(shown(event)["detail"]), "digest": digest(event)}
    return append_row(connection, row_keys, schema.event, row)


def events(connection: Connection, key: str | None = None) -> list[FindingEvent]:
    """In the order of their moments; of one moment, in the order they were stored."""
    table = schema.event.c
    columns = [table[name] for name in FindingEvent.model_fields]
    query = select(*columns).where(*_of_finding(table, key)).order_by(table.at, table.pk)
    rows = connection.execute(query).mappings()
    return [FindingEvent(**{**row, "detail": json.loads(row["detail"])}) for row in rows]


def _of_finding(table: Any, key: str | None) -> list[ColumnElement[bool]]:
    return [] if key is None else [table.key == key]


def append_link(connection: Connection, row_keys: RowKeys, link: IssueLink) -> bool:
    """Where a finding stands in a tracker."""
    return append_row(connection, row_keys, schema.link, link.model_dump() | {"digest": digest(link)})


def links(connection: Connection, key: str | None = None) -> list[IssueLink]:
    """In the order they were stored."""
    table = schema.link.c
    columns = [table[name] for name in IssueLink.model_fields]
    query = select(*columns).where(*_of_finding(table, key)).order_by(table.pk)
    return [IssueLink(**row) for row in connection.execute(query).mappings()]


def supersede(connection: Connection, row_keys: RowKeys, correction: Supersession) -> bool:
    """Take a session, run or block out of every series, with a reason. It stays stored.

    UnknownSeries when the row, or the one that replaces it, is not stored.
    """
    if correction.kind not in schema.SUPERSEDED_KINDS:
        raise UnknownSeries(
            f"a {correction.kind!r} cannot be superseded; only {', '.join(schema.SUPERSEDED_KINDS)} can"
        )
    if correction.replacement_id == correction.target_id:
        raise InvalidRecord(f"{correction.kind} {correction.target_id} cannot stand in its own place; name another")
    table = schema.metadata.tables[correction.kind]
    for name in (correction.target_id, correction.replacement_id):
        if name is not None and not connection.execute(select(table.c.pk).where(table.c.id == name)).first():
            raise UnknownSeries(
                f"no {correction.kind} {name} is stored; list them with: pointdrop history query {correction.kind}s"
            )
    if not correction.reason.strip():
        raise InvalidRecord("a correction needs its reason; say why the row counts no more")
    same = text_of([correction.kind, correction.target_id, correction.reason, correction.replacement_id])
    row = correction._asdict() | {"digest": hashlib.sha256(same.encode()).hexdigest()}
    return append_row(connection, row_keys, schema.supersession, row)


def supersessions(connection: Connection) -> list[Supersession]:
    """In the order they were stored."""
    table = schema.supersession.c
    query = select(*(table[name] for name in Supersession._fields)).order_by(table.pk)
    return [Supersession(*row) for row in connection.execute(query)]
