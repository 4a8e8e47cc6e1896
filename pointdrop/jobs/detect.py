"""Detection over a history: read the series, ask the detector, look up what explains a finding, write it down.

One partition is everything of one (dbms, line, config, benchmark); partitions do not depend on each other, so they can
be scanned on the workers of a Dask cluster with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from detector import DetectorSettings
from detector.attachments import attach, missed_service_levels
from detector.detection import join
from detector.errors import DetectorError
from detector.parts import Part, parts_of
from detector.releases.families import families
from detector.shared_changes import tie
from history.metrics import MetricRegistry, load_metrics
from history.model import Finding, FunctionCost, Move, Series, SeriesKey, StatementPlan
from history.store import Store
from pointdrop.jobs.measured_splits import measured_split
from pointdrop.jobs.option_changes import option_changes
from pointdrop.jobs.toolchain_changes import changed_toolchain

#: Partitions sent to the cluster as one task: the overhead of a task is about that of scanning a small partition.
PARTITIONS_A_TASK = 8

Detail = TypeVar("Detail", FunctionCost, StatementPlan)


def load_detector_settings(configs: Path) -> DetectorSettings:
    """Settings with the metrics of `configs/metrics.toml`. BadSettings when that file is wrong."""
    return DetectorSettings(metrics=load_metrics(configs))


def run_detection(
    store: Store,
    settings: DetectorSettings,
    *,
    dbms: str | None = None,
    line: str | None = None,
    scheduler: str | None = None,
    write: bool = True,
) -> list[Finding]:
    """All findings of the history, written to it as its newest detection unless `write` is false.

    `dbms` and `line` restrict what is looked at, and then nothing is written, since a detection is of the whole
    history. `scheduler` is the address of a Dask scheduler, as in `tcp://10.0.0.1:8786`.
    """
    series = list(store.series(dbms=dbms, line=line))
    findings = find(series, settings, store, scheduler)
    if write and dbms is None and line is None:
        store.append_detection(findings, settings.digest)
    return findings


def find(series: list[Series], settings: DetectorSettings, store: Store, scheduler: str | None = None) -> list[Finding]:
    """Findings in `series`, with suspects, functions, plans and options from `store`, and the lines of each change."""
    partitions = list(families(series).values())
    parts = _scan_on_cluster(partitions, settings, scheduler) if scheduler else scan_partitions(partitions, settings)
    releases = store.releases()
    findings = [
        explained(finding, series, store, settings.metrics) for finding in join(parts, series, settings, releases)
    ]
    return tie(findings, series, releases, settings.metrics)


def scan_partitions(partitions: list[list[Series]], settings: DetectorSettings) -> list[Part]:
    """The boundaries of each partition, in order."""
    return [part for partition in partitions for part in parts_of(partition, settings)]


def _scan_on_cluster(partitions: list[list[Series]], settings: DetectorSettings, scheduler: str) -> list[Part]:
    try:
        from distributed import Client
    except ImportError as error:
        raise DetectorError("--scheduler needs Dask: pip install 'pointdrop[dask]'") from error
    tasks = [partitions[i : i + PARTITIONS_A_TASK] for i in range(0, len(partitions), PARTITIONS_A_TASK)]
    try:
        client = Client(scheduler, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DetectorError(f"no Dask scheduler answers at {scheduler}: {error}") from error
    with client:
        futures = client.map(scan_partitions, tasks, settings=settings, pure=False)
        return [part for parts in client.gather(futures) for part in parts]


def explained(finding: Finding, series: list[Series], store: Store, metrics: MetricRegistry) -> Finding:
    """`finding` with the functions, plans and options that its two sides have in the history, and missed promises.

    Both sides of a test are those of one server, config and benchmark, and plans of one lane: where it moved most. On
    tables of another size or with other options a plan is another one without a change of the product.
    """
    if finding.kind == "drift":
        return finding
    counted = [move for move in finding.moves if metrics[move.key.metric].lane == "instructions"]

    def place(key: SeriesKey) -> dict[str, str]:
        lane = metrics[key.metric].lane
        return {"server": key.server, "config": key.config, "benchmark": key.benchmark, "lane": lane}

    def functions(version: str, key: SeriesKey) -> tuple[FunctionCost, ...]:
        return store.functions(finding.dbms, version, key.test, **place(key))

    def plans(version: str, key: SeriesKey) -> tuple[StatementPlan, ...]:
        return store.plans(finding.dbms, version, key.test, **place(key))

    functions_before, functions_after = _both_sides(finding, counted, functions)
    plans_before, plans_after = _both_sides(finding, finding.moves, plans)
    options = option_changes(finding, store, metrics)
    return attach(
        finding,
        functions_before=functions_before,
        functions_after=functions_after,
        plans_before=plans_before,
        plans_after=plans_after,
        config_changes=options.changed,
        one_sided_options=options.one_sided,
        settings=options.settings,
        toolchain=changed_toolchain(finding, store, metrics),
        split=measured_split(finding, store, metrics),
        sla_failures=missed_service_levels(finding, series),
    )


def _both_sides(
    finding: Finding, moves: Iterable[Move], read: Callable[[str, SeriesKey], tuple[Detail, ...]]
) -> tuple[dict[str, tuple[Detail, ...]], dict[str, tuple[Detail, ...]]]:
    """What `read` has of the two sides of `finding`, by test, where it moved most; of both or of none."""
    before, after = {}, {}
    largest = {move.key.test: move.key for move in sorted(moves, key=lambda move: (abs(move.change_pct), move.key.id))}
    for test, key in largest.items():
        if (old := read(finding.previous, key)) and (new := read(finding.release, key)):
            before[test], after[test] = old, new
    return before, after
