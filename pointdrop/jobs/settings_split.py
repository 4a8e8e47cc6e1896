"""Settings or code: a third arm between two sides, and what it makes of their difference.

    base            the old release as its config has it
    with settings   the new release with the settings of the base, as far as it takes them
    candidate       the new release as its config has it

From base to the arm in the middle only the code changes, from there to the candidate only settings; the product of the
two is the whole step.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from detector.compare import Comparison
from history.model import Release, Row, SettingChange, Value
from pointdrop.jobs.setting_changes import setting_changes
from runners.engines.held_settings import hold, settings_of
from runners.sessions import HeldConfig, SessionPlan
from runners.sessions.model import PlannedRun
from runners.sessions.session import rendered_options
from runners.sessions.worker import Fetches
from runners.settings.dbms import load_dbms

#: A part below this share of the whole step, in logs, is not what the step is made of.
LEAST_SHARE = 0.1

Culprit = Literal["", "config", "product", "both"]


@dataclass(frozen=True)
class ThirdArm:
    """The new release with the settings of the old one."""

    release: Release
    config: HeldConfig | None
    """None when no setting differs that the release could be given: the middle is the candidate itself."""
    changes: tuple[SettingChange, ...]
    """All that differ between the two sides."""
    held: tuple[str, ...]
    """The settings of these that the arm holds."""
    refused: dict[str, str]
    """Why it does not hold the others."""


def third_arm(
    plan: SessionPlan,
    base: PlannedRun,
    candidate: PlannedRun,
    catalogue: Fetches,
    *,
    configs: Path,
    state: Path,
    sandbox: bool = False,
) -> ThirdArm:
    """Ask the servers of two runs of `plan` for their settings, and the candidate which of the base's it takes.

    They are started below `state`, one at a time, on no data. EngineError when one does not start.
    """
    settings = load_dbms(plan.control.dbms, configs)
    sides = [
        (catalogue.fetch(run.release.dbms, run.release.version), rendered_options(plan, run, settings))
        for run in (base, candidate)
    ]
    directory = state / "servers" / f"asked-{os.getpid()}"
    before, now = (settings_of(*side, directory, state=state, sandbox=sandbox) for side in sides)
    changes = setting_changes(before, now)
    wanted = {change.name: change.before for change in changes}
    held = hold(*sides[1], now, wanted, directory, state=state, sandbox=sandbox)
    arm = HeldConfig(candidate.config, tuple(held.options.items())) if held.options else None
    return ThirdArm(candidate.release, arm, tuple(changes), held.names, held.refused)


def culprit(whole: Comparison, settings: Comparison, code: Comparison) -> Culprit:
    """What the difference of one test and metric is made of; empty while there is none that is sure.

    >>> def step(pct, verdict="DIFFERENT"): return Comparison(verdict, pct, pct - 1, pct + 1, 2, 2)
    >>> culprit(step(50.0), step(48.0), step(1.3)), culprit(step(50.0), step(0.1, "SAME"), step(49.8))
    ('config', 'product')
    >>> culprit(step(50.0), step(20.0), step(25.0))
    'both'
    """
    if whole.verdict != "DIFFERENT":
        return ""
    size = abs(_log(whole.change_pct))
    counts = [
        part.verdict == "DIFFERENT" and abs(_log(part.change_pct)) >= LEAST_SHARE * size for part in (settings, code)
    ]
    if all(counts):
        return "both"
    return "config" if counts[0] else "product" if counts[1] else ""


def of_family(culprits: Iterable[Culprit]) -> Culprit:
    """What the differences of all tests are made of.

    >>> of_family(["config", "", "config"]), of_family(["config", "product"]), of_family([""])
    ('config', 'both', '')
    """
    named = set(culprits) - {""}
    return named.pop() if len(named) == 1 else "both" if named else ""


class Part(Row):
    """Change in percent, with an interval; without one as long as it is not bounded."""

    change_pct: Value
    low_pct: Value | None = None
    high_pct: Value | None = None


class SplitRow(Row):
    """What the difference of one test and metric is made of."""

    test: str
    metric: str
    cause: Culprit
    settings: Part
    code: Part


class LeftSetting(Row):
    """A setting that differs and that the new release could not be given."""

    change: SettingChange
    reason: str


class SettingsSplit(Row):
    """The difference of two sides in two parts, whose product it is."""

    cause: Culprit
    settings: Part
    code: Part
    """Of the tests that differ together, of all where none does."""
    held: tuple[SettingChange, ...]
    left: tuple[LeftSetting, ...]
    tests: tuple[SplitRow, ...]

    @property
    def settings_named(self) -> list[str]:
        return [change.name for change in self.held]


def split_of(
    arm: ThirdArm,
    steps: Mapping[tuple[str, str], tuple[Comparison, Comparison, Comparison]],
) -> SettingsSplit:
    """The split from the whole step, its settings and its code, by test and metric; there is at least one."""
    rows = tuple(
        SplitRow(test=test, metric=metric, cause=culprit(*of), settings=together(of[1:2]), code=together(of[2:]))
        for (test, metric), of in steps.items()
    )
    different = [of for of in steps.values() if of[0].verdict == "DIFFERENT"] or list(steps.values())
    held = set(arm.held)
    return SettingsSplit(
        cause=of_family(row.cause for row in rows),
        settings=together([of[1] for of in different]),
        code=together([of[2] for of in different]),
        held=tuple(change for change in arm.changes if change.name in held),
        left=tuple(
            LeftSetting(change=change, reason=arm.refused[change.name])
            for change in arm.changes
            if change.name not in held
        ),
        tests=rows,
    )


def together(comparisons: Sequence[Comparison]) -> Part:
    """The geometric mean of the changes of several tests, with the interval of that mean.

    >>> mean = together([Comparison("DIFFERENT", 21.0, 10.0, 33.1, 2, 2), Comparison("SAME", 0.0, 0.0, 0.0, 2, 2)])
    >>> round(mean.change_pct, 6), round(mean.low_pct, 2), round(mean.high_pct, 2)
    (10.0, 4.88, 15.37)
    """
    many = len(comparisons)
    middle = math.fsum(_log(one.change_pct) for one in comparisons) / many
    if not all(math.isfinite(one.low_pct) and math.isfinite(one.high_pct) for one in comparisons):
        return Part(change_pct=_percent(middle))
    halves = [(_log(one.high_pct) - _log(one.low_pct)) / 2.0 for one in comparisons]
    half = math.sqrt(math.fsum(half * half for half in halves)) / many
    return Part(change_pct=_percent(middle), low_pct=_percent(middle - half), high_pct=_percent(middle + half))


def split_sentence(split: SettingsSplit, name: Callable[[str], str] = str) -> str:
    """What the step is made of, in one sentence; `name` makes the name of a setting safe for where it will stand.

    >>> parts = {"settings": Part(change_pct=58.5, low_pct=57.9, high_pct=59.1), "code": Part(change_pct=0.1)}
    >>> change = SettingChange(name="dives", before="10", after="200", cause="default")
    >>> split_sentence(SettingsSplit(cause="config", **parts, held=(change,), left=(), tests=()))
    'Settings make +58.5 % [+57.9, +59.1] of it (dives), code +0.1 %: the settings did it.'
    """
    names = split.settings_named
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    which = f" ({', '.join(map(name, names[:MOST_NAMED]))}{more})" if names else ""
    settings, code = shown_part(split.settings), shown_part(split.code)
    return f"Settings make {settings} of it{which}, code {code}: {DID[split.cause]}."


#: Who did it, by cause.
DID: dict[Culprit, str] = {
    "config": "the settings did it",
    "product": "the code did it",
    "both": "both did",
    "": "neither is sure",
}
#: Settings named in the sentence.
MOST_NAMED = 6


def shown_part(part: Part) -> str:
    """`+58.5 % [+57.9, +59.1]`."""
    interval = "" if part.low_pct is None else f" [{part.low_pct:+.1f}, {part.high_pct:+.1f}]"
    return f"{part.change_pct:+.1f} %{interval}"


def _log(pct: float) -> float:
    return math.log1p(max(pct, -99.999999) / 100.0)


def _percent(log: float) -> float:
    return 100.0 * math.expm1(log)
