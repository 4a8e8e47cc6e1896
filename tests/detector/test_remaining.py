"""A finding without the moves that are told elsewhere."""

from __future__ import annotations

import pytest

from detector.attachments import attach
from detector.confirmation import DISCOVERED
from detector.evidence import PLANS
from detector.remaining import with_moves
from history.metrics import shipped_metrics
from history.model import StatementPlan
from tests.detector.evidence_check import check
from tests.detector.test_confirmation import again, counted, of


@pytest.mark.parametrize("left_out", ["scan", "insert"])
def test_the_evidence_of_what_is_left_is_that_of_its_own_blocks_and_plans(left_out: str) -> None:
    """`scan` was measured again and `insert` was not; only `scan` has another plan."""
    made = [again(counted("scan", 20.0), "later", 20.0), *(counted(f"insert{n}", 5.0) for n in range(2))]
    before, after = ({"scan": [StatementPlan(statement="SELECT 1", digest=plan)]} for plan in ("Index", "Seq"))
    whole = attach(of(made), plans_before=before, plans_after=after)
    check(whole, made)
    left = [move for move in whole.moves if not move.key.test.startswith(left_out)]
    rest = with_moves(whole, left, shipped_metrics())
    of_left = tuple(text for text in rest.evidence if text.startswith((DISCOVERED, PLANS)))
    assert check(rest.model_copy(update={"evidence": of_left}), made) == 1 + (left_out == "insert")
    text = " ".join(rest.evidence)
    assert ("were seen again" in text or "was seen again" in text) == (left_out == "insert")
    assert ("The plan of 1 of 1 test that moved" in text) == (left_out == "insert")
    assert (rest.tier == "confirmed") == (left_out == "insert")
    moved_sentence = [text for text in whole.evidence if "tests moved" in text]
    assert [text for text in rest.evidence if "tests moved" in text] == moved_sentence, "of the whole boundary"
