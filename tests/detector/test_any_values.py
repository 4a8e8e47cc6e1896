"""Whatever the values, the detector answers with finite figures, and the same ones for the same input."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detector import detect
from detector.explanation import explain
from history.model import Series
from tests.builders import series

VALUES = st.one_of(
    st.floats(-1e12, 1e12, allow_nan=False),
    st.sampled_from([0.0, 1.0, -1.0, 1e-9, 1e300, -1e300, 5e-324]),
    st.floats(0.9, 1.1),
)
BLOCKS = st.one_of(st.none(), st.lists(VALUES, min_size=1, max_size=3))


@st.composite
def families(draw: st.DrawFn) -> list[Series]:
    releases = draw(st.integers(1, 9))
    made = []
    for test in range(draw(st.integers(1, 4))):
        for metric in draw(st.sets(st.sampled_from(["qps", "cpu_us/o", "insn/o", "r/o", "p99"]), min_size=1)):
            values = draw(st.lists(BLOCKS, min_size=releases, max_size=releases))
            one = series(values, test=f"test-{test}", metric=metric)
            if one.points:
                made.append(one)
    return made


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=families())
def test_finite_and_repeatable(made: list[Series]) -> None:
    findings = detect(made)
    for finding in findings:
        for move in finding.moves:
            figures = (
                move.before,
                move.after,
                move.change_pct,
                move.low_pct,
                move.high_pct,
                move.noise_pct,
                move.mde_pct,
            )
            assert all(math.isfinite(figure) for figure in figures), move
            assert move.low_pct <= move.high_pct
            assert 0.0 <= move.probability <= 1.0
    assert detect(list(reversed(made))) == findings
    for one in made[:2]:
        assert explain(made, one.key).key == one.key
