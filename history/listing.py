"""What is stored, as rows of a table with stable column names: for `history query` and for scripts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from history.errors import InvalidRecord
from history.frames import block_rows
from history.model import MAJORS, LineKey, Series
from history.store import Store

KINDS = (
    "lines",
    "releases",
    "sessions",
    "runs",
    "blocks",
    "readings",
    "series",
    "values",
    "findings",
    "events",
    "links",
    "corrections",
)
FINDING_COLUMNS = {"key", "kind", "tier", "cause", "dbms", "line", "previous", "release", "same_as"}


def rows_of(store: Store, what: str, wanted: dict[str, str | None], session: str | None = None) -> list[dict[str, Any]]:
    """Rows of one of KINDS. `wanted` are filters by name (of LineKey; test, metric, until), where they apply."""
    if what not in KINDS:
        raise InvalidRecord(f"there is no {what!r} to look at; take one of {', '.join(KINDS)}")
    place = {name: wanted.get(name) for name in LineKey._fields}
    match what:
        case "lines":
            rows = (line._asdict() for line in store.lines(place["dbms"]))
            return [row for row in rows if all(place[name] in (None, value) for name, value in row.items())]
        case "releases":
            releases = store.releases(place["dbms"])
            return [release.model_dump(mode="json") for release in releases if place["line"] in (None, release.line)]
        case "sessions":
            return [
                {
                    "session": session.id,
                    "started": session.started.isoformat(),
                    "host": session.host,
                    "server": session.server,
                    "epoch": session.fingerprint.digest,
                    "control": session.control,
                    "plan": session.plan,
                }
                for session in store.sessions()
                if place["server"] in (None, session.server)
            ]
        case "runs" | "blocks":
            return list(_runs(store, place, session, blocks=what == "blocks"))
        case "readings":
            return [
                reading.model_dump(mode="json") | {"reasons": "; ".join(reading.reasons)}
                for reading in store.readings()
                if session in (None, reading.session_id)
            ]
        case "series":
            return [_series(series) for series in store.series(**wanted)]
        case "values":
            return [row._asdict() for row in block_rows(store.series(**wanted)) if row.line != MAJORS]
        case "findings":
            return [
                finding.model_dump(include=FINDING_COLUMNS) | {"moves": len(finding.moves)}
                for finding in store.findings(place["dbms"], place["line"])
            ]
        case "events":
            return [event.model_dump(mode="json") for event in store.events()]
        case "links":
            return [link.model_dump() for link in store.links()]
        case _:
            return [correction._asdict() | {"at": correction.at.isoformat()} for correction in store.supersessions()]


def lines_told(store: Store) -> str:
    """The lines that have results, for somebody who asked for others: `mysql 5.6, 8.0; postgres 17`."""
    lines_by_dbms: dict[str, list[str]] = defaultdict(list)
    for dbms, line, *_ in store.lines():
        if line != MAJORS and line not in lines_by_dbms[dbms]:
            lines_by_dbms[dbms].append(line)
    return "; ".join(f"{dbms} {', '.join(of_it)}" for dbms, of_it in lines_by_dbms.items())


def _runs(store: Store, place: dict[str, str | None], session: str | None, *, blocks: bool) -> Iterator[dict[str, Any]]:
    for run in store.runs(session, **place):
        row = {
            "run": run.id,
            "session": run.session_id,
            "dbms": run.release.dbms,
            "version": run.release.version,
            "config": run.config,
            "benchmark": run.benchmark,
            "lane": run.lane,
            "profile": run.profile,
        }
        if not blocks:
            yield row
            continue
        for block in store.blocks(run.id, details=False):
            yield {
                "block": block.id,
                "number": block.number,
                "status": block.status,
                "reason": block.reason,
                "started": block.started.isoformat(),
                "measurements": len(block.measurements),
            } | {name: row[name] for name in ("run", "session", "dbms", "version")}


def _series(series: Series) -> dict[str, Any]:
    return {
        "series": series.key.id,
        "unit": series.unit,
        "better": series.better,
        "releases": len(series.points),
        "values": sum(len(point.values) for point in series.points),
        "first": series.points[0].version,
        "last": series.points[-1].version,
    }
