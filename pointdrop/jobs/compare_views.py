"""A comparison as text, Markdown and JUnit. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from xml.etree import ElementTree

from alerts.safetext import code
from history.model import SettingsSplit
from pointdrop.jobs.compare import CompareReport, Function, SplitReport, TestRow
from presentation.number_format import sides
from presentation.sentences import TOGETHER, shown_part, split_sentence

MARKS = {"regression": "▼", "improvement": "▲", "": " "}
#: An empty value, where it must be seen.
NOTHING = "''"
WORDS = {
    "SAME": "No test differs.",
    "UNKNOWN": "Not clear: some tests would need more blocks.",
    "DIFFERENT": "They differ.",
}


def headline(report: CompareReport, name: Callable[[str], str] = str) -> str:
    """The family's verdict in one sentence; `name` makes a test's name safe for where it will stand."""
    worse = [row for row in report.tests if row.direction == "regression"]
    better = [row for row in report.tests if row.direction == "improvement"]
    parts = [f"{len({row.test for row in worse})} slower"] if worse else []  # a test may have moved in two metrics
    parts += [f"{len({row.test for row in better})} faster"] if better else []
    if not parts:
        return WORDS[report.verdict]
    largest = max((*worse, *better), key=lambda row: abs(row.change_pct))
    measured = len({row.test for row in report.tests})
    most = f"{name(largest.test)}, {largest.change_pct:+z.1f} % {name(largest.metric)}"
    return f"Of {measured} {'test' if measured == 1 else 'tests'} {' and '.join(parts)}; most {most}."


def interval(row: TestRow) -> str:
    """`[-0.19, +0.31]`, or nothing while it is unbounded. What is the same within 0.2 % needs both decimals."""
    if row.low_pct is None or row.high_pct is None:
        return ""
    return f"[{row.low_pct:+z.2f}, {row.high_pct:+z.2f}]"


def function_sides(function: Function) -> tuple[str, str]:
    """Whole instructions before and after."""
    return sides(function.before, function.after, function.at_most, "{:,.0f}".format)[:2]


def text_lines(report: CompareReport) -> list[str]:
    """The whole report for a terminal."""
    width = max((len(row.test) for row in report.tests), default=4)
    metric = max((len(row.metric) for row in report.tests), default=6)
    lines = [f"{report.verdict}: {headline(report)}", *split_lines(report), ""]
    lines.append(f"{'test':<{width}}  {'metric':<{metric}}  verdict      change   interval          blocks")
    for row in report.tests:
        mark = MARKS[row.direction]
        lines.append(
            f"{row.test:<{width}}  {row.metric:<{metric}}  {row.verdict:<9} {mark} {row.change_pct:+7.2f} %  "
            f"{interval(row):<16}  {row.blocks}"
        )
    for row in report.tests:
        for f in row.functions:
            lines.append(f"    {row.test}  {f.name}  {' -> '.join(function_sides(f))} instructions")
    lines += [f"note: {warning}" for warning in report.warnings]
    if isinstance(report, SplitReport):
        lines += ["", *_settings_lines(report.split)]
    ran = f"{report.base} against {report.candidate} on {report.server}, {report.lane} lane, profile {report.profile}: "
    ran += f"{report.blocks} blocks in {report.rounds} rounds, {report.minutes:.1f} minutes."
    return [*lines, "", f"{ran} Stopped: {report.stopped}." if report.stopped else ran]


def split_lines(report: CompareReport) -> list[str]:
    """What the difference is made of, first of all tests together, then of each that differs."""
    if not isinstance(report, SplitReport):
        return []
    lines = [split_sentence(report.split, whole=TOGETHER)]
    for row in report.split.tests:
        if row.cause:
            parts = f"settings {shown_part(row.settings)}, code {shown_part(row.code)}"
            lines.append(f"    {row.test}  {row.metric}  {parts}: {row.cause}")
    return lines


def _settings_lines(split: SettingsSplit) -> list[str]:
    """Each setting that differs, and why the arm between the sides does not have the base's value."""
    lines = ["settings that differ"]
    changes = [(change, "") for change in split.held] + [(left.change, left.reason) for left in split.left]
    for change, reason in changes:
        stays = f"  (in the code's part: {reason})" if reason else ""
        lines.append(f"    {change.name}  {change.before or NOTHING} -> {change.after or NOTHING}{stays}")
    return lines


def _split_markdown(split: SettingsSplit) -> list[str]:
    """The sentence, the parts of each test, and the settings; names and values stand in code spans."""
    parts = [split_sentence(split, code, whole=TOGETHER)]
    rows = [
        f"| {code(row.test)} | {code(row.metric)} | {shown_part(row.settings)} | {shown_part(row.code)} | {row.cause} |"
        for row in split.tests
        if row.cause
    ]
    if rows:
        head = ["| test | metric | settings | code | cause |", "| --- | --- | --- | --- | --- |"]
        parts.append("\n".join([*head, *rows]))
    changes = [(change, "") for change in split.held] + [(left.change, left.reason) for left in split.left]
    if changes:
        table = ["| setting | base | candidate | not held, since |", "| --- | --- | --- | --- |"]
        for change, reason in changes:
            cells = (change.name, change.before or NOTHING, change.after or NOTHING, reason)
            table.append(f"| {' | '.join(code(cell) if cell else '' for cell in cells)} |")
        parts.append(_folded(f"{len(changes)} settings differ", "\n".join(table)))
    return parts


def markdown(report: CompareReport) -> str:
    """The report as a GitHub table. Names of sides and tests stand in code spans; nothing else is foreign text."""
    moved = [row for row in report.tests if row.direction]
    parts = [f"**{headline(report, code)}**"]
    if moved:
        parts.append(_markdown_table(moved))
    if isinstance(report, SplitReport):
        parts += _split_markdown(report.split)
    rows = [
        f"| {code(row.test)} | {code(f.name)} | {' | '.join(function_sides(f))} |"
        for row in moved
        for f in row.functions
    ]
    if rows:
        table = "\n".join(["| test | function | before | after |", "| --- | --- | ---: | ---: |", *rows])
        parts.append(_folded("Functions that changed most, in instructions per operation", table))
    for verdict, words in (("UNKNOWN", "not clear"), ("SAME", "the same")):
        if of_verdict := [row for row in report.tests if row.verdict == verdict]:
            parts.append(_folded(f"{len(of_verdict)} {words}", _markdown_table(of_verdict)))
    ran = f"{code(report.base)} against {code(report.candidate)} on {code(report.server)}, {report.lane} lane, "
    ran += f"{report.blocks} blocks, {report.minutes:.1f} minutes."
    parts.append(f"{ran} Stopped: {code(report.stopped)}." if report.stopped else ran)
    return "\n\n".join(parts) + "\n"


def _folded(summary: str, table: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{table}\n\n</details>"


def _markdown_table(rows: Iterable[TestRow]) -> str:
    lines = ["| test | metric | verdict | change | interval | blocks |", "| --- | --- | --- | ---: | --- | ---: |"]
    for row in rows:
        verdict = f"{MARKS[row.direction]} {row.direction}" if row.direction else row.verdict
        numbers = f"{row.change_pct:+z.2f} % | {interval(row)} | {row.blocks}"
        lines.append(f"| {code(row.test)} | {code(row.metric)} | {verdict} | {numbers} |")
    return "\n".join(lines)


def junit(report: CompareReport) -> str:
    """JUnit XML: a regression is a failure, an unclear test is skipped."""
    suite = ElementTree.Element(
        "testsuite", name=f"{report.base} against {report.candidate}", tests=str(len(report.tests)),
        failures=str(len(report.regressions)), skipped=str(sum(row.verdict == "UNKNOWN" for row in report.tests)),
    )  # fmt: skip
    for row in report.tests:
        case = ElementTree.SubElement(suite, "testcase", classname=f"{report.server}.{row.metric}", name=row.test)
        message = f"{row.change_pct:+z.2f} % {interval(row)}"
        if row.direction == "regression":
            ElementTree.SubElement(case, "failure", message=message)
        elif row.verdict == "UNKNOWN":
            ElementTree.SubElement(case, "skipped", message=message)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
