"""Our engines as estimators of ruptures; what docs/detector.md shows of them runs with ruptures itself."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import ruptures
from ruptures.base import BaseEstimator
from ruptures.metrics import precision_recall

from detector.changes import release_changes
from detector.commits import analyse
from detector.errors import InvalidSeries
from detector.estimators import Commits, Releases
from tests.detector.commits.made import made

PAGE = (Path(__file__).parents[2] / "docs" / "detector.md").read_text(encoding="utf-8")


def lines(seed: int = 1) -> np.ndarray:
    """Sixteen releases of eight tests, five of which lose 6 % at release 9."""
    noise = np.random.default_rng(seed).normal(0.0, 0.005, (16, 8))
    signal = 1000.0 * np.exp(noise)
    signal[9:, :5] *= 0.94
    return signal


def test_commits_predicts_the_confirmed_changepoints() -> None:
    values = made(120, steps={40: 0.05, 90: -0.06})
    assert isinstance(Commits(), BaseEstimator)
    assert Commits().fit_predict(np.array(values)) == [*analyse(values).indices(), 120]
    assert Commits().fit(np.array(values)[:, None]).predict() == Commits().fit_predict(np.array(values))


def test_releases_predicts_where_any_test_changed() -> None:
    signal = lines()
    changes = release_changes(signal.T[None, :, :, None])
    assert isinstance(Releases(), BaseEstimator)
    assert Releases().fit_predict(signal) == [*sorted({release for *_, release in changes}), 16] == [9, 16]


@pytest.mark.parametrize(
    ("estimator", "signal"), [(Commits(), np.array(made(steps={60: 0.04}))), (Releases(), lines())]
)
def test_a_higher_penalty_leaves_fewer_changes(estimator: BaseEstimator, signal: np.ndarray) -> None:
    estimator.fit(signal)
    found = [len(estimator.predict(pen=pen)) for pen in (-2.0, 0.0, 2.0, 30.0)]
    assert found == sorted(found, reverse=True)
    assert found[1] == 2


def test_a_penalty_holds_for_the_newest_release_too() -> None:
    """There the engine by itself suspects changes from a probability of 0.35 on."""
    signal = 1000.0 * np.exp(0.008 * np.random.default_rng(1).standard_normal((15, 20)))
    signal[-1, :3] *= 0.97
    assert Releases().fit_predict(signal) == [14, 15]
    assert Releases().fit_predict(signal, pen=20.0) == [15]


def test_a_gap_is_nan() -> None:
    values = np.array(made(80, steps={50: 0.1}))
    values[[3, 20]] = np.nan
    assert Commits().fit_predict(values) == [50, 80]


def test_metrics_of_ruptures_take_what_is_predicted() -> None:
    signal, true = ruptures.pw_constant(n_samples=200, n_features=1, n_bkps=3, noise_std=1.0, delta=(10, 20), seed=3)
    assert precision_recall(true, Commits().fit_predict(signal), margin=3) == (1.0, 1.0)


def test_bad_signals_are_refused() -> None:
    with pytest.raises(InvalidSeries, match="call fit"):
        Commits().predict()
    with pytest.raises(InvalidSeries, match="one series, got 2"):
        Commits().fit(np.zeros((9, 2)))
    with pytest.raises(InvalidSeries, match="an array"):
        Releases().fit(np.zeros((2, 2, 2)))


class Drawing:
    """Stands for figure, axes and pyplot where matplotlib is not installed: takes every call and notes its name."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def subplots(self, *_: Any, **__: Any) -> tuple[Drawing, Drawing]:
        return self, self

    def __getattr__(self, name: str) -> Any:
        def note(*_: Any, **__: Any) -> None:
            self.calls.append(name)

        return note


@pytest.fixture
def drawing(monkeypatch: pytest.MonkeyPatch) -> Drawing | None:
    """What the page draws on: matplotlib where it is installed, as `None`, else what stands for it."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        return None
    except ImportError:
        stand_in = Drawing()
        pyplot, package = ModuleType("matplotlib.pyplot"), ModuleType("matplotlib")
        pyplot.subplots, package.pyplot = stand_in.subplots, pyplot  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "matplotlib", package)
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
        return stand_in


def test_the_lines_of_the_page_give_what_it_shows(
    drawing: Drawing | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value of a cell's last line is what it shows; the pictures are drawn."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert cells
    for source, shown in cells:
        *body, last = ast.parse(source).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(body, []), "docs/detector.md", "exec"), names)
        assert str(eval(compile(ast.Expression(last.value), "docs/detector.md", "eval"), names)) == shown.rstrip("\n")
    if drawing is None:
        assert (tmp_path / "nights.png").stat().st_size > 1000
    else:
        assert {"plot", "axvspan", "axvline", "savefig"} <= set(drawing.calls)
