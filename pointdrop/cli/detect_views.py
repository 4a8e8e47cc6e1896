"""Findings, replays and explanations as rows, words and JSON for the terminal. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from presentation import sentences
from presentation.change_lines import how_sure, line_rows, probably_affected, told_elsewhere
from presentation.findings import (
    FINDING_COLUMNS,
    finding_record,
    finding_row,
    findings_frame,
    ordered_moves,
    records,
)
from presentation.headline import headline, release_name, title
from presentation.near_zero import levels_text
from presentation.number_format import grouped, interval, listing, probability, signed
from presentation.ranking import BETWEEN_MAJORS, POINT_RELEASES, section_of

if TYPE_CHECKING:
    from detector.explanation import BoundaryCase, Explanation
    from detector.replay import Replayed
    from history.metrics import MetricRegistry
    from history.model import Finding, Move

#: Moves of a finding that the text shows, the largest first.
MOVES_SHOWN = 10
#: Columns of a replay for programs.
REPLAY_COLUMNS = ("dbms", "measured", "delay", "stays", *(name for name in FINDING_COLUMNS if name != "dbms"))


def finding_text(finding: Finding, metrics: MetricRegistry) -> str:
    """A finding with its largest moves and the evidence."""
    lead = headline(finding, metrics)
    lines = [title(finding, lead) if lead else release_name(finding)]
    sure = f"{sentences.TIER_WORDS[finding.tier]} ({sentences.TIERS[finding.tier]})"
    lines.append(f"  {finding.key}: {sure}, cause {finding.cause}")
    moves = ordered_moves(finding, metrics)
    for move in moves[:MOVES_SHOWN]:
        own = "" if move.tier == finding.tier else f", {sentences.TIER_WORDS[move.tier]}"
        lines.append(
            f"  {move.key.server} {move.key.test} {move.key.metric}: {grouped(move.before)} -> {grouped(move.after)} "
            f"{move.unit} {_change(move)}{probability(move.probability)}{own}"
        )
    if len(moves) > MOVES_SHOWN:
        lines.append(f"  and {len(moves) - MOVES_SHOWN} smaller moves")
    if told := _told(finding):
        lines.append(f"  {told}")
    for row in line_rows(finding, metrics)[1:]:
        lines.append(
            f"  the same change in line {row.line}: {row.release} after {row.previous}, {row.test} {row.metric} "
            f"{signed(row.change_pct)}, {how_sure(finding.dbms, row)} "
            f"({row.finding})"
        )
    if probable := probably_affected(finding):
        lines.append(f"  {probable}")
    lines += [f"  {sentence}" for sentence in (sentences.suspect_range(finding), *finding.evidence)]
    lines += [f"  warning: {warning}" for warning in sentences.warnings(finding)]
    return "\n".join(lines) + "\n"


def _told(finding: Finding) -> str:
    """`the same change as postgres/18/18.2/regression`; empty for what is told by itself."""
    words, keys = told_elsewhere(finding)
    return f"{words} {listing(keys)}" if keys else ""


def findings_text(findings: Sequence[Finding], metrics: MetricRegistry) -> str:
    """Each with its evidence, in the order of lists; what stands between majors under a title of its own."""
    texts, section = [], POINT_RELEASES
    for finding in findings:
        if section_of(finding.line) != section:
            section = section_of(finding.line)
            texts.append(f"{section}\n")
        texts.append(finding_text(finding, metrics))
    return "\n".join(texts)


def findings_for_people(findings: Sequence[Finding], metrics: MetricRegistry) -> dict[str, list[dict[str, Any]]]:
    """A row a finding, by the section it stands in."""
    sections: dict[str, list[dict[str, Any]]] = {POINT_RELEASES: [], BETWEEN_MAJORS: []}
    elsewhere = {finding.key: _told(finding) for finding in findings}
    if findings:  # pandas is loaded for rows alone
        for row in records(findings_frame(findings, metrics)):
            words = {"how sure": sentences.TIER_WORDS[row["tier"]], "cause": sentences.CAUSES[row["cause"]]}
            if told := elsewhere[row["finding"]]:
                words["title"] = f"{row['title']}; {told}"
            sections[section_of(row["line"])].append(row | words)
    return sections


def _change(move: Move) -> str:
    """Nothing near zero, where the levels say it all."""
    return "" if move.near_zero else f"({signed(move.change_pct)}, {interval(move.low_pct, move.high_pct)}), "


def _seen(event: Replayed) -> str:
    if event.delay == 0:
        return "same release"
    return f"{event.delay} release{'s' if event.delay > 1 else ''} later"


def replayed_row(event: Replayed, metrics: MetricRegistry) -> dict[str, Any]:
    """REPLAY_COLUMNS, and `seen` and `still there` for people."""
    return {
        **finding_row(event.finding, metrics),
        "dbms": event.dbms,
        "measured": event.newest,
        "delay": event.delay,
        "stays": event.stays,
        "seen": _seen(event),
        "still there": "yes" if event.stays else "no",
    }


def replayed_text(event: Replayed, metrics: MetricRegistry) -> str:
    stays = "" if event.stays else "  later releases take it back\n"
    return f"With {event.dbms} {event.newest} ({_seen(event)}):\n{stays}{finding_text(event.finding, metrics)}"


def replayed_json(event: Replayed, metrics: MetricRegistry) -> dict[str, Any]:
    return {
        "dbms": event.dbms,
        "line": event.line,
        "measured": event.newest,
        "delay": event.delay,
        "stays": event.stays,
        "finding": finding_record(event.finding, metrics),
    }


def replay_score(events: Sequence[Replayed]) -> str:
    """How many findings of a replay stay: those of the release that was the newest apart, by how sure they were, since
    one block there makes a suspicion that the nightly measures again."""
    newest = [event for event in events if event.delay == 0]
    kinds = [
        (f"{word} on the newest release", [event for event in newest if event.finding.tier == tier])
        for tier, word in sentences.TIER_WORDS.items()
    ]
    kinds.append(("found later", [event for event in events if event.delay > 0]))
    texts = [
        f"{len(of_kind)} {name}, {sum(event.stays for event in of_kind)} of them still there"
        for name, of_kind in kinds
        if of_kind
    ]
    return f"{'; '.join(texts)}."


def _of_case(case: BoundaryCase) -> str:
    if case.near_zero:
        return levels_text(case.before, case.after)
    return f"{signed(case.change_pct)} ({interval(case.low_pct, case.high_pct)})"


def explanation_text(explanation: Explanation) -> str:
    lines = [
        explanation.key.id,
        f"  {explanation.releases} releases, {explanation.blocks} blocks",
        f"  {explanation.rule}",
        f"  noise floor {explanation.noise_pct:.2g} % from release to release "
        f"(expected {explanation.prior_noise_pct:.2g} %)",
        f"  smallest change that this series would show by itself: {explanation.mde_newest_pct:.2g} % in the newest "
        f"release alone, {explanation.mde_middle_pct:.2g} % in the middle of the line",
    ]
    lines += [f"  {note}" for note in explanation.notes]
    if not explanation.cases:
        lines.append("  no release of this series is suspected of a change")
    for case in explanation.cases:
        verdict = "changed" if case.listed else "not listed"
        lines.append(
            f"  {case.previous} -> {case.release}: {verdict}, {_of_case(case)}, probability {case.probability:.2f}"
        )
        lines += [f"    for: {argument}" for argument in case.pro]
        lines += [f"    against: {argument}" for argument in case.contra]
    return "\n".join(lines)
