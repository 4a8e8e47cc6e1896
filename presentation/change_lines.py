"""One change that came to several lines, as issues, pages and the terminal tell it. Pure.

`line_rows` has a row a line, that of the finding itself first; lines without results are a sentence.
"""

from __future__ import annotations

from history.keys import boundary
from history.metrics import MetricRegistry
from history.model import MAJORS, ChangeLine, Finding
from history.versions import version_key
from presentation.headline import headline_moves
from presentation.number_format import listing
from presentation.sentences import TIER_WORDS


def line_rows(finding: Finding, metrics: MetricRegistry) -> list[ChangeLine]:
    """The lines of a change, the finding's own first, then the newest; empty for a finding of one line."""
    if not finding.lines or not finding.moves:
        return []
    own = {(move.key.test, move.key.metric) for move in finding.moves}
    told = next((row for row in finding.lines if (row.test, row.metric) in own), None)
    lead = headline_moves(finding, metrics)[0].key
    test, metric = (told.test, told.metric) if told else (lead.test, lead.metric)
    others = sorted(finding.lines, key=lambda row: (version_key(finding.dbms, row.release), row.finding), reverse=True)
    return [ChangeLine.of(finding, finding.line, test, metric), *others]


def told_elsewhere(finding: Finding) -> tuple[str, tuple[str, ...]]:
    """Words, and keys of the findings that tell this one: a line's of the change that leads it, a step's between majors
    of all changes that explain it; `("", ())` for what is told by itself."""
    if finding.same_as:
        return "the same change as", (finding.same_as,)
    return ("explained by", finding.explained_by) if finding.folded_under else ("", ())


def how_sure(dbms: str, row: ChangeLine) -> str:
    """`confirmed`; `suspected, between majors 13 → 14` of a line in which only that step shows the change."""
    if not row.between_majors:
        return TIER_WORDS[row.tier]
    older, newer = (boundary(dbms, MAJORS, version) for version in (row.previous, row.release))
    return f"{TIER_WORDS[row.tier]}, between majors {older} → {newer}"


def probably_affected(finding: Finding) -> str:
    """A sentence about lines that came out on the same day and were not measured; may be empty."""
    if not finding.probably_affected:
        return ""
    names = listing([row.release for row in finding.probably_affected])
    one = len(finding.probably_affected) == 1
    return (
        f"{names} came out on the same day and {'has' if one else 'have'} no results on both sides of it: "
        f"{'it' if one else 'they'} probably {'has' if one else 'have'} the same change."
    )
