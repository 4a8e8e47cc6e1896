"""Runs the roles of one step, each a sysbench process, with a pair of sockets between inserts and deletes."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Lock

from runners.errors import WorkloadFailed
from runners.meters.proc import Meter
from runners.meters.progress import ProgressWatch
from runners.meters.sample import MeterSample
from runners.meters.stalls import Stalls
from runners.sysbench.driver import run_sysbench

#: Roles in the order of their guilt: when several failed, those after fail because those before did.
SUSPECTS = ("delete", "index", "query", "insert")
PAIRED = ("insert", "delete")


@dataclass
class StepRun:
    """What the roles printed, by role; the meters and the stalls while the first of them worked."""

    outputs: dict[str, str] = field(default_factory=dict)
    meter_samples: list[MeterSample] = field(default_factory=list)
    stalls: Stalls | None = None


def run_step(
    commands: Mapping[str, Sequence[str]],
    *,
    clients: int,
    meter: Meter,
    as_account: Callable[[Sequence[str]], Sequence[str]],
    deadline_s: float,
) -> StepRun:
    """Run every role to its end; the first one is measured, and started last.

    The meters are read when its first client begins and when its last one has ended, its connections still open.
    WorkloadFailed when a role fails or is not done by the deadline.
    """
    done, lock = StepRun(), Lock()
    main = next(iter(commands))
    progress = ProgressWatch(meter)
    at_work = clients

    def on_line(role: str, line: str) -> None:
        """Every role's end is read, so that no client's CPU is lost; the measured role's are the window."""
        nonlocal at_work
        if line.startswith(("begin: ", "end: ")):
            with lock:
                reading = meter.read()
                if role == main and not (line.startswith("begin: ") and done.meter_samples):
                    progress.start()
                    done.meter_samples.append(reading)
                at_work -= role == main and line.startswith("end: ")
                if not at_work:
                    done.stalls = progress.stop()

    def run(role: str, ends: Sequence[socket.socket]) -> str:
        def close() -> None:
            """The partner must see it when the process ends, or never begins."""
            for end in ends:
                end.close()

        def on_start(pid: int) -> None:
            meter.watch_client(pid)
            close()  # the process has its own

        argv = list(commands[role])
        if ends:
            argv.insert(-1, f"--pair-fds={','.join(str(end.fileno()) for end in ends)}")
        try:
            return run_sysbench(
                as_account(argv),
                deadline_s=deadline_s,
                on_start=on_start,
                on_line=lambda line: on_line(role, line),
                pass_fds=[end.fileno() for end in ends],
            )
        finally:
            close()

    failures: dict[str, WorkloadFailed] = {}
    with ExitStack() as stack, ThreadPoolExecutor(len(commands), thread_name_prefix="role") as pool:
        stack.callback(progress.stop)
        ends: dict[str, list[socket.socket]] = {role: [] for role in commands}
        if set(PAIRED) <= commands.keys():
            for _ in range(clients):
                for role, end in zip(PAIRED, socket.socketpair(), strict=True):
                    ends[role].append(stack.enter_context(end))
        futures = {role: pool.submit(run, role, ends[role]) for role in reversed(list(commands))}
        for role, future in futures.items():
            try:
                done.outputs[role] = future.result()
            except WorkloadFailed as error:
                failures[role] = error
    for role in SUSPECTS:
        if role in failures:
            raise failures[role]
    done.outputs = {role: done.outputs[role] for role in commands}
    return done
