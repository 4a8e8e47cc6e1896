"""Steps between majors that findings at point releases explain. Pure.

From the newest release of line A, A.x, to that of line B, B.y, all that came to B up to B.y changed, and what came to
A up to A.x as well is on both sides. So of a series' step, in logs, the findings of line B explain their sum, less that
of line A: 18.2 brought 44.9 % of the 45.6 % between 13.23 and 18.6. Where a line has results of its newest release
alone, the change of other lines explains its step when the functions that moved there moved here, by as much.

A series that is explained but for what it could not have shown is told where its explanation is, and leaves the step
between majors; a finding of which nothing else is left is told there altogether.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from detector.remaining import left_out_sentence, with_moves
from detector.signatures import SAME_DAY, Signature, StepKey, contained, functions_alike, log_steps, signature_of
from detector.wording import signed
from history.keys import boundary
from history.metrics import MetricRegistry
from history.model import (
    MAJORS,
    NOT_FILED,
    TIERS,
    ChangeLine,
    ExplainedStep,
    Finding,
    Move,
    Release,
    SeriesKey,
)
from history.versions import version_key

#: What explains less than the first part of a step, in logs, says nothing of it; what explains more than the second
#: is something else, since a step cannot be less than its part by more than the series could have shown.
LEAST_PART, MOST_PART = 0.2, 1.25
#: A step is explained whole when so much of it is left, or less than the series could have shown; but never with less
#: than half of it explained.
REST_PART, HALF = 0.1, 0.5
#: Part of the functions of a change, by instructions, that a step between majors has to show; less on the same day.
CONTAINED = 0.8
#: Steps that are named in the evidence, the largest first.
MOST_NAMED = 4


def explain_majors(
    findings: Mapping[str, Finding],
    signatures: Mapping[str, Signature],
    releases: Sequence[Release],
    metrics: MetricRegistry,
) -> dict[str, Finding]:
    """`findings` by key, those on `majors` with what explains them, and the changes that do with a row for each line
    where only such a step shows them. `signatures` are of findings at point releases, by key."""
    told = dict(findings)
    at_points = [findings[key] for key in signatures]
    for step in findings.values():
        if step.line != MAJORS or step.kind not in ("regression", "improvement") or step.cause in NOT_FILED:
            continue
        here, there = (boundary(step.dbms, MAJORS, version) for version in (step.release, step.previous))
        inside = _up_to(at_points, step.dbms, here, step.release)
        on_both = _up_to(at_points, step.dbms, there, step.previous)
        days = days_up_to(releases, step.dbms, here, step.release)
        signature = signature_of(step, (), days, metrics)
        shown = [
            change
            for change in at_points
            if change.kind == step.kind
            and not change.same_as
            and not {here, there} & {change.line, *(row.line for row in change.lines)}
            and _shows(signature, signatures[change.key])
        ]
        explained = _explained(step, inside, on_both, shown, metrics)
        if not explained:
            continue
        told[step.key] = _rest(step, explained, {finding.key: finding for finding in at_points}, metrics)
        for key in told[step.key].explained_by:
            told[key] = _with_step(told[key], step, explained, at_points, here if key in _keys(shown) else "")
    return told


def days_up_to(releases: Iterable[Release], dbms: str, line: str, version: str) -> set[date]:
    """When the releases of a line came out, up to `version`, as far as that is known."""
    last = version_key(dbms, version)
    return {
        release.released
        for release in releases
        if (release.dbms, release.line) == (dbms, line)
        and release.released
        and version_key(dbms, release.version) <= last
    }


def _up_to(findings: Iterable[Finding], dbms: str, line: str, version: str) -> list[Finding]:
    """Findings of a line at or below `version`."""
    last = version_key(dbms, version)
    return [one for one in findings if (one.dbms, one.line) == (dbms, line) and version_key(dbms, one.release) <= last]


def _keys(findings: Iterable[Finding]) -> set[str]:
    return {finding.key for finding in findings}


def _shows(step: Signature, change: Signature) -> bool:
    """Whether the functions of a change moved in the step by as much; sizes alone prove nothing between majors."""
    alike = functions_alike(change, step, contained)
    return alike is not None and alike >= CONTAINED - SAME_DAY * bool(step.days & change.days)


def _explained(
    step: Finding,
    inside: Sequence[Finding],
    on_both: Sequence[Finding],
    shown: Sequence[Finding],
    metrics: MetricRegistry,
) -> list[ExplainedStep]:
    """What is explained of each moved series: by findings `inside` its line and changes `shown` by it, less what is
    `on_both` sides."""
    gained: dict[SeriesKey, dict[str, float]] = defaultdict(dict)
    lost: dict[SeriesKey, dict[str, float]] = defaultdict(dict)
    for finding in inside:
        for move in _with_levels(finding.moves):
            gained[_on_majors(move)][finding.key] = math.log(move.after / move.before)
    for finding in on_both:
        for move in _with_levels(finding.moves):
            lost[_on_majors(move)][finding.key] = math.log(move.after / move.before)
    for change in shown:
        steps = log_steps(change.moves)
        for move in step.moves:
            size = steps.get(StepKey(move.key.benchmark, move.key.test, move.key.metric))
            if size is not None:
                gained[move.key][change.key] = size
    own_kind = {finding.key: finding for finding in (*inside, *shown) if finding.kind == step.kind}
    explained = []
    for move in _with_levels(step.moves):
        whole_step = math.log(move.after / move.before)
        of_series = gained[move.key]
        by = [key for key in sorted(of_series) if key in own_kind and of_series[key] * whole_step > 0]
        if not by:
            continue
        part = math.fsum(of_series.values()) - math.fsum(lost[move.key].values())
        less = [*(key for key in sorted(of_series) if key not in by), *sorted(lost[move.key])]
        too_much = part / whole_step > MOST_PART and abs(whole_step - part) > _unseen(move, metrics)
        if part / whole_step >= LEAST_PART and not too_much:
            # What is sure is not told by what is not.
            sure = all(TIERS.index(own_kind[key].tier) >= TIERS.index(move.tier) for key in by)
            explained.append(_step(move, whole_step, part, by, less, metrics, sure=sure))
    return explained


def _step(
    move: Move,
    whole_step: float,
    part: float,
    by: Sequence[str],
    less: Sequence[str],
    metrics: MetricRegistry,
    *,
    sure: bool,
) -> ExplainedStep:
    rest = whole_step - part
    return ExplainedStep(
        key=move.key,
        change_pct=move.change_pct,
        explained_pct=100.0 * math.expm1(part),
        rest_pct=100.0 * math.expm1(rest),
        by=tuple(by),
        less=tuple(less),
        whole=sure
        and part / whole_step >= HALF
        and abs(rest) <= max(REST_PART * abs(whole_step), _unseen(move, metrics)),
    )


def _unseen(move: Move, metrics: MetricRegistry) -> float:
    """The largest step, as a log, that the series of a move could have had without showing it."""
    return math.log1p(max(metrics[move.key.metric].smallest_change_pct, move.mde_pct) / 100.0)


def _rest(
    step: Finding, explained: Sequence[ExplainedStep], at_points: Mapping[str, Finding], metrics: MetricRegistry
) -> Finding:
    """The step without the series that are explained whole; with all of them where nothing else goes its way."""
    sizes: dict[str, float] = defaultdict(float)
    for one in explained:
        for key in one.by:
            sizes[at_points[key].same_as or key] += abs(math.log1p(one.explained_pct / 100.0))
    sentences = [explained_sentence(one, at_points) for one in _by_size(explained)]
    if len(sentences) > MOST_NAMED:
        sentences[MOST_NAMED:] = [f"{len(sentences) - MOST_NAMED} more series are explained in the same way."]
    whole = {one.key for one in explained if one.whole}
    left = [move for move in step.moves if move.key not in whole]
    told = step
    if whole and any(move.direction == step.kind for move in left):
        told = with_moves(step, left, metrics)
        sentences.append(left_out_sentence(left, step))
    return told.model_copy(
        update={
            "explained": tuple(explained),
            "explained_by": tuple(sorted(sizes, key=lambda key: (-sizes[key], key))),
            "evidence": (*told.evidence, *sentences),
        }
    )


def _with_step(
    lead: Finding, step: Finding, explained: Sequence[ExplainedStep], at_points: Sequence[Finding], line: str
) -> Finding:
    """The finding that leads a change, with what the change explains of `step`; `line` where only that shows it."""
    of_change = {finding.key for finding in at_points if lead.key in (finding.key, finding.same_as)}
    largest = _by_size(one for one in explained if of_change & set(one.by))[0]
    sides = " → ".join(boundary(step.dbms, MAJORS, version) for version in (step.previous, step.release))
    others = [finding for finding in at_points if finding.key in largest.by and finding.key not in of_change]
    explain = f"this and the {_changes(others)} explain" if others else "this change explains"
    sentence = f"Between majors, {sides}: {explain} {_part(largest, {one.key: one for one in at_points})}."
    rows = lead.lines
    if line:
        rows = (*rows, ChangeLine.of(step, line, largest.key.test, largest.key.metric))
    return lead.model_copy(update={"lines": rows, "evidence": (*lead.evidence, sentence)})


def explained_sentence(one: ExplainedStep, findings: Mapping[str, Finding]) -> str:
    """`The change at 18.2 explains +44.9 of the +45.6 % in scan.range100 (insn/o).`; `findings` by key."""
    left = "" if one.whole else f"; {signed(one.rest_pct)} is left"
    changes = _changes([findings[key] for key in one.by])
    return f"The {changes} explain{'s' * (len(one.by) == 1)} {_part(one, findings)}{left}."


def _changes(findings: Sequence[Finding]) -> str:
    """`change at 18.2`, or `changes at 8.0.20, 8.0.28 and 8.0.35`: releases in their order."""
    names = list(
        dict.fromkeys(one.release for one in sorted(findings, key=lambda one: version_key(one.dbms, one.release)))
    )
    listed = " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    return f"{'change' if len(names) == 1 else 'changes'} at {listed}"


def _part(one: ExplainedStep, findings: Mapping[str, Finding]) -> str:
    """`+44.9 of the +45.6 % in scan.range100 (insn/o)`, or `all of the +44.1 %` where it is as much or more; `net of
    the change at 17.3` where that is taken off."""
    part, step = signed(one.explained_pct), signed(one.change_pct)
    every = one.whole and (part == step or abs(one.explained_pct) >= abs(one.change_pct))
    net = f", net of the {_changes([findings[key] for key in one.less])}" if one.less else ""
    return f"{'all' if every else part.removesuffix(' %')} of the {step} in {one.key.test} ({one.key.metric}){net}"


def _by_size(explained: Iterable[ExplainedStep]) -> list[ExplainedStep]:
    return sorted(explained, key=lambda one: (-abs(math.log1p(one.explained_pct / 100.0)), one.key.id))


def _with_levels(moves: Iterable[Move]) -> list[Move]:
    return [move for move in moves if move.before > 0 and move.after > 0]


def _on_majors(move: Move) -> SeriesKey:
    return move.key.model_copy(update={"line": MAJORS})
