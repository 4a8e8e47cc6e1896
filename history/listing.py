"""What is stored, as rows of a table with stable column names: for `history query` and for scripts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from history.errors import InvalidRecord
from history.frames import block_rows
from history.model import MAJORS, Release, Series
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
PLACE = ("dbms", "line", "server", "config", "benchmark")


def rows_of(store: Store, what: str, wanted: dict[str, str | None], session: str | None = None) -> list[dict[str, Any]]:
    """Rows of one of KINDS. `wanted` are filters by name (`PLACE`, test, metric, until), where they apply."""
    if what not in KINDS:
        raise InvalidRecord(f"there is no {what!r} to look at; take one of {', '.join(KINDS)}")
    place = {name: wanted.get(name) for name in PLACE}
    match what:
        case "lines":
            return [
                row
                for row in (dict(zip(PLACE, line, strict=True)) for line in store.lines(place["dbms"]))
                if _agrees(row, place)
            ]
        case "releases":
            of_line = {"line": place["line"]}
            return [row for row in map(_release, store.releases(place["dbms"])) if _agrees(row, of_line)]
        case "sessions":
            return [
                {
                    "session": one.id,
                    "started": one.started.isoformat(),
                    "host": one.host,
                    "server": one.server,
                    "epoch": one.fingerprint.digest,
                    "control": one.control,
                    "plan": one.plan,
                }
                for one in store.sessions()
                if place["server"] in (None, one.server)
            ]
        case "runs" | "blocks":
            return list(_runs(store, place, session, blocks=what == "blocks"))
        case "readings":
            return [
                one.model_dump(mode="json") | {"reasons": "; ".join(one.reasons)}
                for one in store.readings()
                if session in (None, one.session_id)
            ]
        case "series":
            return [_series(one) for one in store.series(**wanted)]
        case "values":
            return [row._asdict() for row in block_rows(store.series(**wanted)) if row.line != MAJORS]
        case "findings":
            kept = ("key", "kind", "tier", "cause", "dbms", "line", "previous", "release")
            found = store.findings(place["dbms"], place["line"])
            return [one.model_dump(include=set(kept)) | {"moves": len(one.moves)} for one in found]
        case "events":
            return [one.model_dump(mode="json") for one in store.events()]
        case "links":
            return [one.model_dump() for one in store.links()]
        case _:
            return [one._asdict() | {"at": one.at.isoformat()} for one in store.supersessions()]


def lines_told(store: Store) -> str:
    """The lines that have results, for somebody who asked for others: `mysql 5.6, 8.0; postgres 17`."""
    found: dict[str, list[str]] = defaultdict(list)
    for dbms, line, *_ in store.lines():
        if line != MAJORS and line not in found[dbms]:
            found[dbms].append(line)
    return "; ".join(f"{dbms} {', '.join(of_it)}" for dbms, of_it in found.items())


def _agrees(row: dict[str, Any], wanted: dict[str, str | None]) -> bool:
    return all(value is None or row[name] == value for name, value in wanted.items())


def _release(one: Release) -> dict[str, Any]:
    return one.model_dump(mode="json")


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
        for one in store.blocks(run.id, details=False):
            yield {
                "block": one.id,
                "number": one.number,
                "status": one.status,
                "reason": one.reason,
                "started": one.started.isoformat(),
                "measurements": len(one.measurements),
            } | {name: row[name] for name in ("run", "session", "dbms", "version")}


def _series(one: Series) -> dict[str, Any]:
    return {
        "series": one.key.id,
        "unit": one.unit,
        "better": one.better,
        "releases": len(one.points),
        "values": sum(len(point.values) for point in one.points),
        "first": one.points[0].version,
        "last": one.points[-1].version,
    }
