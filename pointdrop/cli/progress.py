"""How a measuring job shows where it is: a bar on a terminal, plain lines in a log, both on standard error."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from presentation.durations import duration_range
from runners.sessions import Event, Outcome
from runners.sessions.events import (
    BlockDone,
    DataPrepared,
    RunSkipped,
    SessionDone,
    SessionStarted,
    TestDone,
)


class Reporter:
    """Shows the events of sessions; `quiet` shows nothing but trouble."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.terminal = self.console.is_terminal and not quiet
        self.started = time.monotonic()
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.terminal,
        )
        self.session = self.progress.add_task("", visible=False)

    def __enter__(self) -> Self:
        if self.terminal:
            self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.terminal:
            self.progress.update(self.session, visible=False)
            self.progress.stop()

    def say(self, text: str) -> None:
        """One line, with the minutes since the start where nobody watches a bar."""
        if self.quiet:
            return
        if self.terminal:
            self.progress.console.print(text, markup=False)
        else:
            print(f"[{(time.monotonic() - self.started) / 60:5.1f} min] {text}", file=sys.stderr, flush=True)

    def on_event(self, event: Event) -> None:
        match event:
            case SessionStarted(plan=plan, estimate=estimate, already_done=already):
                versions = ", ".join(dict.fromkeys(run.release.version for run in plan.runs))
                again = f", {already} done before" if already else ""
                self.say(
                    f"{plan.control.dbms} {plan.lane} lane: {estimate.blocks} blocks of {len(plan.tests)} tests"
                    f"{again}, {duration_range(estimate.low_s, estimate.high_s)} ({versions})"
                )
                self.progress.update(
                    self.session, total=estimate.blocks, completed=0, visible=True, description=plan.lane
                )
            case DataPrepared(release=release, seconds=seconds, reused=False):
                self.say(f"{release}: data prepared in {seconds:.1f} s")
            case TestDone(block=block, test=test) if self.terminal:
                self.progress.update(self.session, description=f"{block.run.release.name} {test}")
            case BlockDone(block=block, status=status, reason=reason, seconds=seconds):
                self.progress.advance(self.session)
                trouble = "" if status == "ok" else f", {status}: {reason}"
                self.say(f"{block.run.release.name}: block {block.number} in {seconds:.1f} s{trouble}")
            case RunSkipped(run_id=run_id, reason=reason):
                self.say(f"{run_id}: left out, {reason}")
            case SessionDone(outcome=outcome) if cost := cost_of(outcome):
                self.say(cost)


def cost_of(outcome: Outcome) -> str:
    """What measuring cost besides the measurement; empty when nothing was measured.

    >>> cost_of(Outcome(wall_s=600.0, measured_s=420.0, harness_cpu=0.0021))
    'session of 10.0 min: 70 % of it measurement, the harness used 0.2 % of a core meanwhile'
    """
    if outcome.overhead is None:
        return ""
    text = f"session of {outcome.wall_s / 60:.1f} min: {100 * (1 - outcome.overhead):.0f} % of it measurement"
    if outcome.harness_cpu is None:
        return text
    return f"{text}, the harness used {100 * outcome.harness_cpu:.1f} % of a core meanwhile"
