"""Settings or code: what a difference is made of, from three arms side by side. Pure.

    base            the old release as its config has it
    the middle      the new release with the settings of the base, as far as it takes them
    candidate       the new release as its config has it

From base to the middle only the code changes, from there to the candidate only settings; the product of the two is the
whole step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from detector.compare import Comparison
from history.model import LeftSetting, Part, SettingChange, SettingsSplit, SplitCause, SplitRow

#: A part below this share of the whole step, in logs, is not what the step is made of.
LEAST_SHARE = 0.1

#: The whole step, what settings make of it, what code does.
Steps = tuple[Comparison, Comparison, Comparison]


def steps_of(
    base: Sequence[float],
    middle: Sequence[float],
    candidate: Sequence[float],
    verdict: Callable[[Sequence[float], Sequence[float]], Comparison],
) -> Steps:
    """The three steps of one test and metric from the block values of its arms."""
    return verdict(base, candidate), verdict(middle, candidate), verdict(base, middle)


def culprit(whole: Comparison, settings: Comparison, code: Comparison) -> SplitCause:
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


def of_family(culprits: Iterable[SplitCause]) -> SplitCause:
    """What the differences of all tests are made of.

    >>> of_family(["config", "", "config"]), of_family(["config", "product"]), of_family([""])
    ('config', 'both', '')
    """
    named = set(culprits) - {""}
    return named.pop() if len(named) == 1 else "both" if named else ""


def split_of(
    steps: Mapping[tuple[str, str], Steps], held: Sequence[SettingChange], left: Sequence[LeftSetting]
) -> SettingsSplit:
    """The split of all tests from the steps by (test, metric), of which there is one at least.

    Together they are told in one metric, the one in which most tests differ: a rate and a cost have other signs.
    """
    rows = tuple(
        SplitRow(test=test, metric=metric, cause=culprit(*of), settings=together(of[1:2]), code=together(of[2:]))
        for (test, metric), of in steps.items()
    )
    different = {key: of for key, of in steps.items() if of[0].verdict == "DIFFERENT"} or steps
    metrics = [metric for _, metric in different]
    leading = max(dict.fromkeys(metrics), key=metrics.count)
    told = [of for (_, metric), of in different.items() if metric == leading]
    return SettingsSplit(
        cause=of_family(row.cause for row in rows),
        settings=together([of[1] for of in told]),
        code=together([of[2] for of in told]),
        metric=leading,
        held=tuple(held),
        left=tuple(left),
        tests=rows,
    )


def of_tests(split: SettingsSplit, tests: Container[tuple[str, str]]) -> SettingsSplit | None:
    """The split of some of its tests, by (test, metric); None where it says nothing of them."""
    rows = tuple(row for row in split.tests if (row.test, row.metric) in tests)
    if not rows:
        return None
    different = [row for row in rows if row.cause] or list(rows)
    metrics = [row.metric for row in different]
    leading = max(dict.fromkeys(metrics), key=metrics.count)
    told = [row for row in different if row.metric == leading]
    update = {
        "cause": of_family(row.cause for row in rows),
        "settings": together([row.settings for row in told]),
        "code": together([row.code for row in told]),
        "metric": leading,
        "tests": rows,
    }
    return split.model_copy(update=update)


def together(comparisons: Sequence[Comparison | Part]) -> Part:
    """The geometric mean of the changes of several tests, with the interval of that mean.

    >>> mean = together([Comparison("DIFFERENT", 21.0, 10.0, 33.1, 2, 2), Comparison("SAME", 0.0, 0.0, 0.0, 2, 2)])
    >>> round(mean.change_pct, 6), round(mean.low_pct, 2), round(mean.high_pct, 2)
    (10.0, 4.88, 15.37)
    """
    many = len(comparisons)
    middle = math.fsum(_log(one.change_pct) for one in comparisons) / many
    half = math.sqrt(math.fsum(_half_width(one) ** 2 for one in comparisons)) / many
    if not math.isfinite(half):
        return Part(change_pct=_percent(middle))
    return Part(change_pct=_percent(middle), low_pct=_percent(middle - half), high_pct=_percent(middle + half))


def _half_width(one: Comparison | Part) -> float:
    """Half the width of an interval, in logs; infinite where there is none."""
    low, high = one.low_pct, one.high_pct
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return math.inf
    return (_log(high) - _log(low)) / 2.0


def _log(pct: float) -> float:
    return math.log1p(max(pct, -99.999999) / 100.0)


def _percent(log: float) -> float:
    return 100.0 * math.expm1(log)
