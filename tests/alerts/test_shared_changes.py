"""One issue for a change of several lines: which line leads it, what becomes of issues filed before, and recovery."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alerts import AlertSettings
from alerts.changes import World
from alerts.common_mode import held_subjects
from alerts.issue_list import key_of
from alerts.lifecycle import State
from alerts.subject import subjects
from history.model import ChangeLine, ExplainedStep, Finding, ProbableLine, Tier
from history.store import Store
from presentation.sentences import TIER_WORDS
from tests.alerts.conftest import Place
from tests.alerts.test_life_of_an_issue import Nights
from tests.builders import METRICS, NOW, RELEASES, finding, write_history

LINES = {("postgres", "17"): RELEASES, ("postgres", "18"): ("18.0", "18.1", "18.2", "18.3", "18.4")}
CHANGES = {"point-query": 3.1, "hot-points": 4.9}
OLD, NEW, BETWEEN = "postgres/17/17.5/regression", "postgres/18/18.2/regression", "postgres/majors/18/regression"


@pytest.fixture
def nights(place: Place, tmp_path: Path, settings: AlertSettings) -> Iterator[Nights]:
    write_history(tmp_path / "lines.db", LINES)
    with Store.open(f"sqlite:///{tmp_path / 'lines.db'}") as store:
        yield Nights(store, place, settings)


def old(tier: Tier = "confirmed") -> Finding:
    return finding(changes=CHANGES, tier=tier)


def new(tier: Tier = "confirmed") -> Finding:
    return finding("18.2", "18.1", line="18", changes=CHANGES, tier=tier)


def change(lead: Finding, *members: Finding) -> list[Finding]:
    """What the detector says of findings that it takes for one change."""
    rows = tuple(ChangeLine.of(member, member.line, "hot-points", "insn/o") for member in members)
    return [
        lead.model_copy(update={"lines": rows}),
        *(member.model_copy(update={"same_as": lead.key}) for member in members),
    ]


def test_a_change_of_two_lines_has_one_issue_with_a_row_for_each(nights: Nights) -> None:
    lead, member = change(new(), old())
    lead = lead.model_copy(update={"probably_affected": (ProbableLine(line="16", release="16.9"),)})
    assert nights.night(lead, member).counts == {"file": 1}
    assert list(nights.issues()) == [NEW]
    body = nights.issue(NEW).body
    assert "**One change, 2 lines**" in body
    assert "| `18` | `18.2` | `18.1` | +4.9 % `insn/o` | `hot-points` | confirmed |" in body
    assert "| `17` | `17.5` | `17.4` | +4.9 % `insn/o` | `hot-points` | confirmed |" in body
    assert "16.9 came out on the same day and has no results on both sides of it" in body
    (link,) = nights.store.links(OLD)
    assert link.number == nights.issue(NEW).number, "the page of the other line leads to the issue"
    assert nights.night(lead, member).done == ()
    name = nights.place.tracker().name
    assert [key_of(nights.store, key, name) for key in (NEW, OLD, "other")] == [NEW, NEW, "other"]


def test_whichever_line_is_surest_tonight_the_issue_stays(nights: Nights) -> None:
    nights.night(*change(new(), old()))
    before = nights.issue(NEW)
    assert nights.night(*change(old(), new())).done == ()
    after = nights.issue(NEW)
    assert list(nights.issues()) == [NEW] and (after.title, after.body) == (before.title, before.body)


def test_a_line_that_joins_is_news(nights: Nights) -> None:
    nights.night(new())
    assert nights.night(*change(new(), old())).counts == {"update": 1}
    assert "The same change is in 17.5 (line 17)." in nights.comments(NEW)[-1]


def test_issues_filed_apart_become_one_and_are_not_called_recovered(nights: Nights) -> None:
    nights.night(old(), new())
    assert set(nights.issues()) == {OLD, NEW}
    assert nights.night(*change(new(), old())).counts == {"update": 1, "fold": 1}
    folded = nights.issue(OLD)
    assert not folded.open and nights.state(OLD) is State.FOLDED and nights.issue(NEW).open
    (comment,) = nights.comments(OLD)
    assert f"Same change as #{nights.issue(NEW).number}" in comment and "not given back" in comment
    assert nights.night(*change(new(), old())).done == ()
    assert nights.night(*change(old(), new())).done == (), "the open one goes on"


def test_a_change_that_falls_apart_gives_each_line_its_issue_back(nights: Nights) -> None:
    nights.night(old(), new())
    nights.night(*change(new(), old()))
    nights.night(old(), new())
    assert nights.issue(OLD).open and nights.state(OLD) is State.RETURNED
    assert "no longer belongs to the change" in nights.comments(OLD)[-1]
    assert nights.issue(NEW).open and "One change" not in nights.issue(NEW).body


def test_a_folded_issue_that_a_person_opens_stays_open(nights: Nights) -> None:
    nights.night(old(), new())
    nights.night(*change(new(), old()))
    nights.place.person.reopen(nights.issue(OLD).number)
    for _ in range(3):
        nights.night(*change(new(), old()))
    assert nights.issue(OLD).open and nights.state(OLD) is State.UPDATED
    assert len(nights.comments(OLD)) == 1


def test_the_line_with_the_open_issue_leads(nights: Nights) -> None:
    """17.5 was filed when 18.2 turns out to be the same change, and the detector names 18.2 first."""
    nights.night(old())
    nights.night(*change(new(), old()))
    assert list(nights.issues()) == [OLD] and nights.issue(OLD).title.startswith("postgres 17.5: ")
    assert "The same change is in 18.2 (line 18)." in nights.comments(OLD)[-1]


def test_a_line_that_lacks_a_part_of_the_change_does_not_lead_it(nights: Nights) -> None:
    """17.5 was filed; 18.2 has the same change and an insert besides, which the issue of 17.5 would never tell."""
    nights.night(old())
    lead = finding("18.2", "18.1", line="18", changes={**CHANGES, "insert": 30.0})
    lead, member = change(lead, old())
    (row,) = lead.lines
    lead = lead.model_copy(update={"lines": (row.model_copy(update={"whole": False}),)})
    for _ in range(2):
        nights.night(lead, member)
    assert nights.issue(NEW).open and "insert" in nights.issue(NEW).title
    assert not nights.issue(OLD).open and nights.state(OLD) is State.FOLDED


def test_a_boundary_that_moved_keeps_the_issue_of_its_change(nights: Nights) -> None:
    """17.6 after 17.4 was filed, then 17.5 was measured; the issue of before still answers for the change."""
    nights.night(finding("17.6", "17.4", changes=CHANGES))
    nights.night(*change(new(), old()))
    assert list(nights.issues()) == ["postgres/17/17.6/regression"]
    assert nights.issue("postgres/17/17.6/regression").title.startswith("postgres 17.5: ")


def test_a_persons_close_of_one_line_is_of_the_change(nights: Nights) -> None:
    nights.night(old())
    nights.place.person.close(nights.issue(OLD).number)
    nights.night(old())
    nights.night(*change(new(), old()))
    assert list(nights.issues()) == [OLD] and not nights.issue(OLD).open


def test_it_is_recovered_when_all_its_lines_are(nights: Nights) -> None:
    both = change(new(), old())
    nights.night(*both)
    first = finding("17.6", "17.5", kind="improvement", changes=CHANGES)
    second = finding("18.4", "18.3", line="18", kind="improvement", changes=CHANGES)
    nights.night(*both, first)
    assert nights.issue(NEW).open and "confirmed, given back by `17.6`" in nights.issue(NEW).body
    assert nights.night(*both, first, second).counts["recover"] == 1
    assert not nights.issue(NEW).open and nights.state(NEW) is State.RECOVERED
    assert "`18.4` gives it back" in nights.comments(NEW)[-1]
    assert "and in its other lines `17.6`" in nights.comments(NEW)[-1]


@pytest.mark.parametrize("functions", [True, False])
def test_lines_that_moved_alike_in_time_alone_may_be_the_machine(functions: bool, settings: AlertSettings) -> None:
    """Three of three lines at their newest release: functions tell one change of the code, sizes do not."""
    lead = finding("18.4", "18.3", line="18", changes=CHANGES, functions=functions)
    rows = [ChangeLine.of(old(), line, "hot-points", "insn/o") for line in ("17", "16")]
    (subject,) = subjects([lead.model_copy(update={"lines": tuple(rows)})], ["regression"], METRICS)
    world = World(
        now=NOW, subjects=(subject,), drafts={}, issue_states={}, issues={}, gone=frozenset(), recoveries={},
        lines=frozenset(("local", "postgres", line) for line in ("16", "17", "18")),
        releases={("postgres", "18"): ("18.3", "18.4")}, renamed={},
    )  # fmt: skip
    assert bool(held_subjects([subject], world, settings.filing)) is not functions


@pytest.mark.parametrize("tier", ["provisional", "unconfirmed"])
def test_a_line_that_is_less_sure_is_a_row(nights: Nights, tier: Tier) -> None:
    nights.night(*change(new(), old(tier)))
    assert list(nights.issues()) == [NEW] and f"| {TIER_WORDS[tier]} |" in nights.issue(NEW).body


def test_a_step_between_majors_that_is_explained_closes_its_issue_with_a_word(nights: Nights) -> None:
    step = finding("18.4", "17.6", line="majors", changes={"point-query": 3.0})
    (move,) = step.moves
    whole = ExplainedStep(key=move.key, change_pct=3.0, explained_pct=3.1, rest_pct=-0.1, by=(NEW,), whole=True)
    explained = step.model_copy(update={"explained": (whole,), "explained_by": (NEW,)})
    assert nights.night(new(), step).counts == {"file": 2}
    assert nights.night(new(), explained).counts == {"fold": 1}
    assert not nights.issue(BETWEEN).open and nights.state(BETWEEN) is State.FOLDED
    assert f"Same change as #{nights.issue(NEW).number}" in nights.comments(BETWEEN)[-1]
    (alone,) = subjects([explained], ["regression"], METRICS)
    assert alone.key == BETWEEN, "what explains it has to be there"
