"""Which releases a plan wants measured tonight: plan, known releases and history in, work out. Pure.

>>> from runners.settings.plans import Measure
>>> releases = [Release(dbms="postgres", version=v, line=v.split(".")[0]) for v in ("16.9", "17.0", "17.4", "17.5")]
>>> measure = Measure(dbms="postgres", newest_lines=1, newest_releases=1, profile="quick")
>>> [(w.line, [r.version for r in w.candidates], w.control.version)
...  for w in pick(measure, "default", releases, {"17.0": 4})]
[('17', ['17.5'], '17.0')]
>>> pick(measure, "default", releases, {"17.0": 4, "17.5": 2})
[]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from history.errors import BadSettings
from history.model import MAJORS, Release
from history.versions import build_mark, version_key
from runners.releases.lines import LineCalendar
from runners.sessions.model import HeldConfig
from runners.settings.plans import Backfill, Measure

#: For a DBMS of whose lines nothing is known: all are alike, and none ends.
NO_CALENDAR = LineCalendar()


@dataclass(frozen=True)
class Work:
    """Releases to measure together in one session, with the control they are compared with."""

    measure: Measure
    config: str
    line: str
    """The line of all candidates; `majors` for those of innovation and rolling lines, which have no point releases to
    be compared with; empty when a session spans lines (back-fill of the instructions lane)."""
    candidates: tuple[Release, ...]
    control: Release
    again: bool = False
    """Measure all candidates, whatever the history holds: a confirmation."""
    held: tuple[tuple[Release, HeldConfig], ...] = ()
    """Candidates that are measured with another one's settings besides."""
    beside: tuple[Release, ...] = ()
    """Measured with the candidates, whatever the history holds: the newest releases of the lines before theirs."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """Candidates, control and what is beside them, each once, in version order."""
        every = (*self.candidates, *self.beside, self.control)
        return in_version_order({release.version: release for release in every}.values())


def in_version_order(releases: Iterable[Release]) -> tuple[Release, ...]:
    """Releases of one DBMS in version order."""
    return tuple(sorted(releases, key=lambda release: version_key(release.dbms, release.version)))


def releases_by_line(releases: Iterable[Release]) -> dict[str, list[Release]]:
    """Final releases by line, lines and releases in version order; pre-releases belong to no night."""
    lines: dict[str, list[Release]] = {}
    for release in in_version_order(releases):
        if not is_prerelease(release):
            lines.setdefault(release.line, []).append(release)
    return dict(sorted(lines.items(), key=lambda item: version_key(item[1][0].dbms, item[0])))


def is_prerelease(release: Release) -> bool:
    """Whether the version is a beta, a release candidate or the like: it sorts before its own line's first release."""
    return version_key(release.dbms, release.version) < version_key(release.dbms, release.line)


def is_second_build(release: Release) -> bool:
    """Whether it is a build of a release whose line has one of another builder: measured by name, in no night."""
    return bool(build_mark(release.version))


def spread(releases: Sequence[Release], count: int) -> list[Release]:
    """`count` releases evenly over the sequence, the first and the last among them; all when there are fewer."""
    if count >= len(releases):
        return list(releases)
    if count <= 1:
        return list(releases[-count:]) if count else []
    step = (len(releases) - 1) / (count - 1)
    return [releases[round(index * step)] for index in range(count)]


def _wanted_lines(measure: Measure, lines: Mapping[str, list[Release]], calendar: LineCalendar) -> list[str]:
    """The lines a plan names; else those of its window, the newest that get point releases, and with `supported_lines`
    those that are supported. What a line has that is measured already costs nothing, so that a line past its end drops
    out by itself once its last release is measured."""
    unknown = [line for line in measure.lines if line not in lines]
    if unknown:
        raise BadSettings(
            f"no release of {measure.dbms} {', '.join(unknown)} can be had here; lines that can: "
            f"{', '.join(lines) or 'none'}. Measure those with --lines, or see what the sources offer: "
            f"pointdrop releases discover {measure.dbms}"
        )
    if measure.lines:
        return list(measure.lines)
    if not (measure.newest_lines or measure.supported_lines):
        return list(lines)
    lasting = [line for line in lines if calendar.has_point_releases(line)] or list(lines)
    wanted = set(lasting[-measure.newest_lines :] if measure.newest_lines else [])
    if measure.supported_lines:
        wanted |= {line for line in lines if calendar.is_supported(line, list(lines))}
    return [line for line in lines if line in wanted]


def _backfill(
    wanted: Backfill, lines: Mapping[str, list[Release]], newest: Sequence[str], measured: Mapping[str, int]
) -> list[Release]:
    """Releases of the past that a fresh history lacks. A line that has results is not filled again for `majors_from`,
    and one that has enough of them not for `releases_per_line`, so that a second night finds nothing to do here."""
    chosen: list[Release] = []
    for line, releases in lines.items():
        has = sum(1 for release in releases if measured.get(release.version, 0) > 0)
        dbms = releases[0].dbms
        since = wanted.majors_from
        if since and version_key(dbms, line) >= version_key(dbms, since) and not has:
            chosen.append(releases[-1])
        if line in newest and has < min(wanted.releases_per_line, len(releases)):
            chosen += spread(releases, wanted.releases_per_line)
    return chosen


def _control(measure: Measure, line: str, lines: Mapping[str, list[Release]], calendar: LineCalendar) -> Release:
    """The control the plan names, else the oldest known release of the line, or of the line with point releases that
    came before an innovation or rolling one: it never changes, so every session of years to come can measure it again.
    """
    if not measure.control:
        names = list(lines)
        lasting = [name for name in names[: names.index(line) + 1] if calendar.has_point_releases(name)]
        return lines[lasting[-1] if lasting else line][0]
    controls = [r for releases in lines.values() for r in releases if r.version == measure.control]
    if not controls:
        advice = f"Run: pointdrop releases discover {measure.dbms}"
        raise BadSettings(f"the control {measure.dbms} {measure.control} is not known. {advice}")
    return controls[0]


def pick(
    measure: Measure,
    config: str,
    releases: Iterable[Release],
    measured: Mapping[str, int],
    calendar: LineCalendar = NO_CALENDAR,
) -> list[Work]:
    """The sessions that `measure` wants for one of its configs: one a line in the time lane, one in all in the other,
    since counted instructions have no session effect to share.

    `releases` are the runnable releases of the DBMS; `measured` maps versions to their blocks that count in this lane,
    config, benchmark and server; `calendar` has the day, and what is known of the lines.

    Raises BadSettings when the plan names a line, release or control that is not known.
    """
    releases = list(releases)
    if measure.versions:
        return _named(measure, config, releases, measured)
    lines = releases_by_line(release for release in releases if not is_second_build(release))
    if not lines:
        return []
    newest = _wanted_lines(measure, lines, calendar)
    wanted = {line: lines[line][-measure.newest_releases :] for line in newest}
    if measure.backfill:
        for release in _backfill(measure.backfill, lines, newest, measured):
            wanted.setdefault(release.line, []).append(release)
    missing = {line: _missing(releases, measured, measure.blocks) for line, releases in wanted.items()}
    return _sessions(measure, config, missing, lines, calendar)


def select_named(
    measure: Measure,
    config: str,
    releases: Iterable[Release],
    versions: Collection[str],
    calendar: LineCalendar = NO_CALENDAR,
) -> list[Work]:
    """Sessions for just the releases named, arranged as `pick` arranges them, with a control of the same builder; names
    of other DBMS are passed over."""
    releases = list(releases)
    named: list[Work] = []
    for second in (False, True):
        lines = releases_by_line(release for release in releases if is_second_build(release) == second)
        wanted = {line: tuple(r for r in of_line if r.version in versions) for line, of_line in lines.items()}
        named += _sessions(measure, config, wanted, lines, calendar)
    return [replace(work, again=True) for work in named]


def _missing(releases: Iterable[Release], measured: Mapping[str, int], blocks: int) -> tuple[Release, ...]:
    """Those without enough blocks, each once."""
    return in_version_order({r.version: r for r in releases if measured.get(r.version, 0) < blocks}.values())


def by_version(dbms: str, releases: Iterable[Release], wanted: Iterable[str]) -> dict[str, Release]:
    """The releases of `dbms` by version; BadSettings when one that is `wanted` is not among them."""
    versions = {release.version: release for release in releases}
    if unknown := [version for version in wanted if version not in versions]:
        advice = f"See: pointdrop releases list {dbms}"
        raise BadSettings(f"{dbms} {', '.join(unknown)}: not a known, runnable release. {advice}")
    return versions


def _named(measure: Measure, config: str, releases: Sequence[Release], measured: Mapping[str, int]) -> list[Work]:
    first = measure.control or measure.versions[0]
    versions = by_version(measure.dbms, releases, (*measure.versions, first))
    missing = _missing((versions[version] for version in measure.versions), measured, measure.blocks)
    return [Work(measure, config, "", missing, versions[first])] if missing else []


def _sessions(
    measure: Measure,
    config: str,
    wanted: Mapping[str, tuple[Release, ...]],
    lines: Mapping[str, list[Release]],
    calendar: LineCalendar,
) -> list[Work]:
    wanted = {line: releases for line, releases in wanted.items() if releases}
    if measure.lane == "instructions" and len(wanted) > 1:
        every = in_version_order(release for releases in wanted.values() for release in releases)
        return [Work(measure, config, "", every, _control(measure, every[-1].line, lines, calendar))]
    sessions: dict[tuple[str, Release], list[Release]] = {}
    for line, releases in wanted.items():
        name = line if calendar.has_point_releases(line) else MAJORS
        sessions.setdefault((name, _control(measure, line, lines, calendar)), []).extend(releases)
    return [
        Work(
            measure, config, name, in_version_order(releases), control,
            beside=_beside(measure, releases, wanted, lines, calendar),
        )
        for (name, control), releases in sessions.items()
    ]  # fmt: skip


def _beside(
    measure: Measure,
    candidates: Sequence[Release],
    wanted: Collection[str],
    lines: Mapping[str, list[Release]],
    calendar: LineCalendar,
) -> tuple[Release, ...]:
    """The newest releases of the lines before those whose newest release is among `candidates`: of the lines that the
    plan names, else of those that get point releases or are measured tonight."""
    if not measure.line_before or measure.lane != "time":
        return ()
    compared = [
        line
        for line in lines
        if line in wanted or (line in measure.lines if measure.lines else calendar.has_point_releases(line))
    ]
    newest = [release.line for release in candidates if release == lines[release.line][-1]]
    before = [lines[earlier][-1] for earlier, line in pairwise(compared) if line in newest]
    return in_version_order(release for release in before if release not in candidates)
