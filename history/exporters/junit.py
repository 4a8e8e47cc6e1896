"""JUnit XML: a suite a line, server, config and benchmark, a case a test and metric, failed where a regression stands.

A case fails when the newest detection has a finding of kind `regression` that moved the series for the worse and is
confirmed, or provisional and more likely than not; the message names the two releases and the change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from history.model import Finding, LineKey, Move, Series, carrying_moves, is_likely

TIERS = ("confirmed", "provisional")


def document(all_series: Iterable[Series], findings: Iterable[Finding]) -> str:
    """The XML, with its declaration."""
    moved: dict[str, tuple[Finding, Move]] = {}
    for finding in findings:
        if finding.kind == "regression" and finding.tier in TIERS:
            for move in carrying_moves(finding):
                if move.direction == "regression" and is_likely(move):
                    moved[move.key.id] = (finding, move)
    suites: dict[str, list[Series]] = defaultdict(list)
    for series in all_series:
        suites["|".join(LineKey.of(series.key))].append(series)
    root = Element("testsuites", name="pointdrop")
    for name, members in suites.items():
        failed = sum(series.key.id in moved for series in members)
        suite = SubElement(root, "testsuite", name=name, tests=str(len(members)), failures=str(failed))
        for series in members:
            case = SubElement(suite, "testcase", classname=name, name=f"{series.key.test} {series.key.metric}")
            if series.key.id in moved:
                finding, move = moved[series.key.id]
                message = f"{finding.previous} -> {finding.release}: {move.change_pct:+.1f} %"
                SubElement(case, "failure", type=finding.kind, message=message).text = "\n".join(finding.evidence)
    indent(root)
    return clean(tostring(root, encoding="unicode", xml_declaration=True)) + "\n"


#: What XML 1.0 forbids, escaped or not; names and texts come from files of others.
_FORBIDDEN = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(document: str) -> str:
    """A document, or a part of one, without the characters that no XML may hold.

    >>> clean("a\\x01b\\ufffe")
    'ab'
    """
    return _FORBIDDEN.sub("", document)
