"""Findings, replays and explanations as rows, words and JSON for the terminal. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detector.explain import Explanation
    from detector.replay import Replayed
    from history.model import Finding

#: Moves of a finding that the text shows, the largest first.
MOVES_SHOWN = 10


#: Columns of findings and of replays for programs.
FINDING_FIELDS = (
    "finding", "kind", "cause", "tier", "dbms", "line", "previous", "release", "tests", "metric", "median_pct",
    "worst_pct", "worst_test",
)  # fmt: skip
REPLAY_FIELDS = ("dbms", "measured", "delay", "stays", *(name for name in FINDING_FIELDS if name != "dbms"))


def finding_row(finding: Finding) -> dict[str, Any]:
    """FINDING_FIELDS; median and worst are of the metric that tells most: throughput if it moved, else the metric that
    most tests moved in."""
    from detector.moves import RANK, median_pct
    from detector.releases.kinds import resource_of

    metrics = [move.key.metric for move in finding.moves]

    def rank(metric: str) -> tuple[int, int, str]:
        resource = resource_of(metric)
        return RANK.index(resource) if resource in RANK else len(RANK), -metrics.count(metric), metric

    metric = min(set(metrics), key=rank)
    of_metric = [move for move in finding.moves if move.key.metric == metric]
    worst = max(of_metric, key=lambda move: (abs(move.change_pct), move.key.id))
    return {
        "finding": finding.key,
        "kind": finding.kind,
        "cause": finding.cause,
        "tier": finding.tier,
        "dbms": finding.dbms,
        "line": finding.line,
        "previous": finding.previous,
        "release": finding.release,
        "tests": len({move.key.test for move in finding.moves}),
        "metric": metric,
        "median_pct": round(median_pct(of_metric), 4),
        "worst_pct": round(worst.change_pct, 4),
        "worst_test": worst.key.test,
    }


def finding_shown(finding: Finding) -> dict[str, Any]:
    """The same for people."""
    row = finding_row(finding)
    return row | {
        "median": f"{row['metric']} {row['median_pct']:+.1f} %",
        "worst": f"{row['worst_pct']:+.1f} % {row['worst_test']}",
    }


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
    return "\n".join(lines) + "\n"


def _seen(event: Replayed) -> str:
    if event.delay == 0:
        return "same release"
    return f"{event.delay} release{'s' if event.delay > 1 else ''} later"


def replayed_row(event: Replayed) -> dict[str, Any]:
    """REPLAY_FIELDS."""
    moment = {"dbms": event.dbms, "measured": event.newest, "delay": event.delay, "stays": event.stays}
    return moment | finding_row(event.finding)


def replayed_shown(event: Replayed) -> dict[str, Any]:
    """The same for people."""
    return finding_shown(event.finding) | {
        "measured": f"{event.dbms} {event.newest}",
        "seen": _seen(event),
        "still there": "yes" if event.stays else "no",
    }


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
