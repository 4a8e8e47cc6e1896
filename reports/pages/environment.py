"""The environment log: what measured, where its fingerprint changed, and what its canary said. Pure."""

from __future__ import annotations

from typing import Any

from history.model import Session
from reports.annotations import Annotation
from reports.pages.canary import host_readings
from reports.pages.overview import session_rows
from reports.snapshot import Snapshot

#: Sessions listed; the history keeps all of them.
MAX_SESSIONS = 200


def changes(before: dict[str, str], after: dict[str, str]) -> list[tuple[str, str, str]]:
    """(fact, before, after) of what differs, by name; an absent fact is `–`."""
    names = sorted(before.keys() | after.keys())
    return [
        (name, before.get(name, "–"), after.get(name, "–")) for name in names if before.get(name) != after.get(name)
    ]


def epochs(sessions: list[Session]) -> list[dict[str, Any]]:
    """Per host from old to new: the stretches in which its fingerprint did not change, with what changed at each."""
    epochs: list[dict[str, Any]] = []
    by_host: dict[str, list[Session]] = {}
    for session in sorted(sessions, key=lambda session: (session.started, session.id)):
        by_host.setdefault(session.host, []).append(session)
    for host in sorted(by_host):
        of_host: list[dict[str, Any]] = []
        for session in by_host[host]:
            if of_host and of_host[-1]["digest"] == session.fingerprint.digest:
                of_host[-1]["sessions"] += 1
                of_host[-1]["last"] = session.started
                continue
            before = of_host[-1]["facts"] if of_host else {}
            of_host.append(
                {
                    "host": host,
                    "digest": session.fingerprint.digest,
                    "facts": session.fingerprint.facts,
                    "first": session.started,
                    "last": session.started,
                    "sessions": 1,
                    "changes": changes(before, session.fingerprint.facts) if of_host else [],
                }
            )
        epochs += of_host
    return epochs


def environment_context(snapshot: Snapshot, annotations: tuple[Annotation, ...]) -> dict[str, Any]:
    """Everything `environment.html` shows."""
    stretches = epochs(snapshot.sessions)
    hosts = {epoch["host"]: epoch for epoch in stretches}
    return {
        "hosts": [hosts[name] for name in sorted(hosts)],
        "epochs": [epoch for epoch in reversed(stretches) if epoch["changes"]],
        "canaries": host_readings(snapshot.readings),
        "sessions": session_rows(snapshot, MAX_SESSIONS),
        "remarks": [annotation for annotation in annotations if annotation.host],
    }
