"""Which issue answers for a finding: its own, one of before its boundary moved, or that of another line. Pure but for
the states that are looked up.

A change of several lines has one issue. Which of its findings the detector calls the surest may change from night to
night; the issue does not: a line that has an issue leads, the surest without one only where no line has any. What other
lines' issues were filed before it was known that they are one change is closed with a word to that effect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from alerts.changes import DIGEST, ENVIRONMENT
from alerts.issue_state import IssueState
from alerts.lifecycle import OPEN, WAITING, State
from alerts.subject import Subject, issue_key_of, members_of
from alerts.trackers import Issue
from history.model import MAJORS, NOT_FILED, ChangeLine, Finding
from history.versions import version_key

#: States in which a key has no issue that could speak for a change.
MUTE = frozenset({*WAITING, State.DIGESTED, State.FOLDED})

Look = Callable[[str], IssueState]
"""The state of a key."""


def answered_by(
    detected: Sequence[Subject], issues: Mapping[str, Issue], issue_state: Look
) -> tuple[list[Subject], dict[str, str]]:
    """Subjects under the key of the issue that already answers for them, and the new names among these.

    With more results a boundary can move inside its suspect range (8.0.29 was not measured, now it is): the finding
    has another key, but it is the same changepoint and keeps its issue. Never when the older key is detected as well.
    """
    own = {subject.key for subject in detected}
    members = {issue_key_of(member) for subject in detected for member in subject.members}
    free = _unclaimed(own | members, issues, issue_state)
    answered: list[Subject] = []
    renamed: dict[str, str] = {}
    for subject in detected:
        older = ""
        if issue_state(subject.key).state in WAITING and subject.key not in issues:
            older = _older(subject.finding, issue_state(subject.key), free)
        if older:
            renamed[subject.key] = older
            free.pop(older)
            answered.append(subject.model_copy(update={"key": older}))
        else:
            answered.append(subject)
    return answered, renamed


def _unclaimed(own: Collection[str], issues: Mapping[str, Issue], issue_state: Look) -> dict[str, IssueState]:
    """Issues of boundaries whose keys are not among `own`."""
    return {
        key: issue_state(key)
        for key in issues
        if key not in own and not key.startswith((DIGEST, ENVIRONMENT)) and issue_state(key).state not in WAITING
    }


def _older(finding: Finding, own_state: IssueState, free: Mapping[str, IssueState]) -> str:
    """The key under which the changepoint of a finding without an issue was filed before; empty where it was not."""
    return own_state.alias_of if own_state.alias_of in free else _same_range(finding, free)


def _same_range(finding: Finding, free: Mapping[str, IssueState]) -> str:
    """The key of an issue of the same kind and line whose suspect range overlaps the finding's."""

    for key, issue_state in sorted(free.items()):
        previous, release = issue_state.told.get("previous"), issue_state.told.get("release")
        if not (previous and release) or finding.line == MAJORS:
            continue
        same = key.split("/")[:2] == [finding.dbms, finding.line] and key.endswith(f"/{finding.kind}")
        overlap = max(version_key(finding.dbms, previous), version_key(finding.dbms, finding.previous)) < min(
            version_key(finding.dbms, release), version_key(finding.dbms, finding.release)
        )
        if same and overlap:
            return key
    return ""


def led_by_issues(
    findings: Sequence[Finding], kinds: Iterable[str], issues: Mapping[str, Issue], issue_state: Look
) -> list[Finding]:
    """`findings`, each change led by the line whose issue answers for it: the leading one's if it is open, else the
    oldest open one, else any that a person or Pointdrop closed. A line that lacks a part of what the leading finding
    shows answers for it never: that part would be told nowhere."""
    members = members_of(one for one in findings if one.kind in frozenset(kinds) and one.cause not in NOT_FILED)
    answers = answering(findings, issues, issue_state)
    led = {finding.key: finding for finding in findings}
    for lead_key, of_change in members.items():
        lead = led[lead_key]
        whole = {row.finding for row in lead.lines if row.whole}
        lines = [lead, *(member for member in of_change if member.key in whole and member.same_as == lead_key)]

        def rank(finding: Finding, lead: Finding = lead) -> tuple[bool, bool, float]:
            key = answers(finding)
            state = issue_state(key).state if key else State.NEW
            number = issues[key].number if key in issues else float("inf")
            return state not in OPEN, state in MUTE, -1 if finding is lead else number

        leading = min(lines, key=rank)
        if leading is not lead:
            led |= {finding.key: finding for finding in _led_by(leading, lead, of_change)}
    return [led[finding.key] for finding in findings]


def _led_by(leading: Finding, lead: Finding, members: Iterable[Finding]) -> list[Finding]:
    """The findings of a change of `lead` with one of its members in its place."""
    shown = lead.lines[0]
    rows = (
        ChangeLine.of(lead, lead.line, shown.test, shown.metric),
        *(row for row in lead.lines if row.finding != leading.key),
    )
    taken = {"lines": rows, "probably_affected": lead.probably_affected, "same_as": ""}
    given = {"lines": (), "probably_affected": (), "same_as": leading.key}
    others = [
        member.model_copy(
            update={"same_as": leading.key}
            if member.same_as
            else {"explained_by": (leading.key, *(key for key in member.explained_by if key != lead.key))}
        )
        for member in members
        if member is not leading
    ]
    return [leading.model_copy(update=taken), lead.model_copy(update=given), *others]


def folded_issues(
    answered: Iterable[Subject], findings: Iterable[Finding], issues: Mapping[str, Issue], issue_state: Look
) -> dict[str, str]:
    """By key of an issue that was filed for a finding that is told elsewhere now: the key of that other issue."""
    answered = list(answered)
    answers = answering(findings, issues, issue_state)
    own = {subject.key for subject in answered}
    return {
        key: subject.key
        for subject in answered
        for member in subject.members
        if (key := answers(member)) and key not in own
    }


def answering(findings: Iterable[Finding], issues: Mapping[str, Issue], issue_state: Look) -> Callable[[Finding], str]:
    """Of a finding: the key of the issue that was filed for it, under its own name or an older one; else empty."""
    free = _unclaimed({issue_key_of(finding) for finding in findings}, issues, issue_state)

    def key_of(finding: Finding) -> str:
        key = issue_key_of(finding)
        if key in issues or issue_state(key).state not in WAITING:
            return key
        return _older(finding, issue_state(key), free)

    return key_of
