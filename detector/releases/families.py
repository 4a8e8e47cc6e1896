"""Series of the history as panels: one for everything of one (dbms, line, configuration, benchmark).

Throughput is called `qps` for one test, `ips` or `indexed rows/s` for another; a test's throughput goes into one and
the same row of the panel, so that sister tests can bear each other out. Values of two epochs of a host, and timed ones
of two sessions, are joined through what both measured; what nothing joins is to be split first (`epochs.judged_apart`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from detector.arrays import Floats
from detector.errors import InvalidSeries
from detector.releases.epochs import Scales, scales_of
from detector.releases.metric_kinds import kind_of, noise_prior
from detector.releases.repeats import BlockNoise, block_noise, repeats
from detector.releases.series_panel import Joins, Panel, panel_of_slots
from detector.releases.session_join import covariance_of_releases
from history.errors import InvalidRecord
from history.metrics import Metric, MetricKind, MetricRegistry
from history.model import Move, Series
from history.versions import line_of, version_key

#: A step from one line to another counts as so many point releases.
LINE_GAP = 12.0
#: So many metrics that are not judged are named.
MOST_NAMED = 2
#: So many labels are named in a sentence, more are counted.
MOST_LABELS = 3
FamilyKey = tuple[str, str, str, str]
Place = tuple[int, int, int]
"""Metric row, server and test of a series."""


@dataclass(frozen=True)
class Family:
    """One family of series and the panel made of it."""

    dbms: str
    line: str
    config: str
    benchmark: str
    metrics: MetricRegistry
    panel: Panel
    series: dict[Place, Series]
    joined: dict[str, str]
    """By id of a series: a sentence about the epochs or sessions of it that were joined, or could not be."""
    unjudged: tuple[str, ...]
    """Sentences about what is not judged, and about labels that are no versions."""

    def notes(self, of: Iterable[Series | Move]) -> tuple[str, ...]:
        """What is to be said of these series: how their values can be compared, and what else is not judged."""
        names = sorted(one.key.id for one in of)
        return (*dict.fromkeys(self.joined[name] for name in names if name in self.joined), *self.unjudged)

    def has_both_sides(self, series: Series, release: int) -> bool:
        """Whether a series was measured before the release and from it on, so that it can show a change there."""
        at = [self.panel.releases.index(point.version) for point in series.points]
        return min(at, default=release) < release <= max(at, default=-1)

    def measured_at(self, moves: Iterable[Move]) -> set[int]:
        """Indices of the releases at which any series of these moves was measured."""
        moved = {move.key for move in moves}
        points = (point for member in self.series.values() if member.key in moved for point in member.points)
        return {self.panel.releases.index(version) for version in {point.version for point in points}}


def families(series: Iterable[Series]) -> dict[FamilyKey, list[Series]]:
    """Series by (dbms, line, config, benchmark), in the order of their keys whatever the order of arrival."""
    by_key: dict[FamilyKey, list[Series]] = defaultdict(list)
    for member in sorted(series, key=lambda s: s.key.id):
        key = member.key
        by_key[key.dbms, key.line, key.config, key.benchmark].append(member)
    return dict(by_key)


def aligned(family: Sequence[Series], registry: MetricRegistry) -> list[list[Series]]:
    """A family in parts whose series agree on where each release stands: one part, but on the line of majors.

    There a server or lane that is a night behind, or measures fewer lines, has other releases at its places. Such
    servers and lanes are judged apart, each beside those that stand where it stands.
    """
    by_lane: dict[tuple[str, str], list[Series]] = defaultdict(list)
    for member in sorted(family, key=lambda s: s.key.id):
        by_lane[member.key.server, registry[member.key.metric].lane].append(member)
    parts: list[tuple[set[tuple[int, str]], list[Series]]] = []
    for _, of_lane in sorted(by_lane.items()):
        places = {(point.position, point.version) for member in of_lane for point in member.points}
        for part_places, part in parts:
            both = part_places | places
            if len({position for position, _ in both}) == len({version for _, version in both}) == len(both):
                part_places |= places
                part += of_lane
                break
        else:
            parts.append((places, list(of_lane)))
    return [part for _, part in parts]


def family_of(series: Sequence[Series], registry: MetricRegistry) -> Family:
    """The panel of one part of a family (`aligned`). Raises InvalidSeries when it is empty or of several families."""
    of_family = families(series)
    if len(of_family) != 1:
        raise InvalidSeries(f"one family is one (dbms, line, config, benchmark), got {len(of_family)}")
    (dbms, line, config, benchmark), series = next(iter(of_family.items()))
    versions = {point.position: point.version for member in series for point in member.points}
    positions = sorted(versions)
    place = {position: r for r, position in enumerate(positions)}
    servers = sorted({member.key.server for member in series})
    tests = sorted({member.key.test for member in series})
    rows = _rows(series, registry)
    metrics = sorted(set(rows.values()), key=_rank)
    index = {
        (metrics.index(rows[member.key.id]), servers.index(member.key.server), tests.index(member.key.test)): member
        for member in series
    }
    slots = np.ones(len(positions), dtype=np.int64)
    for member in series:
        for point in member.points:
            slots[place[point.position]] = max(slots[place[point.position]], len(point.values))
    starts = np.concatenate([[0], np.cumsum(slots)])
    raw = np.full((len(metrics), len(servers), len(tests), int(starts[-1])), np.nan)
    scales = {at: scales_of(member, registry) for at, member in index.items()}
    for at, member in index.items():
        # What has no factor is here only to say what reads differently at a break.
        values = np.array(list(chain.from_iterable(point.numbers for point in member.points))) / scales[at].divisors
        end = 0
        for point in member.points:
            first, begin, end = starts[place[point.position]], end, end + len(point.values)
            raw[(*at, slice(first, first + end - begin))] = values[begin:end]
    noise = _noise_of_blocks(scales, metrics, tests, raw.shape[:3])
    unknown = [at for at, of_series in scales.items() if of_series.by_session and np.isnan(noise.variance[at])]
    for at in unknown:
        raw[at] = np.nan
    unjudged = [
        _not_judged(server, [metrics[m].name for m in sorted({at[0] for at in unknown if at[1] == s})])
        for s, server in enumerate(servers)
    ]
    groups = {member.key.test: member.group for member in series}
    labels = [versions[position] for position in positions]
    if unread := unreadable_versions(dbms, labels):
        unjudged.append(unread)
    panel = panel_of_slots(
        metrics,
        raw,
        starts,
        servers=servers,
        tests=tests,
        groups=[groups[test] for test in tests],
        releases=labels,
        gaps=gaps_of(dbms, labels),
        noise=noise,
        joins=_joins(scales, labels),
    )
    sentences = {member.key.id: scales[at].sentence for at, member in index.items() if scales[at].sentence}
    return Family(dbms, line, config, benchmark, registry, panel, index, sentences, tuple(filter(None, unjudged)))


def _not_judged(server: str, metrics: Sequence[str]) -> str:
    """Empty without metrics.

    >>> _not_judged("local", ["qps", "cpu/o", "cs/o", "r/o", "f/o"])
    'local: qps, cpu/o and 3 more timed metrics are not judged: no release has two blocks that would tell their noise.'
    """
    if not metrics:
        return ""
    if len(metrics) == 1:
        return f"{server}: {metrics[0]} is not judged: no release has two blocks that would tell its noise."
    more = len(metrics) - MOST_NAMED
    named = f"{', '.join(metrics[:MOST_NAMED])} and {more} more timed metrics" if more > 0 else " and ".join(metrics)
    return f"{server}: {named} are not judged: no release has two blocks that would tell their noise."


def _noise_of_blocks(
    scales: Mapping[Place, Scales],
    metrics: Sequence[Metric],
    tests: Sequence[str],
    shape: tuple[int, ...],
) -> BlockNoise:
    """The noise of blocks where sessions have scales of their own, from what was measured twice; NaN elsewhere."""
    noise = BlockNoise(np.full(shape, np.nan), np.zeros(shape))
    variance, df = np.zeros(shape), np.zeros(shape)
    own = np.zeros(shape, dtype=np.bool_)
    for at, of_series in scales.items():
        if of_series.measured:
            own[at] = True
            variance[at], df[at] = repeats(of_series.measured)
    for m, s in np.argwhere(own.any(axis=-1)).tolist():
        prior = np.array([noise_prior(metrics[m], test) ** 2 for test in tests])
        learned = block_noise(variance[m, s], df[m, s], prior)
        noise.variance[m, s] = np.where(own[m, s], learned.variance, np.nan)
        noise.df[m, s] = learned.df
    return noise


def _joins(scales: Mapping[Place, Scales], versions: Sequence[str]) -> Joins:
    """What joining sessions adds to the covariance of a series' release values, where there were several."""
    return {
        at: covariance_of_releases(of_series.measured.cells, of_series.newest, tuple(versions))
        for at, of_series in scales.items()
        if of_series.measured and of_series.newest
    }


def gaps_of(dbms: str, versions: Sequence[str]) -> Floats:
    """[releases] point releases from each version to the next; what is no version is taken as the next one.

    >>> gaps_of("mysql", ["8.0.20", "8.0.28", "8.0.30", "8.4.0"]).tolist()
    [1.0, 8.0, 2.0, 12.0]
    """
    gaps = np.ones(len(versions))
    for r, (left, right) in enumerate(pairwise(versions), start=1):
        try:
            line, next_line = line_of(dbms, left), line_of(dbms, right)
        except InvalidRecord:
            continue
        # The number after those of the line counts its point releases.
        place = len(line.split("."))
        before, after = (sum(version_key(dbms, version)[1][place : place + 1]) for version in (left, right))
        gaps[r] = min(max(after - before, 1), LINE_GAP) if line == next_line else LINE_GAP
    return gaps


def unreadable_versions(dbms: str, versions: Sequence[str]) -> str:
    """A sentence about labels that name no version, between which `gaps_of` counts nothing; empty where all do.

    >>> unreadable_versions("mysql", ["my8028_rel", "8.0.30"])
    'No versions: my8028_rel. How many releases lie between these and their neighbours is not known; none is assumed.'
    >>> unreadable_versions("mysql", ["8.0.28", "8.0.30"])
    ''
    """
    unread = []
    for version in versions:
        try:
            line_of(dbms, version)
        except InvalidRecord:
            unread.append(version)
    if not unread:
        return ""
    more = f" and {len(unread) - MOST_LABELS} more" if len(unread) > MOST_LABELS else ""
    return (
        f"No versions: {', '.join(unread[:MOST_LABELS])}{more}. How many releases lie between these and their "
        "neighbours is not known; none is assumed."
    )


def _rows(series: Sequence[Series], registry: MetricRegistry) -> dict[str, Metric]:
    """The panel row of every series by its id: its metric, or the first throughput's for the throughput of its test."""
    rows = {}
    taken: set[tuple[str, str]] = set()
    lead = registry.first("throughput")
    for member in sorted(series, key=lambda member: (member.key.metric != lead.name, member.key.id)):
        metric = registry[member.key.metric]
        place = (member.key.server, member.key.test)
        if kind_of(metric) == "throughput" and place not in taken:
            taken.add(place)
            metric = lead
        rows[member.key.id] = metric
    return rows


_ORDER: dict[MetricKind, int] = {
    "throughput": 0, "cpu": 1, "instructions": 2, "counts": 3, "io": 3, "memory": 3, "latency": 4,
}  # fmt: skip


def _rank(metric: Metric) -> tuple[int, str]:
    return _ORDER[kind_of(metric)], metric.name
