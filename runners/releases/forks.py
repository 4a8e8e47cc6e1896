"""Where a branch left another: the commit a patch is compared with, so that what others did since is not the patch's.

Only commits are fetched, no trees and no files, where the server can do that (GitHub can); they are kept below the
cache for the next time.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from filelock import FileLock

from runners.releases.clients import run_client
from runners.releases.errors import SourceUnavailable

_SHA = re.compile(r"[0-9a-f]{40}")


def merge_base(url: str, base: str, head: str, mirrors: Path) -> str:
    """The newest commit that `base` and `head`, both full SHAs of the repository at `url`, have in common.

    SourceUnavailable when they cannot be fetched or have nothing in common.
    """
    for sha in (base, head):
        if not _SHA.fullmatch(sha):
            raise SourceUnavailable(f"{sha!r} is no full SHA")
    if Path(url).is_dir():
        url = f"file://{Path(url).resolve()}"  # git leaves nothing out of what it takes from a bare path
    mirror = mirrors / f"{hashlib.sha256(url.encode()).hexdigest()[:20]}.commits"
    mirrors.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{mirror}.lock"):
        if not (mirror / "HEAD").is_file():
            _git("init", "--quiet", "--bare", str(mirror), what="a new mirror")
        inside = ("--git-dir", str(mirror))
        wanted = [f"+{sha}:refs/pointdrop/{sha}" for sha in (base, head)]
        fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--filter=tree:0", "--", url)
        _git(*inside, *fetch, *wanted, what=f"{url} {base} {head}")
        try:
            return _git(*inside, "merge-base", base, head, what=url).strip()
        except SourceUnavailable as error:
            raise SourceUnavailable(f"{url}: {base} and {head} have no commit in common") from error


def _git(*arguments: str, what: str) -> str:
    # Nothing asks for a password, nothing runs a hook, and no address can name a program.
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", *arguments]
    environment = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_NO_LAZY_FETCH": "1"}
    return run_client(command, what, package="git", environment=environment)
