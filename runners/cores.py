"""Which cores of this host measure: a lock file for each, held by one session at a time.

A timed session takes every core of the machine, so that nothing else measures beside it. A session of the instructions
lane, which other load does not disturb, takes free ones among those its process may run on, one a worker: with
`taskset -c 0` in front it leaves the rest to others. The files are in the folder for temporary files, which must be the
same one for all who measure here. A lock ends with the process that holds it, whatever ends that.

    with Cores().whole_host() as held: ...      # HostBusy while any core is held
    with Cores().free(4) as held: ...           # HostBusy when none is free
    held.numbers                                # (0, 1): at least one, at most four
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from runners.errors import HostBusy

#: Cores are taken under one more lock, so that nobody sees half of it; old data is removed under it.
GATE_S = 120.0
#: Anybody who measures here may hold a lock.
MODE = 0o666
_LOCKS = Path("/proc/locks")
#: Fields of a line of /proc/locks: `1: FLOCK  ADVISORY  WRITE 4711 fd:00:1835040 0 EOF`.
_KIND, _PID, _INODE = 1, 4, 5


def usable_cores() -> tuple[int, ...]:
    """Numbers of the cores this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def machine_cores() -> tuple[int, ...]:
    """Numbers of all cores."""
    return tuple(sorted({*range(os.cpu_count() or 1), *usable_cores()}))


@dataclass(frozen=True)
class Cores:
    """The cores of this host, whose locks are in `folder`."""

    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))

    @contextmanager
    def whole_host(self) -> Iterator[HeldCores]:
        """Every core, for a timed session. HostBusy, which names who measures, when one is held."""
        with ExitStack() as stack:
            with self._gate():
                taken = self._taken(stack, machine_cores(), len(machine_cores()))
                if busy := set(machine_cores()) - set(taken):
                    raise HostBusy(
                        f"another session measures on this host ({self._holders(busy)}), and nothing may run beside "
                        "a timed one; wait for it to end"
                    )
            yield HeldCores(self, taken)

    @contextmanager
    def free(self, most: int) -> Iterator[HeldCores]:
        """Free cores for a session that counts, at least one and at most `most`. HostBusy when none is free."""
        usable = usable_cores()
        with ExitStack() as stack:
            with self._gate():
                taken = self._taken(stack, usable, max(1, most))
                if not taken:
                    raise HostBusy(
                        f"another session measures on this host ({self._holders(usable)}), and no core is left; "
                        "wait for it to end, or begin it with fewer cores, such as `taskset -c 0 pointdrop ...`"
                    )
            yield HeldCores(self, taken)

    @contextmanager
    def only(self, held: Iterable[int]) -> Iterator[bool]:
        """Whether nobody holds a core but those `held`; while this lasts nobody takes one either."""
        others = set(machine_cores()) - set(held)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._gate())
            except HostBusy:
                yield False
                return
            yield len(self._taken(stack, others, len(others))) == len(others)

    def _path(self, core: int) -> Path:
        return self.folder / f"pointdrop-core-{core}.lock"

    @contextmanager
    def _gate(self) -> Iterator[None]:
        path = self.folder / "pointdrop-cores.lock"
        try:
            with FileLock(path, timeout=GATE_S, mode=MODE):
                yield
        except Timeout:
            raise HostBusy(f"{path} is held for more than {GATE_S:.0f} s; end the process that holds it") from None

    def _taken(self, stack: ExitStack, wanted: Iterable[int], most: int) -> tuple[int, ...]:
        """Cores of those `wanted` that nobody holds, lowest first; they are held until `stack` is left."""
        taken: list[int] = []
        for core in sorted(wanted):
            if len(taken) == most:
                break
            with suppress(Timeout):
                stack.enter_context(FileLock(self._path(core), timeout=0, mode=MODE))
                taken.append(core)
        return tuple(taken)

    def _holders(self, cores: Iterable[int]) -> str:
        """`process 4711 (python pointdrop bench) holds core 0, 1`, as far as /proc tells."""
        by_process: dict[int, list[int]] = {}
        pids = _holding_pids()
        for core in sorted(cores):
            with suppress(FileNotFoundError):
                by_process.setdefault(pids.get(self._path(core).stat().st_ino, 0), []).append(core)
        return "; ".join(
            f"{_process(pid)} holds core {', '.join(map(str, numbers))}" for pid, numbers in by_process.items()
        )


@dataclass(frozen=True)
class HeldCores:
    """Cores that this process holds."""

    cores: Cores
    numbers: tuple[int, ...]

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else measures here; while this lasts nobody begins to."""
        with self.cores.only(self.numbers) as alone:
            yield alone


def _holding_pids() -> dict[int, int]:
    """Who holds a file lock, by the file's inode."""
    try:
        lines = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        return {}
    return {int(line[_INODE].rpartition(":")[2]): int(line[_PID]) for line in lines if line[_KIND] == "FLOCK"}


def _process(pid: int) -> str:
    """A process in words, without its options, which may hold a password."""
    try:
        words = psutil.Process(pid).cmdline() if pid > 0 else []
    except psutil.Error:
        words = []
    named = [Path(word).name for word in words[: next((n for n, w in enumerate(words) if w.startswith("-")), None)]]
    return f"process {pid} ({' '.join(named)})" if named else "a process of somebody else"
