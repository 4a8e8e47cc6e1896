"""What can be compared: releases, configs, source trees, commits and installed prefixes, all written in one form.

postgres@17.4                      a release
postgres@17.4+debian                another builder's
postgres@17.4#sync1_compLZ4_fpi1   a release with another config
postgres@git:REL_17_STABLE         a commit of the DBMS's repository, built here
postgres@tree:../postgres+fix.patch    a source tree, with a patch applied, built here
postgres@prefix:/opt/pg            what is installed below a directory
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from history.errors import BadSettings
from runners.releases import Catalogue, Installed

Kind = Literal["release", "git", "tree", "prefix"]

_SIDE = re.compile(
    r"(?P<dbms>[a-z]+)@(?:(?P<kind>git|tree|prefix):)?(?P<what>[^#+]+?|[\d.]+\+[\w-]+|[^#]+?(?=\+[^+#]*\.(?:patch|diff)))"
    r"(?:\+(?P<patch>[^#]+\.(?:patch|diff)))?(?:#(?P<config>[\w.-]+))?"
)
FORMS = "DBMS@VERSION, DBMS@git:REV, DBMS@tree:DIR or DBMS@prefix:DIR, with +FILE.patch and #CONFIG where wanted"


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    dbms: str
    kind: Kind
    what: str
    patch: Path | None
    config: str

    def __str__(self) -> str:
        prefix = "" if self.kind == "release" else f"{self.kind}:"
        patch = f"+{self.patch.name}" if self.patch else ""
        config = f"#{self.config}" if self.config != "default" else ""
        return f"{self.dbms}@{prefix}{self.what}{patch}{config}"


def parse_side(text: str, config: str = "default") -> Side:
    """A side from its text; BadSettings says what the forms are.

    >>> side = parse_side("postgres@tree:/src/pg+fix.patch#lz4")
    >>> (side.kind, side.what, str(side.patch), side.config)
    ('tree', '/src/pg', 'fix.patch', 'lz4')
    >>> str(parse_side("mysql@8.0.30"))
    'mysql@8.0.30'
    """
    match = _SIDE.fullmatch(text)
    if not match:
        raise BadSettings(f"{text!r} names nothing to compare; the forms are {FORMS}")
    kind: Kind = match["kind"] or "release"  # type: ignore[assignment]
    patch = Path(match["patch"]) if match["patch"] else None
    if patch and kind not in ("git", "tree"):
        raise BadSettings(f"{text!r}: a patch needs a source to build, so git: or tree:")
    return Side(match["dbms"], kind, match["what"], patch, match["config"] or config)


def resolve(side: Side, catalogue: Catalogue, sandbox: bool = False, repository: str | None = None) -> Installed:
    """The side, fetched or built, a commit from `repository` or the manifest's. ReleaseError when it cannot be had."""
    if side.patch and not side.patch.is_file():
        raise BadSettings(f"{side}: there is no file {side.patch}")
    if side.kind == "git":
        return catalogue.build_commit(side.dbms, side.what, repository=repository, patch=side.patch, sandbox=sandbox)
    if side.kind == "tree":
        folder = Path(side.what)
        if not folder.is_dir():
            raise BadSettings(f"{side}: there is no directory {folder}")
        return catalogue.build_tree(side.dbms, folder.resolve(), patch=side.patch, sandbox=sandbox)
    if side.kind == "prefix":
        return catalogue.adopt(side.dbms, Path(side.what).resolve())
    return catalogue.fetch(side.dbms, side.what)


@dataclass(frozen=True)
class Shelf:
    """Installed releases by version: what a session fetches from when it measures things that no source offers."""

    by_version: dict[str, Installed]

    def fetch(self, dbms: str, version: str) -> Installed:
        """The one of that version; every version a session asks for was put here before."""
        return self.by_version[version]
