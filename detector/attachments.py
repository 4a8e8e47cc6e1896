"""What the history knows of the two sides of a finding beside its values: functions, plans, options, builds, service
levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from detector.evidence import plans_sentence
from history.function_costs import function_changes
from history.model import (
    Cause,
    Finding,
    FunctionChange,
    FunctionCost,
    LineKey,
    PlanChange,
    Series,
    SettingChange,
    SettingsSplit,
    StatementPlan,
    ToolchainChange,
)
from history.sla import SLA_SHARE, sla_shares
from history.toolchains import other_builder, toolchain_sentences

#: So many functions by the size of their change are listed.
MOST_FUNCTIONS = 10
#: So many settings that differ are named in a sentence, with so many characters of a value.
MOST_SETTINGS, LONGEST_VALUE = 12, 60
#: Causes that a third arm may overrule; it cannot tell another compiler or machine from code.
SPLIT_CAUSES: tuple[Cause, ...] = ("product", "config", "plan")
CHANGED_BY = {"default": "new default", "config": "set to both", "one side": "set on one side only"}
#: A function's change below this many percent of the test's instructions is left out.
LEAST_FUNCTION_PCT = 0.1


def attach(
    finding: Finding,
    *,
    functions_before: Mapping[str, Sequence[FunctionCost]] | None = None,
    functions_after: Mapping[str, Sequence[FunctionCost]] | None = None,
    plans_before: Mapping[str, Sequence[StatementPlan]] | None = None,
    plans_after: Mapping[str, Sequence[StatementPlan]] | None = None,
    config_changes: Sequence[str] = (),
    one_sided_options: Sequence[str] = (),
    settings: Sequence[SettingChange] = (),
    toolchain: Sequence[ToolchainChange] = (),
    split: SettingsSplit | None = None,
    sla_failures: Mapping[str, str] | None = None,
) -> Finding:
    """`finding` with what the caller looked up about its two sides, all mappings by test.

    Two builders make the cause `toolchain`, whatever else differs: the compiler's part of the step is not known then.
    Plans that differ on most of the tests that moved make the cause `plan`, options that somebody changed make it
    `config`, service levels missed by most of the tests that moved make it `sla`; a cause that is already not `product`
    stays. A step that was split into settings and code has the cause that the split found. Options that only one of the
    releases has, and defaults that the release changed, are evidence and no cause.
    """
    tests = sorted({move.key.test for move in finding.moves})
    functions = _functions(tests, functions_before or {}, functions_after or {})
    plans = _plans(tests, plans_before or {}, plans_after or {})
    changed = {plan.test for plan in plans}
    evidence = list(finding.evidence)
    cause = finding.cause
    if cause == "product":
        if other_builder(toolchain):
            cause = "toolchain"
        elif tests and len(set(tests) & set(sla_failures or ())) > len(tests) / 2:
            cause = "sla"
        elif config_changes:
            cause = "config"
        elif tests and len(changed) > len(tests) / 2:
            cause = "plan"
    if split and split.cause and cause in SPLIT_CAUSES:
        cause = split.cause
    if split:  # listed in its order, likeliest cause first
        held = [change.name for change in split.held]
        settings = sorted(settings, key=lambda change: held.index(change.name) if change.name in held else len(held))
    if plans:
        evidence.append(plans_sentence(len(changed), len(tests)))
    evidence += [f"An option was changed: {change}." for change in config_changes]
    if settings:
        evidence.append(f"Settings that differ: {_listed(settings)}.")
    if one_sided_options:
        evidence.append(f"Options of one side only: {'; '.join(one_sided_options)}.")
    evidence += toolchain_sentences(toolchain)
    evidence += [f"Service level missed: {failure}." for failure in (sla_failures or {}).values()]
    return finding.model_copy(
        update={
            "cause": cause,
            "functions": functions,
            "plans": plans,
            "settings": tuple(settings),
            "toolchain": tuple(toolchain),
            "split": split,
            "evidence": tuple(dict.fromkeys(evidence)),
        }
    )


def _listed(settings: Sequence[SettingChange]) -> str:
    """`dives 10 → 200 (new default); ... and 3 more`."""
    words = [
        f"{s.name} {' → '.join(_short(side) for side in _differing(s.before, s.after))} ({CHANGED_BY[s.cause]})"
        for s in settings
    ]
    more = f"; and {len(words) - MOST_SETTINGS} more" if len(words) > MOST_SETTINGS else ""
    return "; ".join(words[:MOST_SETTINGS]) + more


def _differing(before: str, after: str) -> tuple[str, str]:
    """Of long lists of switches what only one side has: cut short, both would read the same.

    >>> _differing("merge=on," + "x=off," * 20 + "mrr=on", "merge=on," + "x=off," * 20 + "mrr=off")
    ('mrr=on', 'mrr=off')
    """
    if max(len(before), len(after)) <= LONGEST_VALUE:
        return before, after
    old, new = before.split(","), after.split(",")
    return ",".join(item for item in old if item not in new), ",".join(item for item in new if item not in old)


def _short(value: str) -> str:
    """A value that can stand in a sentence; nothing is `''`."""
    return value if 0 < len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}..." if value else "''"


def _functions(
    tests: Sequence[str], before: Mapping[str, Sequence[FunctionCost]], after: Mapping[str, Sequence[FunctionCost]]
) -> tuple[FunctionChange, ...]:
    """The functions whose cost changed most, over all tests that have both sides."""
    changes = []
    for test in tests:
        costs = before.get(test, ())
        least = LEAST_FUNCTION_PCT / 100.0 * (sum(cost.insn_per_op for cost in costs) or 1.0)
        of_test = function_changes(test, costs, after.get(test, ()))
        changes += [change for change in of_test if abs(change.after - change.before) >= least]
    changes.sort(key=lambda change: (-abs(change.after - change.before), change.test, change.function))
    return tuple(changes[:MOST_FUNCTIONS])


def _plans(
    tests: Sequence[str], before: Mapping[str, Sequence[StatementPlan]], after: Mapping[str, Sequence[StatementPlan]]
) -> tuple[PlanChange, ...]:
    """Statements whose plan has another shape."""
    changes = []
    for test in tests:
        left, right = ({plan.statement: plan for plan in side.get(test, ())} for side in (before, after))
        for statement in sorted(left.keys() & right.keys()):
            old, new = left[statement], right[statement]
            if old.digest != new.digest:
                changes.append(PlanChange(test=test, statement=statement, before=old.text, after=new.text))
    return tuple(changes)


def missed_service_levels(finding: Finding, series: Iterable[Series]) -> dict[str, str]:
    """By test of `finding`: what share of the inserts it promises the release reached, where that was too little.

    A test is looked at where it moved: same line, server, config and benchmark.
    """
    places = {(LineKey.of(move.key), move.key.test) for move in finding.moves}
    moved = [member for member in series if (LineKey.of(member.key), member.key.test) in places]
    failures = {}
    for key, shares in sorted(sla_shares(moved).items(), key=lambda item: item[0].id):
        share = shares.get(finding.release, 1.0)
        if share < SLA_SHARE:
            failures[key.test] = (
                f"{key.test} on {key.server} with {key.config} reached {share:.0%} of its inserts in {finding.release}"
            )
    return failures
