"""What a session says about itself."""

from __future__ import annotations

import doctest

from pointdrop.cli import progress
from runners.sessions import Outcome


def test_the_example_of_what_a_session_cost() -> None:
    assert doctest.testmod(progress).attempted > 0
    assert doctest.testmod(progress).failed == 0


def test_no_cost_is_said_when_nothing_was_measured_and_no_harness_where_it_is_not_known() -> None:
    assert progress.cost_of(Outcome(wall_s=60.0)) == ""
    counted = Outcome(wall_s=120.0, measured_s=180.0, workers=2)
    assert progress.cost_of(counted) == "session of 2.0 min: 75 % of it measurement"
