"""Findings, replays and explanations as rows, words and JSON for the terminal. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from detector.explain import Explanation
    from detector.replay import Replayed
    from history.model import Finding, Move

#: Moves of a finding that the text shows, the largest first.
MOVES_SHOWN = 10


def _tests(moves: Sequence[Move]) -> str:
    return str(len({move.key.test for move in moves}))


def _sizes(finding: Finding) -> tuple[str, str]:
    """Median and worst of the moves: in throughput if it moved, else in the metric that most tests moved in."""
    from detector.moves import RANK, median_pct
    from detector.releases.kinds import resource_of

    metrics = [move.key.metric for move in finding.moves]

    def rank(metric: str) -> tuple[int, int, str]:
        resource = resource_of(metric)
        return RANK.index(resource) if resource in RANK else len(RANK), -metrics.count(metric), metric

    metric = min(set(metrics), key=rank)
    of_metric = [move for move in finding.moves if move.key.metric == metric]
    worst = max(of_metric, key=lambda move: (abs(move.change_pct), move.key.id))
    return f"{metric} {median_pct(of_metric):+.1f} %", f"{worst.change_pct:+.1f} % {worst.key.test}"


def finding_row(finding: Finding) -> tuple[str, ...]:
    return (
        finding.key,
        finding.cause,
        finding.tier,
        finding.previous,
        _tests(finding.moves),
        *_sizes(finding),
    )


def finding_text(finding: Finding) -> str:
    lines = [f"{finding.key}: {finding.tier}, cause {finding.cause}, after {finding.previous}"]
    if finding.unmeasured:
        lines.append(f"  not measured in between: {', '.join(finding.unmeasured)}")
    largest = sorted(finding.moves, key=lambda move: (-abs(move.change_pct), move.key.id))
    for move in largest[:MOVES_SHOWN]:
        lines.append(
            f"  {move.key.server} {move.key.test} {move.key.metric}: {move.before:.6g} -> {move.after:.6g} {move.unit} "
            f"({move.change_pct:+.1f} %, {move.low_pct:+.1f} to {move.high_pct:+.1f}), "
            f"probability {move.probability:.2f}"
        )
    if len(largest) > MOVES_SHOWN:
        lines.append(f"  and {len(largest) - MOVES_SHOWN} smaller moves")
    lines += [f"  {sentence}" for sentence in finding.evidence]
    lines += [f"  note: {warning}" for warning in finding.warnings]
    return "\n".join(lines)


def _seen(event: Replayed) -> str:
    if event.delay == 0:
        return "same release"
    return f"{event.delay} release{'s' if event.delay > 1 else ''} later"


def replayed_row(event: Replayed) -> tuple[str, ...]:
    return (
        f"{event.dbms} {event.newest}",
        event.finding.key,
        _seen(event),
        _tests(event.finding.moves),
        *_sizes(event.finding),
        "yes" if event.stays else "no",
    )


def replayed_text(event: Replayed) -> str:
    stays = "" if event.stays else "  later releases take it back\n"
    return f"With {event.dbms} {event.newest} ({_seen(event)}):\n{stays}{finding_text(event.finding)}"


def replayed_json(event: Replayed) -> dict[str, Any]:
    return {
        "dbms": event.dbms,
        "line": event.line,
        "measured": event.newest,
        "delay": event.delay,
        "stays": event.stays,
        "finding": event.finding.model_dump(mode="json"),
    }


def explanation_text(found: Explanation) -> str:
    lines = [
        found.key.id,
        f"  {found.releases} releases, {found.blocks} blocks",
        f"  {found.rule}",
        f"  noise floor {found.noise_pct:.2g} % from release to release (expected {found.prior_noise_pct:.2g} %)",
        f"  smallest change that would be found: {found.mde_newest_pct:.2g} % in the newest release alone, "
        f"{found.mde_middle_pct:.2g} % in the middle of the line",
    ]
    lines += [f"  {note}" for note in found.notes]
    if not found.cases:
        lines.append("  no release of this series is suspected of a change")
    for case in found.cases:
        verdict = "changed" if case.listed else "not listed"
        lines.append(
            f"  {case.previous} -> {case.release}: {verdict}, {case.change_pct:+.1f} % "
            f"({case.low_pct:+.1f} to {case.high_pct:+.1f}), probability {case.probability:.2f}"
        )
        lines += [f"    for: {argument}" for argument in case.pro]
        lines += [f"    against: {argument}" for argument in case.contra]
    return "\n".join(lines)
