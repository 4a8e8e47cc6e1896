"""Replay: release by release, only the past visible."""

from __future__ import annotations

from detector.replay import in_order, replay, until
from history.model import BlockValue, Point, Series, SeriesKey


def of(config: str, levels: dict[str, float]) -> Series:
    """The line of majors as one config has it: positions count its own releases."""
    key = SeriesKey(
        dbms="postgres",
        line="majors",
        server="small",
        config=config,
        benchmark="sysbench",
        test="scan",
        metric="insn/o",
    )
    points = tuple(
        Point(
            version=version, position=at, values=tuple(BlockValue(level, f"b{at}", f"s{at}", "bee", "e") for _ in "12")
        )
        for at, (version, level) in enumerate(levels.items())
    )
    return Series(key=key, unit="", better="lower", points=points)


LEVELS = {f"{major}.1": 1000.0 + major % 2 for major in range(9, 17)} | {"17.1": 1500.0, "18.1": 1501.0}


def test_configs_with_other_releases_are_replayed_together() -> None:
    """One config never ran the first two releases, so the same release has another position there."""
    both = [of("a", LEVELS), of("b", dict(list(LEVELS.items())[2:]))]
    assert in_order(both) == list(LEVELS)
    (event,) = (event for event in replay(both) if event.finding.release == "17.1")
    assert (event.newest, event.delay, event.stays) == ("17.1", 0, True)


def test_the_past_knows_nothing_of_the_future() -> None:
    (cut,) = until([of("a", LEVELS)], ["9.1", "10.1"])
    assert [point.version for point in cut.points] == ["9.1", "10.1"]
    assert until([of("a", {"18.1": 1.0})], ["9.1"]) == []
