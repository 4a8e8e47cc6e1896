"""The published figures: as many as there are, with their sources, and the change everybody knows in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from history.datasets import load, smalldatum
from history.errors import UnknownSeries
from history.model import Block, Run
from history.store import Store


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store.open(f"sqlite:///{tmp_path_factory.mktemp('published')}/history.db")
    assert load(store, "smalldatum").stored
    return store


def test_every_figure_is_one_value_of_one_block() -> None:
    records = smalldatum.records()
    assert sum(len(one.measurements) for one in records if isinstance(one, Block)) == 1268 + 132
    assert len({one.id for one in records}) == len(records)


def test_every_release_has_its_source() -> None:
    runs = [one for one in smalldatum.records() if isinstance(one, Run)]
    assert all(one.release.source.startswith(("mdcallag.github.io:", "Small Datum 20")) for one in runs)


def test_a_second_load_adds_nothing(published: Store) -> None:
    assert load(published, "smalldatum").new == {}


def test_the_line_everybody_knows(published: Store) -> None:
    (series,) = published.series(line="8.0", config="cy10a_bee", test="l.i1", metric="ips")
    assert len(series.points) == 21
    value = {point.version: point.values[0].value for point in series.points}
    assert (value["8.0.28"], value["8.0.30"]) == (19077.0, 16949.0)
    assert "8.0.29" not in value


def test_labels_and_controls_are_of_series_that_are_there(published: Store) -> None:
    series = {one.key: one for one in published.series()}
    for label in smalldatum.labels():
        assert label.version in {point.version for point in series[label.key].points}
        assert label.previous in {one.version for one in published.releases(label.key.dbms)}
    assert set(smalldatum.quiet_series()) <= set(series)


def test_a_label_says_what_the_figures_say(published: Store) -> None:
    """The step in percent is that of the two values, where both are in one line."""
    checked = 0
    for label in smalldatum.labels():
        (series,) = published.series(**label.key.model_dump())
        value = {point.version: point.values[0].value for point in series.points}
        if label.previous in value:
            step = (value[label.version] / value[label.previous] - 1) * 100
            assert step == pytest.approx(label.step_pct, abs=0.1), label
            worse = (step < 0) == (series.better == "higher")
            assert label.direction == ("regression" if worse else "improvement") or label.key.metric in ("cs/o",)
            checked += 1
    assert checked >= 20


def test_quotients_and_statements_stay_out_of_the_history(published: Store) -> None:
    assert (len(smalldatum.quotients()), len(smalldatum.group_summaries()), len(smalldatum.statements())) == (
        76,
        150,
        18,
    )
    assert not published.releases("myrocks")


def test_no_dataset_of_that_name(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/h.db") as store, pytest.raises(UnknownSeries, match="smalldatum"):
        load(store, "largedatum")
