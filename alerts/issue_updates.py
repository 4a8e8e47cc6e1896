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
from presentation.number_format import signed

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
        "previous": finding.previous,
        "release": finding.release,
        "title": draft.title,
        "metric": lead.metric,
        "change_pct": round(lead.change.median_pct, 3),
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
        sentences.append(
            f"The boundary is now between {new['previous']} and {new['release']}; "
            f"it was between {old['previous']} and {old['release']}."
        )
    servers = sorted(set(new["servers"]) - set(old["servers"]))
    if servers:
        sentences.append(f"Also seen on {' and '.join(servers)}.")
    grown = abs(new["moved"] - old["moved"])
    if grown >= MORE_TESTS and grown >= MORE_SHARE * old["moved"]:
        each = ", counted on each server" if max(len(new["servers"]), len(old["servers"])) > 1 else ""
        sentences.append(f"{new['moved']} tests move now{each}; there were {old['moved']}.")
    if old["metric"] == new["metric"] and _clearly(old["change_pct"], new["change_pct"]):
        sentences.append(f"The median change is now {signed(new['change_pct'])}; it was {signed(old['change_pct'])}.")
    return sentences


def worsened(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a finding became clearly worse than its issue says: on another server, in more tests, or by more."""
    if "previous" not in old:
        return False
    grown = new["moved"] - old["moved"]
    return (
        bool(set(new["servers"]) - set(old["servers"]))
        or (grown >= MORE_TESTS and grown >= MORE_SHARE * old["moved"])
        or (old["metric"] == new["metric"] and abs(new["change_pct"]) > MORE_CHANGE * abs(old["change_pct"]))
    )


def _clearly(old: float, new: float) -> bool:
    small, large = sorted((abs(old), abs(new)))
    return old * new <= 0 or large > MORE_CHANGE * small
