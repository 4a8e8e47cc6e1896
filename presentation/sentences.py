"""What a finding says, in sentences of plain text. Pure.

Names of tests and releases are foreign text: whoever prints a sentence escapes it as its own format needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from history.keys import boundary
from history.metrics import MetricRegistry
from history.model import MAJORS, Cause, Finding, Part, SettingsSplit, SplitCause, Tier
from history.toolchains import BUILD, COMPILER, HERE, other_builder, sides_in_words
from presentation.headline import Headline, MetricChange, dbms_name, headline_moves, release_name
from presentation.number_format import count, interval, listing, percent, signed

#: So many versions between two releases are named one by one.
MOST_NAMED = 6
#: With more of them they are another counting, not a gap.
MOST_ABSENT = 60
#: So many settings are named in a sentence.
MOST_SETTINGS = 6
#: Causes that are not the product's code.
OTHER_CAUSES: dict[Cause, str] = {
    "machine": "the machine",
    "config": "the settings of the server, which differ",
    "epoch": "the set-up of the host, which differs",
    "sla": "a step that missed its target rate",
}
#: What people read for a cause.
CAUSES: dict[Cause, str] = {
    "product": "the code",
    "config": "the settings",
    "both": "settings and code",
    "plan": "the query plan",
    "toolchain": "the build",
    "machine": "the machine",
    "epoch": "the host's set-up",
    "sla": "a missed target rate",
}
#: What a split of several tests is of: those that differ, all where none does.
TOGETHER = "the tests together"
#: Who did it, by the cause of a split.
DID: dict[SplitCause, str] = {
    "config": "the settings did it",
    "product": "the {code} did it",
    "both": "both did",
    "": "which of them did it is not clear",
}
#: What people read for a tier: files, options and JSON keep its name.
TIER_WORDS: dict[Tier, str] = {
    "provisional": "suspected",
    "confirmed": "confirmed",
    "unconfirmed": "not seen again",
}
#: What each tier means.
TIERS: dict[Tier, str] = {
    "provisional": "seen once, and not confirmed by later blocks",
    "confirmed": "measured again, and seen again",
    "unconfirmed": "measured again, and not seen",
}


def sureness(tier: Tier) -> str:
    """`Suspected: seen once, and not confirmed by later blocks.`"""
    word = TIER_WORDS[tier]
    return f"{word[:1].upper()}{word[1:]}: {TIERS[tier]}."


def shown_part(part: Part) -> str:
    """`+58.5 % (+57.9 to +59.1 %)`."""
    if part.low_pct is None or part.high_pct is None:
        return signed(part.change_pct)
    return f"{signed(part.change_pct)} ({interval(part.low_pct, part.high_pct)})"


def split_sentence(
    split: SettingsSplit, name: Callable[[str], str] = str, whole: str = "it", rest: str = "code"
) -> str:
    """By how much settings change `whole`, and by how much the `rest` does; `name` makes the name of a setting safe for
    where it will stand.

    >>> from history.model import SettingChange
    >>> parts = {"settings": Part(change_pct=58.5, low_pct=57.9, high_pct=59.1), "code": Part(change_pct=0.1)}
    >>> change = SettingChange(name="dives", before="10", after="200", cause="default")
    >>> split_sentence(SettingsSplit(cause="config", **parts, held=(change,)))
    'Settings (dives) change it by +58.5 % (+57.9 to +59.1 %), code by +0.10 %: the settings did it.'
    """
    names = [change.name for change in split.held] if split.cause != "product" else []  # no part of it is theirs
    more = f" and {len(names) - MOST_SETTINGS} more" if len(names) > MOST_SETTINGS else ""
    which = f" ({', '.join(map(name, names[:MOST_SETTINGS]))}{more})" if names else ""
    settings, code = shown_part(split.settings), shown_part(split.code)
    return f"Settings{which} change {whole} by {settings}, {rest} by {code}: {DID[split.cause].format(code=rest)}."


def summary(finding: Finding, lead: Headline) -> str:
    """What changed in the test that lost most and by how much, and how many tests moved beside it."""
    test = lead.change.worst_test
    changed = f"{lead.changed}{lead.per}"
    if finding.kind == "environment":
        return (
            f"On {listing(lead.servers)} {test} {changed} since {release_name(finding)} was measured, and the evidence "
            f"points at the machine, not at {dbms_name(finding.dbms)}. {spread(finding, lead)}"
        )
    # Levels are of all releases up to the boundary, and from it on.
    changed += f" from {finding.dbms} {finding.release} on than up to {finding.previous}"
    if finding.line == MAJORS:
        before, after = (boundary(finding.dbms, MAJORS, side) for side in (finding.previous, finding.release))
        changed += f", the newest measured releases of {after} and {before}"
    if finding.kind == "drift":
        # The change is that of the newest release; the finding's own is the first at which it was clear.
        changed = (
            f"on {finding.dbms} {finding.line} {lead.changed}{lead.per} than {'on ' if lead.verb == 'needs' else ''}"
            f"{finding.previous} in small steps, none of them large enough alone; it is clear since {finding.release}"
        )
    compiler = built(finding)
    # Settings can be told from the rest, the compiler cannot.
    rest = "code with its compiler" if compiler else "code"
    made_of = "."
    if split := finding.split:
        # A rate and a cost have other signs, and the split is of all tests, not of the worst.
        own = "it" if lead.change.tests == 1 else TOGETHER
        whole = own if split.metric in ("", lead.metric) else f"{split.metric} of {TOGETHER}"
        made_of = f"; {_lower(split_sentence(split, whole=whole, rest=rest))}"
    trade = f", for {lead.trade}" if lead.trade else ""
    return f"{test} {changed}{trade}{compiler}{made_of} {spread(finding, lead)}"


def spread(finding: Finding, lead: Headline) -> str:
    """How many tests moved, of how many, from least to most."""
    change, elsewhere = lead.change, [server for server in lead.servers if server != lead.server]
    tests = f"{lead.moved} of {count(lead.tests, 'test')}" if lead.tests else count(lead.moved, "test")
    noise = "its noise" if lead.moved == 1 else "their noise"
    if any(step.whole for step in finding.explained) and not finding.wholly_explained:
        noise += " and than changes at point releases explain"
    groups = f" ({lead.what})" if lead.what else ""
    ends = change.ends if " to " in change.ends else f"each by {change.ends}"
    several = f": {', '.join(filter(None, (ends, change.typical)))}" if change.tests > 1 else ""
    seen = f" It is seen on {listing(elsewhere)} as well." if elsewhere else ""
    return f"{tests} on {lead.server} moved by more than {noise}{groups}{several}.{seen}"


def one_version(finding: Finding) -> bool:
    """Whether two vendors built the two sides from one version: `17.2` and `17.2+debian`. What was built here may be
    any commit on top of the version it is named for."""
    builders = [change for change in finding.toolchain if change.part == "builder"]
    here = any(side.startswith(HERE) for change in builders for side in (change.before, change.after))
    return bool(builders) and not here and finding.previous.partition("+")[0] == finding.release.partition("+")[0]


def built(finding: Finding) -> str:
    """What the first sentence adds where the compiler may have a part in the step; empty where it has none."""
    changes = [change for change in finding.toolchain if change.part in BUILD | COMPILER]
    if not changes:
        return ""
    if {change.part for change in changes} == {"assertions"}:
        checked = finding.release if changes[0].after == "on" else finding.previous
        return f"; {checked} was built with assertions and the other was not, so how much of it is theirs is not known"
    before, after = (side or "otherwise" for side in sides_in_words(changes))
    if one_version(finding):
        return f"; the two are builds of one version, by {before} and by {after}, so none of it is the code's"
    if other_builder(changes):
        return f"; the two are builds of {before} and of {after}, and how much of it is the compiler's is not known"
    return f"; the compiler changed too, from {before} to {after}, so part of the step may be the compiler's"


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def other_metrics(lead: Headline, metrics: MetricRegistry) -> str:
    """The other metrics that moved: `QPS up to −45.0 % in 32 tests (median −5.6 %)`; may be empty."""

    def phrase(change: MetricChange) -> str:
        tests = change.worst_test if change.tests == 1 else count(change.tests, "test")
        typical = f" ({change.typical})" if change.typical else ""
        return f"{metrics[change.metric].noun} {change.size} in {tests}{typical}"

    leading = [change for change in lead.others if metrics[change.metric].leads]
    rest = [change for change in lead.others if not metrics[change.metric].leads]
    sentences = [phrase(change) for change in leading]
    if rest and leading:
        sentences.append(count(len(rest), "other metric"))
    elif rest:
        sentences = list(dict.fromkeys(metrics[change.metric].noun for change in rest))
    return listing(sentences) if sentences else ""


def context(finding: Finding, lead: Headline, metrics: MetricRegistry) -> str:
    """What moved beside it, and how much of a change the leading test would show by itself."""
    worst = next(move for move in headline_moves(finding, metrics) if move.key.test == lead.change.worst_test)
    pooled = len(finding.moves) > 1 and finding.kind != "drift"
    together = "; the verdict stands on all that moved together, which shows smaller changes" if pooled else ""
    floor = (
        f"From release to release {worst.key.test} varies by {percent(worst.noise_pct)} (one standard deviation), so "
        f"by itself it shows a change of {percent(worst.mde_pct)} or more (four times in five){together}."
    )
    beside = other_metrics(lead, metrics)
    return f"Also at this boundary: {beside}. {floor}" if beside else floor


def warnings(finding: Finding) -> list[str]:
    """The finding's warnings, with the number of moves each is about."""
    counted = ((text, sum(text in move.warnings for move in finding.moves)) for text in finding.warnings)
    return [f"{text} ({moves} of {count(len(finding.moves), 'move')})" if moves else text for text, moves in counted]


def suspect_range(finding: Finding) -> str:
    """The releases that can hold the cause."""
    if finding.kind == "drift":
        text = (
            f"Small steps in many releases since {finding.previous} add up to it; the chart of its series shows where."
        )
    elif finding.line == MAJORS:
        line = boundary(finding.dbms, finding.line, finding.release)
        text = (
            f"{finding.previous} is the newest measured release of its line, {finding.release} that of line {line}: "
            "whatever came to that line up to there is in this range."
        )
    else:
        text = (
            f"{finding.previous} is the last measured release at the old level, {finding.release} the first at the new "
            f"one{_gap(finding)}"
        )
    if finding.cause == "toolchain" and not one_version(finding):
        text += (
            " The two sides come from two builders; only builds of both with one compiler can show whether the code "
            "has a part in it."
        )
    elif finding.cause in OTHER_CAUSES:
        text += f" The likely cause is not the product's code but {OTHER_CAUSES[finding.cause]}."
    return text


def _gap(finding: Finding) -> str:
    """What lies between the two sides of a point release's boundary."""
    if finding.unmeasured:
        return f"; not measured in between, and just as suspect: {listing(finding.unmeasured)}."
    if absent := absent_versions(finding.previous, finding.release):
        are = "is" if len(absent) == 1 else "are"
        named = listing(absent) if len(absent) <= MOST_NAMED else f"{absent[0]} to {absent[-1]}"
        return f"; {named} between them {are} not in the history, and what changed there is in this range too."
    return ", and no known release lies between them."


def absent_versions(previous: str, release: str) -> Sequence[str]:
    """Numbers between two point releases that the history knows nothing of: withdrawn, skipped, or never heard of.

    >>> absent_versions("8.0.28", "8.0.30"), absent_versions("18.1", "18.2"), absent_versions("15.4", "16.2")
    (['8.0.29'], [], [])
    >>> absent_versions("8.0.1", "8.0.99999999999")
    []
    """
    first, last = (re.fullmatch(r"((?:\d+\.)+)(\d+)", version) for version in (previous, release))
    if not first or not last or first[1] != last[1]:
        return []
    low, high = int(first[2]) + 1, int(last[2])
    # Compared before anything is made: a version comes from a file that nobody has checked.
    return [f"{first[1]}{number}" for number in range(low, high)] if high - low <= MOST_ABSENT else []
