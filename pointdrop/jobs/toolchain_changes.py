"""Were the two sides of a finding built by one builder with one compiler? Read from the toolchains the runs kept."""

from __future__ import annotations

from history.metrics import MetricRegistry
from history.model import Finding, ToolchainChange
from history.store import Store
from history.toolchains import toolchain_changes


def changed_toolchain(finding: Finding, store: Store, metrics: MetricRegistry) -> tuple[ToolchainChange, ...]:
    """What differs between the builds of the two sides, over every place where something moved: between the newest
    runs of either side that know theirs. Empty where one side does not."""
    keys = [move.key for move in finding.moves]
    places = sorted({(key.server, key.config, key.benchmark, metrics[key.metric].lane) for key in keys})
    changes: dict[ToolchainChange, None] = {}
    for server, config, benchmark, lane in places:
        before, after = (
            _newest(store, finding.dbms, version, server=server, config=config, benchmark=benchmark, lane=lane)
            for version in (finding.previous, finding.release)
        )
        changes |= dict.fromkeys(toolchain_changes(before, after))
    return tuple(changes)


def _newest(store: Store, dbms: str, version: str, **place: str) -> dict[str, str]:
    known = [run.toolchain for run in store.runs(dbms=dbms, version=version, **place) if run.toolchain]
    return known[-1] if known else {}
