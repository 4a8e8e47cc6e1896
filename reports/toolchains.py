"""Where a line's releases come from another builder, or from another compiler: a mark on its charts and tables. Pure.

postgres majors 11.22: "built by zonky with GCC 7.5.0 and -Os, before by EnterpriseDB with GCC 4.4.7 and -O2"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from history.toolchains import BUILD, COMPILER, other_builder, sides_in_words, toolchain_changes
from history.versions import sort_versions
from reports.annotations import MOST_TEXT, Annotation
from reports.snapshot import Snapshot

Toolchain = Mapping[str, str]


def toolchain_annotations(snapshot: Snapshot) -> tuple[Annotation, ...]:
    """A remark at every measured release whose builder or compiler is not that of the measured release before it."""
    known: dict[tuple[str, str], Toolchain] = {}
    for ran in snapshot.ran:  # newest first
        release = ran.run.release
        if ran.run.toolchain:
            known.setdefault((release.dbms, release.version), ran.run.toolchain)
    versions: dict[tuple[str, str], set[str]] = {}
    for key, series in snapshot.lines.items():
        measured = {point.version for member in series for point in member.points}
        versions.setdefault((key.dbms, key.line), set()).update(measured)
    return tuple(
        Annotation(dbms=dbms, line=line, release=release, text=text)
        for (dbms, line), names in sorted(versions.items())
        for release, text in _changes(
            [(name, known[dbms, name]) for name in sort_versions(dbms, names) if (dbms, name) in known]
        )
    )


def _changes(releases: Iterable[tuple[str, Toolchain]]) -> Iterable[tuple[str, str]]:
    for (_, before), (release, after) in pairwise(releases):
        changes = [change for change in toolchain_changes(before, after) if change.part in BUILD | COMPILER]
        if changes:
            old, new = (side or "otherwise" for side in sides_in_words(changes))
            text = f"built by {new}, before by {old}" if other_builder(changes) else f"compiler {new}, before {old}"
            yield release, text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
