"""Build a DBMS from source by a recipe kept in `configs/dbms/<dbms>/recipes/<name>.toml`.

    system = "configure"                       # or "cmake", "meson"
    arguments = ["--without-readline"]         # after those that Pointdrop gives: prefix, compiler launcher
    packages = ["build-essential", "bison"]    # named in the message when a step fails
    environment = { CFLAGS = "-O2 -g" }
    [[requires]]                               # what the source asks for and lacks: `runners.releases.requirements`

A build runs as the account servers run as, never as root; with `sandbox` it sees neither the network nor anything
but the system's programs and its own directory. ccache is used where it is installed. The log is kept.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field

from history.settings import Setting
from runners.bounds import LEAST_FREE_BYTES, DiskFull, run_within, scope
from runners.engines.account import server_account
from runners.errors import BuildFailed
from runners.releases.archives import links_out, remove_tree
from runners.releases.cache import Cache
from runners.releases.requirements import Requirement, supply
from runners.sandbox import BUILD, sandboxed

#: MySQL, the slowest, on two cores without a warm ccache.
STEP_SECONDS = 6 * 3600
#: Of the log, in the message of a failed build.
SHOWN_LINES = 12
#: What is read for that: a build may log more than memory holds.
SHOWN_BYTES = 1 << 16


class BuildRecipe(Setting):
    """How one DBMS is built."""

    system: Literal["configure", "cmake", "meson"]
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    packages: tuple[str, ...] = ()
    requires: tuple[Requirement, ...] = ()


def steps(
    recipe: BuildRecipe, source: Path, work: Path, stage: Path, prefix: Path, jobs: int, ccache: bool
) -> list[tuple[list[str], Path]]:
    """The commands of a build with the directory of each. Pure.

    The files are installed below `stage` and believe that they are below `prefix`, where they will be.
    """
    arguments = list(recipe.arguments)
    if recipe.system == "configure":
        compilers = ["CC=ccache gcc", "CXX=ccache g++"] if ccache else []
        return [
            ([str(source / "configure"), f"--prefix={prefix}", *compilers, *arguments], work),
            (["make", f"-j{jobs}"], work),
            (["make", "install", f"DESTDIR={stage}"], work),
        ]
    if recipe.system == "cmake":
        launcher = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX") if ccache]
        configure = ["cmake", "-S", str(source), "-B", str(work), f"-DCMAKE_INSTALL_PREFIX={prefix}"]
        return [
            ([*configure, *launcher, *arguments], work),
            (["cmake", "--build", str(work), "--parallel", str(jobs)], work),
            (["cmake", "--install", str(work)], work),
        ]
    return [  # meson uses ccache by itself
        (["meson", "setup", str(work), str(source), f"--prefix={prefix}", *arguments], source),
        (["meson", "compile", "-C", str(work), "-j", str(jobs)], source),
        (["meson", "install", "-C", str(work), "--no-rebuild", f"--destdir={stage}"], source),
    ]


@functools.cache
def compiler() -> str:
    """What compiles, in a line: part of what a build is made of."""
    for name in ("gcc", "cc", "clang"):
        if path := shutil.which(name):
            done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=30)
            return done.stdout.splitlines()[0] if done.stdout else name
    return "none"


class Builder:
    """Builds one tree; `patch` is applied first."""

    def __init__(
        self,
        recipe: BuildRecipe,
        state: Path,
        patch: Path | None = None,
        sandbox: bool = False,
        jobs: int | None = None,
        offline: bool = False,
    ) -> None:
        self.recipe = recipe
        self._state = state
        self._patch = patch
        self._sandbox = sandbox
        self._jobs = jobs or os.cpu_count() or 1
        self._offline = offline

    @property
    def unpack_key(self) -> str:
        """Everything that a build depends on besides its source."""
        patch = hashlib.sha256(self._patch.read_bytes()).hexdigest() if self._patch else ""
        recipe = self.recipe.model_dump_json(exclude=None if self.recipe.requires else {"requires"})
        return f"\n{recipe}\n{compiler()}\n{patch}"

    @contextmanager
    def source_tree(self, into: Path) -> Iterator[Path]:
        """An empty directory beside `into` for the source, removed after the build."""
        source = into.with_name("source")
        source.mkdir()
        try:
            yield source
        finally:
            remove_tree(source)

    def build(self, source: Path, into: Path, prefix: Path) -> None:
        """Patch, configure, compile, install: `into` gets what belongs at `prefix`.

        BuildFailed names the step, shows the end of the log, and says where all of it is. What the source requires
        besides: as `supply`.
        """
        into.parent.chmod(0o755)  # a temporary directory, closed to everybody else until now
        account = server_account()
        work, stage, required = (into.with_name(name) for name in ("build", "stage", "required"))
        cache = (self._state / "ccache").resolve()  # it may be a link to a larger disk, also one not yet made
        cache.mkdir(parents=True, exist_ok=True)
        for place in (into, cache):
            barrier = account.barrier(place)
            if barrier is not None:
                raise BuildFailed(
                    f"builds run as {account.name}, which may not enter {barrier} on the way to {place.parent}; "
                    f"set POINTDROP_STATE to a folder that others may enter, or run: chmod o+x {barrier}"
                )
        for directory in (work, stage, required):
            directory.mkdir(parents=True, exist_ok=True)
        given = supply(self.recipe.requires, source, required, Cache(self._state), offline=self._offline)
        recipe = self.recipe.model_copy(update={"arguments": (*self.recipe.arguments, *given)})
        if self._patch:
            copy = into.with_name("patch")
            shutil.copyfile(self._patch, copy)
            copy.chmod(0o644)
        for directory in (source, work, stage, required):
            account.own_tree(directory)
        account.own(cache)
        # /bin last: in the sandbox it is no link, and cmake looks for its own files beside where it was found.
        path = "/usr/bin:/usr/local/bin:/bin"
        ccache = shutil.which("ccache", path=path) is not None
        commands = (
            [(["patch", "--strip=1", "--batch", "--forward", "--input", str(copy)], source)] if self._patch else []
        )
        commands += steps(recipe, source, work, stage, prefix, self._jobs, ccache)
        environment = {
            "PATH": path, "HOME": str(work), "LC_ALL": "C.UTF-8",
            "CCACHE_DIR": str(cache), "CCACHE_BASEDIR": str(into.parent), "CCACHE_NOHASHDIR": "1",
            "DESTDIR": str(stage), **self.recipe.environment,
        }  # fmt: skip
        if self._sandbox:
            # What a stranger's build put there would be linked into other people's builds.
            environment |= {"CCACHE_READONLY": "1", "CCACHE_TEMPDIR": "/tmp"}
        log = self._state / "builds" / f"{prefix.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            for command, directory in commands:
                if self._sandbox:
                    command = sandboxed(
                        command,
                        bounds=BUILD,
                        readable=[cache],
                        writable=[into.parent],
                        directory=directory,
                        environment=environment,
                    )
                out.write(f"$ {' '.join(command)}\n".encode())
                out.flush()
                enclosed = [*(scope() if self._sandbox else ()), *account.command(command)]
                self._step(enclosed, directory, environment, out.fileno(), log)
        staged = stage / str(prefix).lstrip("/")
        if not staged.is_dir():
            raise BuildFailed(f"the build installed nothing below {prefix}; the log is {log}")
        # Root owns, opens and reads what is there from here on: it must be theirs, not what a link of theirs leads to.
        if os.path.realpath(staged) != str(stage.resolve() / str(prefix).lstrip("/")):
            raise BuildFailed(f"what the build installed at {prefix} leads out of its directory; the log is {log}")
        staged.replace(into)
        if self._sandbox:
            for name in links_out(into, prefix):
                raise BuildFailed(
                    f"the build installed {name}, a link that leads out of its directory; the log is {log}"
                )
        _take_back(into)
        for directory in (work, stage, required):
            shutil.rmtree(directory)

    def _step(self, command: list[str], directory: Path, environment: Mapping[str, str], out: int, log: Path) -> None:
        try:
            status = run_within(
                command, cwd=directory, env=environment, out=out, deadline_s=STEP_SECONDS, least_free=LEAST_FREE_BYTES
            )
        except subprocess.TimeoutExpired as error:
            raise BuildFailed(f"a step did not finish within {STEP_SECONDS} s; the log is {log}") from error
        except DiskFull as error:
            raise BuildFailed(f"the build was stopped: {error}; make room there. The log is {log}") from error
        if status:
            with log.open("rb") as written:
                written.seek(max(0, log.stat().st_size - SHOWN_BYTES))
                last = "\n  ".join(written.read().decode(errors="replace").splitlines()[-SHOWN_LINES:])
            raise BuildFailed(
                f"the build failed with status {status}:\n  {last}\nThe whole log is {log}. "
                f"It needs: apt-get install {' '.join(self.recipe.packages)}"
            )


def _take_back(tree: Path) -> None:
    """What was built belongs to this account again, so that no server can change what it runs from."""
    for directory, _, files in os.walk(tree):
        os.chown(directory, os.geteuid(), os.getegid())
        for name in files:
            os.chown(Path(directory, name), os.geteuid(), os.getegid(), follow_symlinks=False)
