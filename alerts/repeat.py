"""The section that says how to see it again: one command, or what to do where nobody here can measure it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from alerts.context import Context
from alerts.measurable import Measurable
from alerts.safetext import Markdown, code, fenced
from alerts.settings import AlertSettings
from alerts.words import Headline
from history.model import Finding, Move

#: Tests named in a command.
MOST_TESTS = 4
COUNTED = "insn/o"


def repeat(
    finding: Finding, lead: Headline, context: Context, settings: AlertSettings, can: Measurable | None
) -> Markdown:
    """The command, for the place where most tests moved. Without `can` everything can be measured."""
    moves = told(finding, lead)
    if can is None:
        return fenced([_measured_again(finding, moves, settings)], "sh")
    # Rather a smaller move that can be measured here than a larger one that cannot.
    here = [move for move in moves if can.has(move.key)] or [move for move in finding.moves if can.has(move.key)]
    if here:
        return fenced([_measured_again(finding, here, settings)], "sh")
    return _shown_again(finding, moves, context, can)


def told(finding: Finding, lead: Headline) -> list[Move]:
    """Moves of the metric and server that the title tells of, the largest first."""
    moves = [m for m in finding.moves if m.key.metric == lead.metric and m.key.server == lead.server]
    return sorted(moves or finding.moves, key=lambda m: (-abs(m.change_pct), m.key.id))


def _tests(moves: Sequence[Move]) -> list[str]:
    first = moves[0].key
    same = (m.key.test for m in moves if (m.key.config, m.key.benchmark) == (first.config, first.benchmark))
    return list(dict.fromkeys(same))


def _lane(moves: Sequence[Move]) -> str:
    return "instructions" if moves[0].key.metric == COUNTED else "time"


def _measured_again(finding: Finding, moves: Sequence[Move], settings: AlertSettings) -> str:
    first = moves[0].key
    values = {
        "dbms": finding.dbms,
        "previous": finding.previous,
        "release": finding.release,
        "server": first.server,
        "config": first.config,
        "benchmark": first.benchmark,
        "lane": _lane(moves),
        "tests": ",".join(_tests(moves)[:MOST_TESTS]),
    }
    return shlex.join(word.format_map(values) for word in settings.links.repeat.split())


def _shown_again(finding: Finding, moves: Sequence[Move], context: Context, can: Measurable) -> Markdown:
    """How the detector came to it, and what would show it on the reader's own machine."""
    first = moves[0].key
    where = ["--dataset", context.dataset] if context.dataset else []
    series = shlex.join(["pointdrop", "explain", first.id, *where])
    place = f"{code(first.server)}, config {code(first.config)}"
    if context.dataset:
        why = f"These figures were published (dataset {code(context.dataset)}, {place}): nobody here can measure them."
        replay = ["pointdrop", "replay", *where, "--dbms", finding.dbms, "--line", finding.line, "--format", "text"]
        shown = [shlex.join(replay), series]
    else:
        why = f"Nothing that is configured here measures {code(first.test)} on {place}."
        shown = [series]
    parts = [f"{why} How the detector came to it:", fenced(shown, "sh")]
    tests = can.known(first.benchmark, _tests(moves))[:MOST_TESTS]
    if tests:
        sides = [f"{finding.dbms}@{version}" for version in (finding.previous, finding.release)]
        words = ["--benchmark", first.benchmark, "--lane", _lane(moves), "--tests", ",".join(tests)]
        config = ["--config", first.config] if (first.dbms, first.config) in can.configs else []
        parts.append(
            "On a machine of your own, both releases in interleaved blocks, at the small scale of the server `local`:"
        )
        parts.append(fenced([shlex.join(["pointdrop", "compare", *sides, *config, *words])], "sh"))
    return Markdown("\n\n".join(parts))
