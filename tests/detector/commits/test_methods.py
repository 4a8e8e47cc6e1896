"""Methods of ruptures behind our input and output, checked against calls of ruptures itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import ruptures

from detector.commits import CommitSettings, analyse
from detector.commits.methods import METHODS, RupturesMethod, analyse_with
from tests.detector.commits.made import made

PAIRS = [(name, model) for name, models in METHODS.items() for model in models]


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_every_method_finds_a_clear_step(name: str, model: str) -> None:
    changes = analyse_with(RupturesMethod(name, model), made(90, steps={50: 0.2})).changepoints
    assert len(changes) <= 3  # those that cut or merge one by one leave some that are none
    change = max(changes, key=lambda change: change.change_pct)
    assert abs(change.index - 50) <= 5
    assert 17.0 <= change.change_pct <= 23.0
    assert (change.probability, change.tier) == (None, None)


@pytest.mark.parametrize("model", METHODS["pelt"])
def test_an_optimum_is_quiet_where_nothing_moves(model: str) -> None:
    found = [len(analyse_with(RupturesMethod("pelt", model), made(60, seed=seed)).changepoints) for seed in range(10)]
    assert sum(found) <= 4


def test_a_number_is_the_penalty_of_ruptures() -> None:
    values = made(120, steps={40: -0.03, 80: 0.02})
    logs = np.log(values)
    sigma = 1.4826 * np.median(np.abs(np.diff(logs))) / math.sqrt(2.0)
    for penalty in (3.0, 12.0, 40.0):
        theirs = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(logs / sigma).predict(pen=penalty)
        ours = analyse_with(RupturesMethod("pelt", "l2", penalty), values)
        assert [*(change.index for change in ours.changepoints), 120] == theirs


def test_the_criteria_are_those_of_schwarz_and_akaike() -> None:
    values = made(100, steps={60: 0.02})
    for name, penalty in (("bic", 2.0 * math.log(100)), ("aic", 4.0)):
        named, numbered = (analyse_with(RupturesMethod("pelt", "l2", given), values) for given in (name, penalty))
        assert named == numbered


def test_dynp_reaches_the_optimum_of_pelt() -> None:
    values = made(60, steps={20: 0.1, 40: -0.08})
    found = {name: analyse_with(RupturesMethod(name), values) for name in ("pelt", "dynp")}
    assert found["dynp"] == found["pelt"]
    assert len(found["pelt"].changepoints) == 2


def test_dynp_says_where_it_stops() -> None:
    analysis = analyse_with(RupturesMethod("dynp", penalty=0.01), made(40))
    assert len(analysis.changepoints) == 10
    assert "dynp looks for 10 changes at most" in analysis.warnings[-1]


@pytest.mark.parametrize("values", [[], [1.0] * 5, [5.0] * 40, [0.0] * 40, [None] * 9, [-1.0, 1.0] * 10])
@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_no_numbers_break_a_method(name: str, model: str, values: list[float | None]) -> None:
    for change in analyse_with(RupturesMethod(name, model), values).changepoints:
        assert math.isfinite(change.change_pct)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("cusum",), "method must be one of pelt, kernel"),
        (("kernel", "l1"), "model of kernel must be one of rbf, l2, got 'l1'"),
        (("pelt", "cosine"), "model of pelt must be one of l2, l1"),
        (("pelt", "l2", "mdl"), "penalty must be bic, aic or a number above 0, got 'mdl'"),
        (("pelt", "l2", "-3"), "penalty must be bic, aic or a number above 0"),
        (("pelt", "l2", "nan"), "penalty must be bic, aic or a number above 0"),
        (("pelt", "l2", "inf"), "penalty must be bic, aic or a number above 0"),
    ],
)
def test_what_does_not_fit_together_is_refused(given: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RupturesMethod(*given)


def test_the_least_noise_is_that_of_our_engine() -> None:
    """Instructions vary by 0.03 %, and count from 0.2 %: all methods see them in units of that noise, not of 0.1 %."""
    values = made(60, scale=0.0003)
    settings = CommitSettings(smallest_change_pct=0.2)
    with_ours = analyse_with(RupturesMethod("pelt"), values, settings)
    assert with_ours.noise_pct is not None and with_ours.noise_pct < 0.05
    assert with_ours.noise_pct == pytest.approx(analyse(values, settings).noise_pct, rel=0.5)
