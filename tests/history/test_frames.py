"""Data frames of the history, and what docs/notebooks.md says of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from history.datasets import load
from history.frames import BLOCK_DTYPES, RELEASE_DTYPES
from history.model import MAJORS, Measurement
from history.store import Store
from tests.builders import SESSION, block, run

PAGE = (Path(__file__).parents[2] / "docs" / "notebooks.md").read_text()


def fill(store: Store) -> None:
    """Two releases with replicates, one that failed, and a second line."""
    store.append_session(SESSION)
    for version, line, values in (("17.1", "17", (1.0, 4.0)), ("17.2", "17", (0.1, 5.0, 2.0)), ("18.0", "18", (3.0,))):
        measured = run(version, line)
        store.append_run(measured)
        for number, value in enumerate(values, 1):
            metric = Measurement(test="point-query", metric="qps", value=value, unit="/s", better="higher")
            store.append_block(block(measured, 0, number, measurements=(metric,)))
    store.append_block(block(run("17.2"), 0, 9, measurements=(metric,), status="failed"))


def test_a_row_a_block_and_metric(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    monkeypatch.setattr("history.frames.ROWS", 4)
    frame = store.frame(metric="qps")
    assert list(frame.columns) == list(BLOCK_DTYPES)
    assert list(frame.index) == list(range(6))
    assert frame["value"].to_list() == [1.0, 4.0, 0.1, 5.0, 2.0, 3.0]
    assert frame["version"].to_list() == ["17.1"] * 2 + ["17.2"] * 3 + ["18.0"]
    assert set(store.frame(line=MAJORS)["version"]) == {"17.2", "18.0"}
    dtypes = {"position": "int64", "released": "datetime64[s]", "value": "float64"}
    for rows in (frame, store.frame(dbms="nobody")):
        assert {name: str(dtype) for name, dtype in rows.dtypes.items()} == {
            name: dtypes.get(name, "str") for name in BLOCK_DTYPES
        }


def test_a_row_a_release_and_metric(store: Store) -> None:
    fill(store)
    frame = store.release_frame()
    assert list(frame.columns) == list(RELEASE_DTYPES)
    assert frame[["version", "level", "lowest", "highest", "blocks"]].to_numpy().tolist() == [
        ["17.1", 2.5, 1.0, 4.0, 2],
        ["17.2", 2.0, 0.1, 5.0, 3],
        ["18.0", 3.0, 3.0, 3.0, 1],
    ]
    assert frame["relative"].to_list() == [1.0, 0.8, 1.0]


def test_a_first_release_at_zero_has_no_relative_values(store: Store) -> None:
    store.append_session(SESSION)
    store.append_run(run("17.1"))
    store.append_block(block(run("17.1"), 0.0))
    assert np.isnan(store.release_frame()["relative"].item())


def test_the_frames_agree_with_the_series(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/history.db") as store:
        load(store, "smalldatum")
        blocks, releases = store.frame(), store.release_frame()
        series = [one for one in store.series() if one.key.line != MAJORS]
    assert blocks["value"].to_list() == [value for one in series for point in one.points for value in point.numbers]
    assert releases["level"].to_list() == [median(point.numbers) for one in series for point in one.points]
    medians = blocks.groupby(["dbms", "line", "server", "config", "benchmark", "test", "metric", "version"])["value"]
    assert len(medians.median()) == len(releases)


def test_the_cells_of_the_page_give_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell in the order of the page; the value of its last line is what a notebook would show."""
    monkeypatch.chdir(tmp_path)
    with Store.open("sqlite:///var/history.db") as store:
        load(store, "smalldatum")
    names: dict[str, Any] = {}
    cells = re.findall(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", PAGE, re.MULTILINE | re.DOTALL)
    assert len(cells) >= 3
    for source, shown in cells:
        *body, last = ast.parse(source).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(body, []), "docs/notebooks.md", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "docs/notebooks.md", "eval"), names)
        assert [line.rstrip() for line in str(value).splitlines()] == [line.rstrip() for line in shown.splitlines()]
    names["store"].close()


def test_the_page_has_every_column() -> None:
    for name in BLOCK_DTYPES | RELEASE_DTYPES:
        assert f"`{name}`" in PAGE
