"""What a night did, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict

from history.model import Finding, Tier
from presentation.sentences import TIER_WORDS

#: Notes shown on a terminal.
MOST_NOTES = 5


class Summary(BaseModel):
    """The outcome of `pointdrop nightly`; its JSON is the command's `--format json`."""

    model_config = ConfigDict(frozen=True)

    plan: str
    releases: tuple[str, ...] = ()
    """Releases that got new blocks, as `postgres 17.5`."""
    blocks: int = 0
    """Blocks that finished tonight and count."""
    noisy: int = 0
    failed: int = 0
    series: int = 0
    """Series of the history that the detector read."""
    findings: dict[str, int] = {}
    """Findings of the newest detection, by tier and kind: `confirmed regression`."""
    issues: dict[str, int] = {}
    """What the tracker was told: `filed`, `updated`, `closed`, ..."""
    incomplete: tuple[str, ...] = ()
    """What could not be done, and why."""
    notes: tuple[str, ...] = ()
    """What a person may want to know and need do nothing about."""
    minutes: float = 0.0
    history: str = ""
    site: Path | None = None
    issues_at: str = ""

    @property
    def exit_code(self) -> int:
        """4 when something could not be done."""
        return 4 if self.incomplete else 0


def count_findings(findings: Sequence[Finding]) -> dict[str, int]:
    """Findings by tier and kind, most severe first; those that another one tells are one with it."""
    order = {"regression": 0, "drift": 1, "improvement": 2, "environment": 3}
    counted = Counter((order[f.kind], f.tier, f"{f.tier} {f.kind}") for f in findings if not f.folded_under)
    return {name: counted[key] for key in sorted(counted) for name in (key[2],)}


def _in_words(tier_and_kind: str) -> str:
    """`suspected regression` for `provisional regression`."""
    tier, kind = tier_and_kind.split(" ")
    return f"{TIER_WORDS[cast(Tier, tier)]} {kind}"


def lines(summary: Summary) -> list[str]:
    """The summary as the terminal shows it.

    >>> for line in lines(Summary(plan="local", releases=("postgres 17.5",), blocks=3, series=32, minutes=1.24)):
    ...     print(line)
    releases   1 measured: postgres 17.5
    blocks     3 finished in 1.2 minutes
    series     32 read
    findings   none: no series moved by more than its noise
    """
    names = summary.releases
    shown = ", ".join(names if len(names) <= 6 else (*names[:2], "...", *names[-2:])).replace(", ..., ", " ... ")
    lost = [f", {count} {word}" for count, word in ((summary.noisy, "noisy"), (summary.failed, "failed")) if count]
    findings = ", ".join(f"{count} {_in_words(name)}" for name, count in summary.findings.items())
    rows = [
        ("releases", f"{len(names)} measured: {shown}" if names else "nothing new to measure"),
        ("blocks", f"{summary.blocks} finished in {summary.minutes:.1f} minutes{''.join(lost)}"),
        ("series", f"{summary.series} read"),
        ("findings", findings or "none: no series moved by more than its noise"),
    ]
    if summary.issues:
        rows.append(("issues", ", ".join(f"{count} {what}" for what, count in summary.issues.items())))
    if summary.issues_at:
        rows.append(("issues at", summary.issues_at))
    if summary.site:
        rows.append(("site", str(summary.site / "index.html")))
    rows += [("note", note) for note in summary.notes[:MOST_NOTES]]
    if len(summary.notes) > MOST_NOTES:
        rows.append(("note", f"and {len(summary.notes) - MOST_NOTES} more; --format json has them all"))
    rows += [("not done", reason) for reason in summary.incomplete]
    return [f"{name:<10} {text}" for name, text in rows]
