"""Hardware counters of the server through `perf stat`, where the machine has them.

perf prints a row for each event and interval; what a machine does not count is absent, never zero:

    0.200110402,812345678,,instructions:u,398211034,100.00,,
    0.200110402,<not supported>,,cache-misses:u,0,100.00,,
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

#: Metric an operation by perf's name of the event; user mode only, so that the kernel's work for others is left out.
INSTRUCTIONS = "instructions:u"
EVENTS: Mapping[str, str] = {
    INSTRUCTIONS: "hw_insn/o",
    "cycles:u": "cycles/o",
    "branch-misses:u": "branch_misses/o",
    "cache-misses:u": "cache_misses/o",
}
INTERVAL_MS = 200
STOP_DEADLINE_S = 10


@cache
def supported_events() -> tuple[str, ...]:
    """The events of `EVENTS` that this machine counts; none without perf."""
    if shutil.which("perf") is None:
        return ()
    command = ["perf", "stat", "-x,", "-e", ",".join(EVENTS), "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    counted = [line.split(",") for line in done.stderr.splitlines()]
    return tuple(row[2] for row in counted if len(row) > 2 and row[0].isdigit() and row[2] in EVENTS)


def parse_rates(text: str) -> dict[str, float]:
    """Events a second from `perf stat -x, -I`, between the first interval's end and the last's.

    >>> parse_rates("1.0,50,,cycles:u,1,100.00,,\\n1.5,70,,cycles:u,1,100.00,,\\n2.0,90,,cycles:u,1,100.00,,\\n")
    {'cycles:u': 160.0}
    """
    rows: dict[str, list[tuple[float, float]]] = {}
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) < 4 or line.lstrip().startswith("#"):
            continue
        try:
            at_s, count = float(fields[0]), float(fields[1])
        except ValueError:
            continue  # `<not counted>`, `<not supported>`
        rows.setdefault(fields[3], []).append((at_s, count))
    rates = {}
    for event, counts in rows.items():
        seconds = counts[-1][0] - counts[0][0]
        if seconds > 0:
            rates[event] = sum(count for _, count in counts[1:]) / seconds
    return rates


class PerfStat:
    """`perf stat` attached to processes that exist, and to what they start."""

    def __init__(self, events: Sequence[str]) -> None:
        self._events = events
        self._process: subprocess.Popen[str] | None = None

    def start(self, pids: Sequence[int]) -> None:
        """Begin to count; without events nothing is started."""
        if not self._events:
            return
        command = ["perf", "stat", "-x,", "-I", str(INTERVAL_MS), "-e", ",".join(self._events)]
        command += ["-p", ",".join(map(str, pids))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def stop(self) -> dict[str, float]:
        """Events a second since `start`; empty when nothing was counted. Stopping twice is fine."""
        process, self._process = self._process, None
        if process is None:
            return {}
        process.send_signal(signal.SIGINT)
        try:
            _, text = process.communicate(timeout=STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return {}
        return parse_rates(text)
