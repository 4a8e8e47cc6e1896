"""Why the detector says what it says about one series, in words: rule, noise, sensitivity, evidence for and against."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from detector.errors import UnknownEvidence
from detector.percentages import log_percent, percent
from detector.releases.boundaries import NEWEST
from detector.releases.epochs import judged_apart, scales_of
from detector.releases.families import Family, aligned, families, family_of
from detector.releases.metric_kinds import KINDS, evidence, kind_of
from detector.releases.noise import priors
from detector.releases.scan import Scan, scan_panel
from detector.releases.series_steps import PanelSteps, SeriesStep, bound_of_luck, read_steps
from detector.series_moves import LUCK_POWER, as_one, direction, raw_level, smallest_detectable
from detector.settings import DetectorSettings
from history.model import Series, SeriesKey

#: A release with less probability of a change than this is not worth explaining.
WORTH = 0.05


@dataclass(frozen=True)
class BoundaryCase:
    """One release of the series that changed, or might have."""

    previous: str
    release: str
    listed: bool
    probability: float
    """P(the release moves this test)."""
    before: float
    after: float
    near_zero: bool
    """Whether the change is told by its levels, since a percentage of nothing says nothing."""
    change_pct: float
    low_pct: float
    high_pct: float
    pro: tuple[str, ...]
    contra: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """Everything there is to say about one series."""

    key: SeriesKey
    releases: int
    blocks: int
    rule: str
    noise_pct: float
    prior_noise_pct: float
    mde_newest_pct: float
    """Smallest change of the newest release alone that this series would show by itself."""
    mde_middle_pct: float
    """Smallest change in the middle of the line that this series would show by itself."""
    cases: tuple[BoundaryCase, ...]
    notes: tuple[str, ...]


def explain(series: Sequence[Series], key: SeriesKey, settings: DetectorSettings | None = None) -> Explanation:
    """The explanation of series `key`; `series` are at least those that share its dbms, line, config and benchmark.

    Raises UnknownEvidence when `key` is not among them.
    """
    settings = settings or DetectorSettings()
    members = families(series).get((key.dbms, key.line, key.config, key.benchmark), [])
    asked = next((s for s in members if s.key == key), None)
    if asked is None:
        raise UnknownEvidence(f"there is no series {key.id}; `pointdrop history query` lists those there are")
    together = next(part for part in aligned(members, settings.metrics) if asked in part)
    newest, *older = [
        part for part in judged_apart(together, settings.metrics) if any(member.key == key for member in part)
    ]
    family = family_of(newest, settings.metrics)
    scan = scan_panel(family.panel)
    panel_steps = read_steps(scan, settings.probability)
    place = next(place for place, s in family.series.items() if s.key == key)
    m, _, t = place
    panel = family.panel
    measured = int(np.isfinite(panel.values[place]).sum())
    floor, noise = float(scan.floor[m]), float(panel_steps.noise[place])
    slab = KINDS[kind_of(panel.metrics[m])].slab
    # That of one release: with others on its own side, and as many on the other, it is the less.
    luck = max((bound_of_luck(panel.luck, place, one) for one in np.eye(len(panel.releases))), default=0.0)

    def detectable(before: int, after: int) -> float:
        of_luck = (1.0 + LUCK_POWER) * luck * math.sqrt(1.0 / max(before, 1) + 1.0 / max(after, 1))
        return log_percent(smallest_detectable(noise, before, after, slab, max(floor, of_luck), settings.probability))

    return Explanation(
        key=key,
        releases=measured,
        blocks=sum(len(point.values) for point in asked.points),
        rule=(
            f"A release is listed when the probability that it moves this test is at least "
            f"{settings.probability:.2f} ({NEWEST:.2f} for the newest, which is suspected) and the step is at least "
            f"{100.0 * math.expm1(floor):.2g} %."
        ),
        noise_pct=log_percent(noise),
        prior_noise_pct=log_percent(math.sqrt(float(priors(panel).variance[m, t]))),
        mde_newest_pct=detectable(measured - 1, 1),
        mde_middle_pct=detectable(measured // 2, (measured + 1) // 2),
        cases=(
            *(case for part in older[::-1] for case in _older_cases(part, key, settings)),
            *_cases(family, scan, panel_steps, place),
        ),
        notes=tuple(
            dict.fromkeys(filter(None, (scales_of(asked, settings.metrics).sentence, *_notes(family, scan, place))))
        ),
    )


def _older_cases(series: Sequence[Series], key: SeriesKey, settings: DetectorSettings) -> Iterator[BoundaryCase]:
    """The cases of epochs that no control joins to that of the newest release."""
    family = family_of(series, settings.metrics)
    scan = scan_panel(family.panel)
    place = next(place for place, member in family.series.items() if member.key == key)
    yield from _cases(family, scan, read_steps(scan, settings.probability), place)


def _notes(family: Family, scan: Scan, place: tuple[int, int, int]) -> tuple[str, ...]:
    m, panel = place[0], family.panel
    notes = list(family.notes([family.series[place]]))
    if not evidence(panel.metrics)[m]:
        notes.append(
            "This metric repeats another one or is too noisy: it is read at boundaries, it does not make them."
        )
    if bool(panel.single.all()):
        notes.append("One block, one server, one kind of metric: a single release off its neighbours is an outlier.")
    if panel.linear[place]:
        notes.append("The series has negative values: it is judged on a linear scale.")
    elif panel.scale[place] > 0:
        notes.append("The series has zeros: an offset stands for zero on the log scale.")
    if panel.luck is not None and panel.luck.covariance[place].any():
        notes.append(
            "Timed in sessions: a step is told when the luck of a block or of a session's control cannot do as much, "
            "however many tests show it."
        )
    servers = scan.beliefs.servers
    if servers.size > 1:
        shared = ", ".join(f"{name} {share:.0%}" for name, share in zip(panel.servers, servers, strict=True))
        notes.append(f"Share of changes that reach each server, learned here: {shared}.")
    notes.append(f"Share of changes that show in this metric, learned here: {float(scan.shows[m]):.0%}.")
    return tuple(notes)


def _cases(family: Family, scan: Scan, panel_steps: PanelSteps, place: tuple[int, int, int]) -> Iterator[BoundaryCase]:
    steps = {step.release: step for step in panel_steps.steps if step.place == place}
    for r, chance in enumerate(scan.hit[place[1:]].tolist()):
        if r and (r in steps or chance >= WORTH) and math.isfinite(family.panel.values[place][r]):
            yield _case(family, scan, panel_steps, place, r, steps.get(r))


def _case(
    family: Family, scan: Scan, panel_steps: PanelSteps, place: tuple[int, int, int], r: int, step: SeriesStep | None
) -> BoundaryCase:
    panel = family.panel
    values = panel_steps.values[place]
    chance = float(scan.hit[place[1:]][r])
    noise = float(panel_steps.noise[place])
    if step is not None:
        before, low, high, after = step.before, *step.interval, step.after
    else:
        after = float(values[r])
        before = float(([v for v in values[:r] if math.isfinite(v)] or [after])[-1])
        half = 1.96 * math.sqrt(2.0) * noise
        low, high = after - before - half, after - before + half
    base = raw_level(family, place, before)
    ends = [percent(base, raw_level(family, place, before + end)) for end in (low, high)]
    level = raw_level(family, place, after)
    change = percent(base, level)
    metric = family.metrics[family.series[place].key.metric]
    pro, contra = _arguments(scan, family.series[place], place, r, chance, after - before, noise)
    if step is not None:
        sides = f"{step.releases_before} before and {step.releases_after} after"
        pro.insert(0, f"two levels, by the measured releases on either side: {sides}")
        pro.append(f"for users: {direction(family.series[place], change)}")
    return BoundaryCase(
        previous=panel.releases[r - 1],
        release=panel.releases[r],
        listed=step is not None,
        probability=chance,
        before=base,
        after=level,
        near_zero=metric.is_none(base) or metric.is_none(level),
        change_pct=change,
        low_pct=min(ends),
        high_pct=max(ends),
        pro=tuple(pro),
        contra=tuple(contra),
    )


def _arguments(
    scan: Scan, series: Series, place: tuple[int, int, int], r: int, chance: float, size: float, noise: float
) -> tuple[list[str], list[str]]:
    m, s, t = place
    panel = scan.panel
    pro, contra = [], []
    sisters = [i for i in range(len(panel.tests)) if i != t and scan.hit[:, i, r].max(initial=0.0) > 0.5]
    if sisters:
        pro.append(f"{len(sisters)} of {len(panel.tests) - 1} sister tests move at this release")
    elif len(panel.tests) > 1:
        contra.append("no sister test moves at this release")
    others = [panel.servers[i] for i in range(len(panel.servers)) if i != s and scan.hit[i, t, r] > 0.5]
    if others:
        pro.append(f"the test moves on {', '.join(others)} as well")
    elif len(panel.servers) > 1:
        contra.append("the test does not move on another server")
    ratio = abs(size) / noise if noise > 0 else math.inf
    (pro if ratio >= 2.0 else contra).append(f"the step is {ratio:.1f} times the noise of one release")
    if abs(size) < float(scan.floor[m]):
        contra.append("the step is smaller than what counts")
    transient = float(np.nan_to_num(scan.transient[m, s, t, r]))
    if transient > 0.3:
        contra.append(f"the value is an outlier that the next release does not share, with probability {transient:.2f}")
    if panel.counts[m, s, t, r] < 2:
        contra.append(as_one(sum(len(point.values) for point in series.points if point.version == panel.releases[r])))
    if r == len(panel.releases) - 1:
        contra.append("it is the newest release: nothing after it bears it out yet")
    if chance < 0.5:
        contra.append(f"the probability that the release moves this test is {chance:.2f}")
    return pro, contra
