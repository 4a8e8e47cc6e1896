"""Releases and commits of a git repository, built by a recipe.

A bare mirror below the cache holds what was fetched; what is built is `git archive` of one commit, so that neither
hooks nor attributes of a working tree play a part. A commit's id is a digest of its tree: it is what the vendor vouches
with. Repositories that keep parts of themselves in others (MariaDB) name them in `submodules`.

`merge_base` is where a branch left another: the commit a patch is compared with, so that what others did since is not
the patch's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from runners.errors import SourceUnavailable, UnknownRelease, Unverifiable
from runners.releases.archives import unpack
from runners.releases.clients import run_client
from runners.releases.sources import Download, GitSettings, Offer, Part, Source, part_of, read_versions

#: What may name a commit: no options, no ranges.
REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}")
_SHA = re.compile(r"[0-9a-f]{40}")


class GitSource(Source[GitSettings]):
    @property
    def _mirrors(self) -> Path:
        return self._cache / "git"

    def offers(self) -> list[Offer]:
        listed = _git("ls-remote", "--tags", "--refs", "--", self._settings.url, what=self._settings.url)
        tags = [line.rpartition("refs/tags/")[2] for line in listed.splitlines()]
        read = read_versions(self._settings.versions, [_dotted(tag) for tag in tags])
        by_text = {_dotted(tag): tag for tag in tags}
        return [Offer(offer.version, by_text[offer.locator]) for offer in read]

    def download(self, offer: Offer, into: Path) -> Download:
        commit, part = self._archive(self._settings.url, offer.locator, "", into)
        parts = [part]
        for path in self._settings.submodules:
            if found := self._submodule(commit, path):
                parts.append(self._archive(*found, path, into)[1])
        return Download(
            parts=tuple(parts),
            upstream=f"git:{commit}",
            verified="the commit's id, which is a digest of its whole tree",
        )

    def _archive(self, url: str, ref: str, path: str, into: Path) -> tuple[str, Part]:
        """(commit, archive) of `ref`; the archive's name tells where it belongs: `libmariadb@3f2a....tar`."""
        if not REF.fullmatch(ref) or ".." in ref:
            raise UnknownRelease(f"{ref!r} is no tag, branch or commit that git could name")
        name = f"refs/pointdrop/{_digest(ref)}"
        with _locked_mirror(self._mirrors / _digest(url)) as mirror:
            fetch = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--", url)
            _git(*fetch, f"+{ref}:{name}", mirror=mirror, what=f"{url} {ref}")
            commit = _git("rev-parse", "--verify", f"{name}^{{commit}}", mirror=mirror, what=ref).strip()
            file = into / f"{path.replace('/', '%')}@{commit}.tar"
            _git("archive", "--format=tar", f"--output={file}", commit, mirror=mirror, what=ref)
        if _SHA.fullmatch(ref) and ref != commit:
            raise Unverifiable(f"asked for commit {ref}, got {commit}")
        return commit, part_of(file)

    def _submodule(self, commit: str, path: str) -> tuple[str, str] | None:
        """(address, commit) of the submodule at `path`; None where its files are in the tree itself, as in one that was
        made of a source package."""
        mirror = self._mirrors / _digest(self._settings.url)
        entry = _git("ls-tree", commit, "--", path, mirror=mirror, what=path).split()
        if entry[1:2] == ["tree"]:
            return None
        blob = f"{commit}:.gitmodules"
        listed = _git("config", "--blob", blob, "--get-regexp", r"submodule\..*", mirror=mirror, what=path)
        settings = dict(line.split(" ", 1) for line in listed.splitlines())
        names = [
            key.removesuffix(".path") for key, value in settings.items() if key.endswith(".path") and value == path
        ]
        if len(entry) < 3 or entry[1] != "commit" or not names:
            raise SourceUnavailable(f"{self._settings.url} has no submodule {path!r} at {commit}")
        url = settings[f"{names[0]}.url"]
        if self._settings.url.startswith("https://") and not url.startswith("https://"):
            # A patch could name a directory of this machine.
            raise Unverifiable(f"submodule {path!r} at {commit} comes from {url!r}; only https:// is fetched")
        return url, entry[2]

    def _lay_out(self, parts: Iterable[Part], into: Path) -> None:
        for part in sorted(parts, key=lambda part: part.name):
            unpack(part.path, into / part.name.partition("@")[0].replace("%", "/"))


def _dotted(tag: str) -> str:
    """Tags write dots as underscores where the version control before git knew no dots: REL_17_2."""
    return tag.replace("_", ".")


def _git(*arguments: str, mirror: Path | None = None, what: str) -> str:
    # Nothing asks for a password, nothing runs a hook, no address can name a program, and what is left out stays out.
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never"]
    command += ["--git-dir", str(mirror)] if mirror else []
    environment = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_NO_LAZY_FETCH": "1"}
    return run_client([*command, *arguments], what, package="git", environment=environment)


@contextmanager
def _locked_mirror(mirror: Path) -> Iterator[Path]:
    """The bare repository, made when it is not there, for one process at a time."""
    mirror.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{mirror}.lock"):
        if not (mirror / "HEAD").is_file():
            _git("init", "--quiet", "--bare", str(mirror), what="a new mirror")
        yield mirror


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def merge_base(url: str, base: str, head: str, mirrors: Path) -> str:
    """The newest commit that `base` and `head`, both full SHAs of the repository at `url`, have in common.

    Only commits are fetched, no trees and no files, where the server can do that (GitHub can); they are kept below
    `mirrors` for the next time. SourceUnavailable when they cannot be fetched or have nothing in common.
    """
    for sha in (base, head):
        if not _SHA.fullmatch(sha):
            raise SourceUnavailable(f"{sha!r} is no full SHA")
    if Path(url).is_dir():
        url = f"file://{Path(url).resolve()}"  # git leaves nothing out of what it takes from a bare path
    with _locked_mirror(mirrors / f"{_digest(url)}.commits") as mirror:
        fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--filter=tree:0", "--", url)
        refs = [f"+{sha}:refs/pointdrop/{sha}" for sha in (base, head)]
        _git(*fetch, *refs, mirror=mirror, what=f"{url} {base} {head}")
        try:
            return _git("merge-base", base, head, mirror=mirror, what=url).strip()
        except SourceUnavailable as error:
            raise SourceUnavailable(f"{url}: {base} and {head} have no commit in common") from error
