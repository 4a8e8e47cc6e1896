"""What the store promises: rows come back as they went in, once, and series in version order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from history.errors import ConflictingRecord, UnknownSeries
from history.model import Block, Fingerprint, Measurement, Release, Run, Series, Session
from history.store import Store

DAY = datetime(2026, 1, 5, tzinfo=UTC)
SESSION = Session(id="s", host="bee", server="small", fingerprint=Fingerprint(facts={"cores": "8"}), started=DAY)


def run(version: str, line: str = "17", session: str = "s") -> Run:
    release = Release(dbms="postgres", version=version, line=line)
    return Run(id=f"{session}/{version}", session_id=session, release=release, config="default", benchmark="sysbench")


def block(of: Run, value: float, number: int = 1, **values: object) -> Block:
    one = Measurement(test="point-query", group="point, part 1", metric="qps", value=value, unit="1/s", better="higher")
    known = {"number": number, "started": DAY, "ended": DAY + timedelta(minutes=1), "measurements": (one,)}
    return Block.model_validate({"id": f"{of.id}/{number}", "run_id": of.id} | known | values)


def fill(store: Store, versions: dict[str, float], line: str = "17") -> None:
    store.append_session(SESSION)
    for version, value in versions.items():
        store.append_run(run(version, line))
        store.append_block(block(run(version, line), value))


def test_an_append_is_idempotent_and_other_contents_conflict(store: Store) -> None:
    fill(store, {"17.2": 100.5})
    assert not store.append_block(block(run("17.2"), 100.5))
    with pytest.raises(ConflictingRecord, match="supersedes"):
        store.append_block(block(run("17.2"), 100.6))
    assert [one.measurements[0].value for one in store.blocks("s/17.2")] == [100.5]


def test_series_are_in_version_order_with_the_position_in_the_line(store: Store) -> None:
    fill(store, {"17.10": 3.0, "17.2": 1.0})
    store.pin_release(Release(dbms="postgres", version="17.4", line="17", digest="ab"))
    (series,) = store.series(line="17")
    assert [(point.version, point.position) for point in series.points] == [("17.2", 0), ("17.10", 2)]
    assert [one.version for one in store.releases("postgres")] == ["17.2", "17.4", "17.10"]


def test_majors_hold_the_newest_measured_release_of_each_line_as_of_a_release(store: Store) -> None:
    fill(store, {"16.1": 1.0, "16.3": 2.0}, "16")
    fill(store, {"17.1": 3.0, "17.2": 4.0})
    (majors,) = store.series(line="majors")
    assert [point.version for point in majors.points] == ["16.3", "17.2"]
    (then,) = store.series(line="majors", until="17.1")
    assert [point.version for point in then.points] == ["16.3", "17.1"]


def test_only_blocks_that_are_ok_and_not_superseded_count(store: Store) -> None:
    fill(store, {"17.1": 1.0})
    store.append_block(block(run("17.1"), 9.0, 2, status="noisy", reason="steal"))
    store.append_block(block(run("17.1"), 1.1, 3))
    store.supersede("block", "s/17.1/1", "the disk was full")
    (series,) = store.series()
    assert [one.value for one in series.points[0].values] == [1.1]
    assert store.measured("postgres", "default") == {"17.1": 1}
    assert len(store.blocks("s/17.1")) == 3


def test_a_metric_keeps_its_unit(store: Store) -> None:
    fill(store, {"17.1": 1.0})
    other = Measurement(test="point-query", metric="qps", value=1.0, unit="1/ms", better="higher")
    with pytest.raises(ConflictingRecord, match="another name"):
        store.append_block(block(run("17.1"), 1.0, 2, measurements=(other,)))
    assert len(store.blocks("s/17.1")) == 1


def test_children_need_their_parents(store: Store) -> None:
    with pytest.raises(UnknownSeries, match="session s"):
        store.append_run(run("17.1"))
    with pytest.raises(UnknownSeries, match="append it before its blocks"):
        store.append_block(block(run("17.1"), 1.0))


def test_the_first_pin_wins(store: Store) -> None:
    pinned = Release(dbms="postgres", version="17.1", line="17", build="maven", digest="ab")
    assert store.pin_release(pinned)
    assert not store.pin_release(pinned)
    with pytest.raises(ConflictingRecord, match="pinned to ab"):
        store.pin_release(pinned.model_copy(update={"digest": "cd"}))
    store.append_session(SESSION)
    with pytest.raises(ConflictingRecord, match="changed after it was pinned"):
        store.append_run(run("17.1").model_copy(update={"release": pinned.model_copy(update={"digest": "cd"})}))


def test_series_are_like_those_made_by_hand(store: Store) -> None:
    """They are put together without checks; they must be equal, printable, dumped and unchangeable all the same."""
    fill(store, {"17.2": 1.5, "17.10": 2.5})
    for one in store.series():
        again = Series.model_validate_json(one.model_dump_json())
        assert (again, repr(again), again.model_copy()) == (one, repr(one), one)
        point = one.points[0]
        assert point.model_copy(update={"position": 7}).position == 7
        with pytest.raises(ValidationError):
            point.position = 7  # type: ignore[misc]
