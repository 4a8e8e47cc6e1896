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
    series: Iterable[Series], settings: DetectorSettings | None = None, releases: Iterable[Release] = ()
) -> Iterator[Replayed]:
    """Findings in the order in which they would have been made, line by line."""
    settings = settings or DetectorSettings()
    releases = list(releases)
    lines: dict[tuple[str, str], list[Series]] = defaultdict(list)
    for member in series:
        lines[member.key.dbms, member.key.line].append(member)
    for (dbms, line), of_line in sorted(lines.items()):
        order = in_order(of_line)
        final = {finding.key for finding in detect(of_line, settings, releases)}
        seen: set[str] = set()
        for count, newest in enumerate(order[1:], start=1):
            for finding in detect(until(of_line, order[: count + 1]), settings, releases):
                if finding.key not in seen:
                    seen.add(finding.key)
                    delay = count - order.index(finding.release)
                    yield Replayed(dbms, line, newest, delay, finding, finding.key in final)


def in_order(series: Iterable[Series]) -> list[str]:
    """Versions of all series, oldest first.

    A release's position differs between series of the line of majors, which have the newest release of each.
    """
    place: dict[str, int] = {}
    for member in series:
        for point in member.points:
            place[point.version] = max(place.get(point.version, 0), point.position)
    return sorted(place, key=lambda version: (place[version], version))


def until(series: Sequence[Series], versions: Sequence[str]) -> list[Series]:
    """`series` as they were when there were only these releases."""
    cut = []
    for member in series:
        points = tuple(point for point in member.points if point.version in versions)
        if points:
            sessions = {session for point in points for session in point.sessions}
            control = {session: values for session, values in member.control.items() if session in sessions}
            cut.append(member.model_copy(update={"points": points, "control": control}))
    return cut
