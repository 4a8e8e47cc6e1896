"""Series and findings made by hand, for the tests of what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from history.metrics import shipped_metrics
from history.model import BlockValue, Finding, Move, Point, Series, SeriesKey

METRICS = shipped_metrics()


def series(
    values: Mapping[str, Sequence[float]],
    test: str = "scan",
    metric: str = "qps",
    group: str = "range",
    first: int = 0,
    **key: str,
) -> Series:
    """Blocks by version, from position `first` of the line; no block for an empty list."""
    names = {"dbms": "mysql", "line": "8.0", "server": "small", "config": "z12a", "benchmark": "sysbench", **key}
    return Series(
        key=SeriesKey(**names, test=test, metric=metric),
        group=group,
        better=METRICS[metric].better,
        points=tuple(
            Point(
                version=version,
                position=first + position,
                values=tuple(
                    BlockValue(value=value, block_id=f"{version}-{block}", session_id="s", host="h", epoch="e")
                    for block, value in enumerate(blocks)
                ),
            )
            for position, (version, blocks) in enumerate(values.items())
        ),
    )


def finding(moved: Series, release: str, previous: str) -> Finding:
    move = Move(
        key=moved.key, before=100, after=90, change_pct=-10, low_pct=-11, high_pct=-9, direction="regression",
        probability=0.99, noise_pct=0.5, mde_pct=1.5,
    )  # fmt: skip
    return Finding(
        key=f"mysql/8.0/{release}/regression", kind="regression", tier="confirmed", dbms="mysql", line="8.0",
        previous=previous, release=release, moves=(move,),
    )  # fmt: skip
