"""A measured history for tests: flat levels for every test, release and server; findings are appended by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from history.model import Block, Finding, Fingerprint, Measurement, Release, Run, Session
from history.store import Store
from tests.alerts.examples import BASE, GROUPS, NOW, RELEASES

#: Measured lines and their releases.
LINES: dict[tuple[str, str], Sequence[str]] = {
    ("postgres", "17"): RELEASES,
    ("mysql", "8.0"): ("8.0.27", "8.0.28", "8.0.30", "8.0.31"),
    ("mariadb", "10.11"): ("10.11.4", "10.11.5", "10.11.6"),
}
SERVERS = ("local", "medium")
#: The field's per-operation metrics, the same for every test.
FIELD = {"cpu/o": 0.000247, "cs/o": 5.015, "r/o": 0.0, "rKB/o": 0.0, "wKB/o": 0.001, "qps": 48_921.0}


def write_history(path: Path) -> None:
    """One session a server, one run a release, one block a run."""
    with Store.open(f"sqlite:///{path}") as store:
        for server in SERVERS:
            facts = {"cpu_model": "test", "cores": "2"}
            session = f"s-{server}"
            store.append_session(
                Session(id=session, host=server, server=server, fingerprint=Fingerprint(facts=facts), started=NOW)
            )
            for (dbms, line), releases in LINES.items():
                for version in releases:
                    _append_run(store, session, Release(dbms=dbms, version=version, line=line))


def _append_run(store: Store, session: str, release: Release) -> None:
    run = f"{session}-{release.dbms}-{release.version}"
    store.append_run(Run(id=run, session_id=session, release=release, config="default", benchmark="sysbench"))
    measurements = [
        Measurement(test=test, group=GROUPS[test], metric=metric, value=value)
        for test in BASE
        for metric, value in {"insn/o": BASE[test], **FIELD}.items()
    ]
    store.append_block(
        Block(
            id=f"{run}-0",
            run_id=run,
            number=0,
            started=NOW,
            ended=NOW + timedelta(minutes=10),
            measurements=tuple(measurements),
        )
    )


def detect(store: Store, *findings: Finding) -> None:
    """A new detection that found just these."""
    store.append_detection(findings, "by hand")
