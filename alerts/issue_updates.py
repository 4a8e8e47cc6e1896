"""What an issue says, and whether there is something new worth a comment. Pure.

An edit is silent; a comment sends mail. So only these get a comment: the boundary moved, another server shows it,
clearly more (or fewer) tests move, or the change itself is clearly larger or smaller than what was said.
"""

from __future__ import annotations

from typing import Any

from alerts.subject import Subject
from alerts.trackers import Draft
from history.keys import boundary
from history.model import MAJORS, carrying_moves
from presentation.number_format import listing, signed

#: Tests that moved must change by this share, and by at least MORE_TESTS, to be news.
MORE_SHARE, MORE_TESTS = 0.25, 2
#: The headline change must differ by this factor from what was said.
MORE_CHANGE = 1.25


def issue_facts(subject: Subject, draft: Draft) -> dict[str, Any]:
    """What an issue says, as the detail of its event."""
    finding, lead = subject.finding, subject.lead
    if lead is None:
        return {"title": draft.title}
    told = carrying_moves(finding)
    lines = [boundary(finding.dbms, finding.line, version) for version in (finding.previous, finding.release)]
    return {
        # On `majors` the boundary is that of two lines, whatever their newest releases of the day are.
        **({"lines": lines} if finding.line == MAJORS else {}),
        **({"other_lines": {row.line: row.release for row in finding.lines}} if finding.lines else {}),
        "previous": finding.previous,
        "release": finding.release,
        "title": draft.title,
        "metric": lead.metric,
        "worst_pct": round(lead.change.worst_pct, 3),
        "servers": sorted({move.key.server for move in told}),
        "moved": len({(m.key.server, m.key.config, m.key.benchmark, m.key.test) for m in told}),
    }


def updates(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Sentences about what differs; empty when nothing deserves a mail, or when nothing is known of before."""
    if "previous" not in old:
        return []
    sentences = []
    where = ("lines",) if "lines" in new else ("previous", "release")
    if any(old.get(name, new[name]) != new[name] for name in where):
        is_now, was = (" and ".join(told.get("lines") or (told["previous"], told["release"])) for told in (new, old))
        sentences.append(f"The boundary is now between {is_now}; it was between {was}.")
    servers = sorted(set(new["servers"]) - set(old["servers"]))
    if servers:
        sentences.append(f"Also seen on {' and '.join(servers)}.")
    known = old.get("other_lines", {})
    more = [f"{release} (line {line})" for line, release in new.get("other_lines", {}).items() if line not in known]
    if more:
        sentences.append(f"The same change is in {listing(more)}.")
    grown = abs(new["moved"] - old["moved"])
    if grown >= MORE_TESTS and grown >= MORE_SHARE * old["moved"]:
        each = ", counted on each server" if max(len(new["servers"]), len(old["servers"])) > 1 else ""
        sentences.append(f"{new['moved']} tests move now{each}; there were {old['moved']}.")
    if _sized_alike(old, new) and _clearly(old["worst_pct"], new["worst_pct"]):
        sentences.append(f"The largest change is now {signed(new['worst_pct'])}; it was {signed(old['worst_pct'])}.")
    return sentences


def worsened(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a finding became clearly worse than its issue says: on another server, in more tests, or by more."""
    if "previous" not in old:
        return False
    grown = new["moved"] - old["moved"]
    return (
        bool(set(new["servers"]) - set(old["servers"]))
        or (grown >= MORE_TESTS and grown >= MORE_SHARE * old["moved"])
        or (_sized_alike(old, new) and abs(new["worst_pct"]) > MORE_CHANGE * abs(old["worst_pct"]))
    )


def _sized_alike(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether both state the largest change of one metric; an issue of an older version stated a median."""
    return "worst_pct" in old and old["metric"] == new["metric"]


def _clearly(old: float, new: float) -> bool:
    small, large = sorted((abs(old), abs(new)))
    return old * new <= 0 or large > MORE_CHANGE * small
