"""Results that an earlier job kept on disk while the database could not take them.

They come in before anything is measured: a session that is resumed asks the history which of its blocks are finished,
and a block measured a second time could no longer be told from the one that was kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from history.maintenance import recover
from history.store import Store


def bring_in(store: Store, state: Path, say: Callable[[str], None]) -> list[str]:
    """Import what `STATE/spool` holds; what could not be taken, and why. Its file stays."""
    problems = []
    for report in recover(store, [state / "spool"]):
        if report.stored:
            say(f"brought in {report.new.get('block', 0)} blocks that were kept in {report.file}")
        else:
            first = report.rejected[0]
            problems.append(
                f"{report.file}, line {first.line}: {first.reason}; it stays for `pointdrop history recover`"
            )
    return problems
