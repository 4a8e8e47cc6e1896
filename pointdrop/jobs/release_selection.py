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

from history.errors import BadSettings
from history.model import Release
from history.versions import version_key
from runners.sessions.model import HeldConfig
from runners.settings.plans import Backfill, Measure


@dataclass(frozen=True)
class Work:
    """Releases to measure together in one session, with the control they are compared with."""

    measure: Measure
    config: str
    line: str
    """The line of all candidates; empty when a session spans lines (back-fill of the instructions lane)."""
    candidates: tuple[Release, ...]
    control: Release
    again: bool = False
    """Measure all candidates, whatever the history holds: a confirmation."""
    held: tuple[tuple[Release, HeldConfig], ...] = ()
    """Candidates that are measured with another one's settings besides."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """Candidates and control, each once, in version order."""
        return in_version_order({release.version: release for release in (*self.candidates, self.control)}.values())


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


def spread(releases: Sequence[Release], count: int) -> list[Release]:
    """`count` releases evenly over the sequence, the first and the last among them; all when there are fewer."""
    if count >= len(releases):
        return list(releases)
    if count <= 1:
        return list(releases[-count:]) if count else []
    step = (len(releases) - 1) / (count - 1)
    return [releases[round(index * step)] for index in range(count)]


def _wanted_lines(measure: Measure, lines: Mapping[str, list[Release]]) -> list[str]:
    unknown = [line for line in measure.lines if line not in lines]
    if unknown:
        raise BadSettings(
            f"no release of {measure.dbms} {', '.join(unknown)} can be had here; lines that can: "
            f"{', '.join(lines) or 'none'}. Measure those with --lines, or see what the sources offer: "
            f"pointdrop releases discover {measure.dbms}"
        )
    return list(measure.lines) or list(lines)[-measure.newest_lines :]


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


def _control(measure: Measure, line: str, lines: Mapping[str, list[Release]]) -> Release:
    """The control the plan names, else the oldest known release of the line: it never changes, so every session of
    years to come can measure it again."""
    if not measure.control:
        return lines[line][0]
    controls = [r for releases in lines.values() for r in releases if r.version == measure.control]
    if not controls:
        advice = f"Run: pointdrop releases discover {measure.dbms}"
        raise BadSettings(f"the control {measure.dbms} {measure.control} is not known. {advice}")
    return controls[0]


def pick(measure: Measure, config: str, releases: Iterable[Release], measured: Mapping[str, int]) -> list[Work]:
    """The sessions that `measure` wants for one of its configs: one a line in the time lane, one in all in the other,
    since counted instructions have no session effect to share.

    `releases` are the runnable releases of the DBMS; `measured` maps versions to their blocks that count in this lane,
    config, benchmark and server.

    Raises BadSettings when the plan names a line, release or control that is not known.
    """
    releases = list(releases)
    lines = releases_by_line(releases)
    if measure.versions:
        return _named(measure, config, releases, measured)
    if not lines:
        return []
    newest = _wanted_lines(measure, lines)
    wanted = {line: lines[line][-measure.newest_releases :] for line in newest}
    if measure.backfill:
        for release in _backfill(measure.backfill, lines, newest, measured):
            wanted.setdefault(release.line, []).append(release)
    missing = {line: _missing(releases, measured, measure.blocks) for line, releases in wanted.items()}
    return _sessions(measure, config, missing, lines)


def select_named(measure: Measure, config: str, releases: Iterable[Release], versions: Collection[str]) -> list[Work]:
    """Sessions for just the releases named, arranged as `pick` arranges them; names of other DBMS are passed over."""
    lines = releases_by_line(releases)
    wanted = {line: tuple(r for r in of_line if r.version in versions) for line, of_line in lines.items()}
    return [replace(work, again=True) for work in _sessions(measure, config, wanted, lines)]


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
) -> list[Work]:
    wanted = {line: releases for line, releases in wanted.items() if releases}
    if measure.lane == "instructions" and len(wanted) > 1:
        wanted = {"": in_version_order(release for releases in wanted.values() for release in releases)}
    return [
        Work(measure, config, line, releases, _control(measure, releases[-1].line, lines))
        for line, releases in wanted.items()
    ]
