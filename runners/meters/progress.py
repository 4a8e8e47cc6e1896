"""Looks at the processes of a test ten times a second, to see whether they get on.

    watch = ProgressWatch(meter)
    watch.start()            # the test's window begins
    ...
    stalls = watch.stop()

A look costs 0.1 to 0.4 ms: CPU clocks of all processes, and states of those that did not get on. Threads and the disk
are looked at only when none did. Children are listed once a second.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from runners.meters.proc import Meter, cpu_clock_s
from runners.meters.sample import parse_in_flight, parse_state
from runners.meters.stalls import PERIOD_S, Look, StallFinder, Stalls, Stopped, Wait

#: Seconds between two lists of the server's children.
LIST_S = 1.0
#: Reading several clocks takes microseconds; when it took longer, something came between.
CLOCK_READING_S = 0.01
READ_BYTES = 65_536
#: States of a process in /proc: stopped by a signal or a debugger; ended, not waited for, or gone.
STOPPED_STATES = {"T", "t"}
ENDED_STATES = {"Z", "X", None}
NS = 1e9


class ProgressWatch:
    """Looks at the server and the clients of `meter` while it is on, in a thread of its own."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="progress")
        self._stalls: Future[Stalls] | None = None

    def start(self) -> None:
        """Begin to look; starting twice is fine."""
        if self._stalls is None:
            self._stalls = self._pool.submit(self._run)

    def stop(self) -> Stalls | None:
        """What was seen; None when it was never started. Stopping twice is fine."""
        self._stop.set()
        self._pool.shutdown()
        return self._stalls.result() if self._stalls else None

    def _run(self) -> Stalls:
        finder = StallFinder()
        with _Sight(self._meter) as sight:
            finder.add(sight.look())
            while not self._stop.wait(PERIOD_S):
                look = sight.look()
                if sight.clients_ended:  # what comes after is not the test
                    break
                finder.add(replace(look, wait=sight.wait()) if finder.is_still(look) else look)
            return finder.stalls


class _Sight:
    """What must be kept from one look to the next; of one thread."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._clock_s: dict[int, float] = {}
        """CPU clock at the last look, by process."""
        self._working: set[int] = set()
        """Processes that used CPU in this test; others may be stopped without harm."""
        self._listed_at_s = -LIST_S
        self._clocks: tuple[float, ...] = ()
        self._cpu_s = 0.0
        self._own_schedule = _open(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self.clients_ended = False

    def __enter__(self) -> _Sight:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own_schedule is not None:
            os.close(self._own_schedule)

    def look(self) -> Look:
        """One look now, `wait` left out."""
        at_s = time.monotonic()
        self._clocks = clocks_s() or self._clocks
        if at_s - self._listed_at_s >= LIST_S:
            self._list(at_s)
        stopped = self._stopped(self._advance())
        return Look(at_s, self._clocks, self._excused_s(), self._cpu_s, stopped)

    def wait(self) -> Wait:
        """What server and clients wait for now."""
        states = set(_thread_states([*self._meter.pids(), *self._meter.clients]))
        if "R" in states:
            return "cpu"
        # Without a disk to ask, a sleeping server may as well wait for the network that its files are on.
        in_flight = parse_in_flight(_read("/proc/diskstats"), self._meter.device)
        return "storage" if "D" in states or in_flight is None or in_flight else "asleep"

    def _list(self, at_s: float) -> None:
        """Which processes there are; a new one's past is not progress."""
        self._listed_at_s = at_s
        clocks = {pid: self._clock_s.get(pid, cpu_clock_s(pid)) for pid in (*self._meter.pids(), *self._meter.clients)}
        self._clock_s = {pid: clock for pid, clock in clocks.items() if clock is not None}
        self._working &= self._clock_s.keys()

    def _advance(self) -> set[int]:
        """Processes that used CPU since the last look."""
        advanced = set()
        for pid, before in self._clock_s.items():
            now = cpu_clock_s(pid)
            if now is not None and now > before:
                self._clock_s[pid] = now
                self._cpu_s += now - before
                advanced.add(pid)
        self._working |= advanced
        return advanced

    def _stopped(self, advanced: set[int]) -> Stopped | None:
        clients = set(self._meter.clients)
        watched = self._working | clients | {self._meter.server_pid}
        states = {pid: _state(pid, pid) for pid in watched - advanced}
        self.clients_ended = bool(clients) and all(states.get(pid, "") in ENDED_STATES for pid in clients)
        held = {pid for pid, state in states.items() if state in STOPPED_STATES}
        if not held:
            return None
        return "client" if held <= clients else "server"

    def _excused_s(self) -> float | None:
        """How long this thread has waited for a CPU, and the harness has used one."""
        if self._own_schedule is None:
            return None
        _, waited_ns, *_ = os.pread(self._own_schedule, READ_BYTES, 0).split()
        return int(waited_ns) / NS + time.process_time()


def clocks_s() -> tuple[float, ...] | None:
    """Wall time and time since boot, less the monotonic clock; None when something came between reading them."""
    before = time.monotonic()
    wall, boot = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
    after = time.monotonic()
    return (wall - before, boot - before) if after - before < CLOCK_READING_S else None


def _thread_states(pids: Iterable[int]) -> Iterator[str | None]:
    for pid in pids:
        try:
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names, not paths, and often
        except OSError:
            continue
        yield from (_state(pid, thread) for thread in threads)


def _state(pid: int, thread: int | str) -> str | None:
    return parse_state(_read(f"/proc/{pid}/task/{thread}/stat"))


def _read(path: str) -> str:
    """The file's text, empty when it is gone; pathlib takes twice as long."""
    file = _open(path)
    if file is None:
        return ""
    try:
        return os.read(file, READ_BYTES).decode(errors="replace")
    except ProcessLookupError:
        return ""
    finally:
        os.close(file)


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None
