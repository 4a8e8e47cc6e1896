"""The section that says where to look: the releases that can hold the cause, and where source is compared. Pure."""

from __future__ import annotations

import re

from alerts.safetext import Markdown, code
from alerts.settings import AlertSettings
from alerts.words import listing
from history.keys import boundary
from history.model import MAJORS, Finding

#: So many versions between two releases are named; with more they are another counting, not a gap.
MOST_NAMED = 6


def suspect_range(finding: Finding, settings: AlertSettings) -> Markdown:
    """The range of releases that can hold the cause, and where its source is compared."""
    text = (
        f"{code(finding.previous)} is the last measured release at the old level, "
        f"{code(finding.release)} the first at the new one"
    )
    if finding.kind == "drift":
        text = (
            f"Small steps in many releases between {code(finding.previous)} and {code(finding.release)} add up to it; "
            "the lines above show where."
        )
    elif finding.line == MAJORS:
        new = boundary(finding.dbms, finding.line, finding.release)
        text = (
            f"{code(finding.previous)} is the newest measured release of its line, {code(finding.release)} that of "
            f"line {code(new)}: whatever came to that line up to there is in this range."
        )
    elif finding.unmeasured:
        text += f"; not measured in between, and just as suspect: {listing([code(v) for v in finding.unmeasured])}."
    elif absent := _absent(finding.previous, finding.release):
        are = "is" if len(absent) == 1 else "are"
        text += (
            f"; {listing([code(v) for v in absent])} between them {are} not in the history, and what changed there is "
            "in this range too."
        )
    else:
        text += ", and no known release lies between them."
    if address := source_address(settings.links.source.get(finding.dbms, ""), finding):
        text += f" Source: <{address}>."
    if finding.cause not in ("product", "plan"):
        text += f" The likely cause is not the product's code: {code(finding.cause)}."
    return Markdown(text)


def source_address(pattern: str, finding: Finding) -> str:
    """Where the source of both sides is compared; empty without a pattern, and for versions that are not plain numbers,
    since a foreign version in an address would be foreign text in Markdown."""
    versions = (finding.previous, finding.release)
    if not pattern or not all(re.fullmatch(r"\d+(\.\d+)*", version) for version in versions):
        return ""
    dotless = [version.replace(".", "_") for version in versions]
    return pattern.format(previous=versions[0], release=versions[1], previous_=dotless[0], release_=dotless[1])


def source_refs(pattern: str, finding: Finding) -> tuple[str, str] | None:
    """The tags of both sides, as that address names them: `REL_18_1`, `REL_18_2`."""
    found = re.fullmatch(r".*/compare/([\w.+-]+?)\.\.\.([\w.+-]+)", source_address(pattern, finding))
    return (found[1], found[2]) if found else None


def _absent(previous: str, release: str) -> list[str]:
    """Numbers between two point releases that the history knows nothing of: withdrawn, skipped, or never heard of.

    >>> _absent("8.0.28", "8.0.30"), _absent("18.1", "18.2"), _absent("15.4", "16.2")
    (['8.0.29'], [], [])
    >>> _absent("8.0.1", "8.0.99999999999")
    []
    """
    first, last = (re.fullmatch(r"((?:\d+\.)+)(\d+)", version) for version in (previous, release))
    if not first or not last or first[1] != last[1]:
        return []
    low, high = int(first[2]) + 1, int(last[2])
    # Compared before anything is made: a version comes from a file that nobody has checked.
    return [f"{first[1]}{number}" for number in range(low, high)] if high - low <= MOST_NAMED else []
