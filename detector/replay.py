"""What would have been found, and when, had Pointdrop been running: release by release, only the past visible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from detector.detection import detect
from detector.settings import DetectorSettings
from history.model import Finding, Release, Series


@dataclass(frozen=True)
class Replayed:
    """A finding on the day it first appears."""

    dbms: str
    line: str
    newest: str
    """The release whose measurement brought the finding."""
    delay: int
    """Measured releases between the finding's release and `newest`; 0 is the same day."""
    finding: Finding
    stays: bool
    """Whether the finding is still there when the whole line is known."""


def replay(
    series: Iterable[Series], settings: DetectorSettings | None = None, known: Iterable[Release] = ()
) -> Iterator[Replayed]:
    """Findings in the order in which they would have been made, line by line."""
    settings = settings or DetectorSettings()
    releases = list(known)
    lines: dict[tuple[str, str], list[Series]] = defaultdict(list)
    for one in series:
        lines[one.key.dbms, one.key.line].append(one)
    for (dbms, line), of_line in sorted(lines.items()):
        versions = {point.position: point.version for one in of_line for point in one.points}
        final = {finding.key for finding in detect(of_line, settings, releases)}
        order = [versions[position] for position in sorted(versions)]
        seen: set[str] = set()
        for position in sorted(versions)[1:]:
            newest = versions[position]
            for finding in detect(until(of_line, position), settings, releases):
                if finding.key not in seen:
                    seen.add(finding.key)
                    delay = order.index(newest) - order.index(finding.release)
                    yield Replayed(dbms, line, newest, delay, finding, finding.key in final)


def until(series: Sequence[Series], position: int) -> list[Series]:
    """`series` as they were when the release at `position` was the newest."""
    cut = []
    for one in series:
        points = tuple(point for point in one.points if point.position <= position)
        if points:
            sessions = {block.session_id for point in points for block in point.values}
            control = {session: values for session, values in one.control.items() if session in sessions}
            cut.append(one.model_copy(update={"points": points, "control": control}))
    return cut
