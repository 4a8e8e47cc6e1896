"""Series for tests, made from plain arrays."""

from __future__ import annotations

from collections.abc import Sequence

from history.model import Better, BlockValue, Point, Series, SeriesKey

HIGHER = {"qps", "ips"}


def key(test: str = "point-query", metric: str = "qps", line: str = "17", server: str = "small") -> SeriesKey:
    return SeriesKey(
        dbms="postgres", line=line, server=server, config="default", benchmark="sysbench", test=test, metric=metric
    )


def series(
    values: Sequence[Sequence[float] | None],
    *,
    test: str = "point-query",
    metric: str = "qps",
    line: str = "17",
    server: str = "small",
    sessions: Sequence[str] | None = None,
    epochs: Sequence[str] | None = None,
    control: dict[str, tuple[float, ...]] | None = None,
    group: str = "point, part 1",
) -> Series:
    """A series of blocks by release (`LINE.0`, `LINE.1`, ...); None where a release was not measured.

    `sessions` and `epochs` name those of each release; by default every release has a session of its own in one epoch.
    """
    better: Better = "higher" if metric in HIGHER else "lower"
    points = []
    for r, blocks in enumerate(values):
        if blocks is None:
            continue
        session = sessions[r] if sessions else f"session-{r}"
        epoch = epochs[r] if epochs else "epoch"
        points.append(
            Point(
                version=f"{line}.{r}",
                position=r,
                values=tuple(
                    BlockValue(value=value, block_id=f"{line}.{r}/{b}", session_id=session, host="host", epoch=epoch)
                    for b, value in enumerate(blocks)
                ),
            )
        )
    return Series(
        key=key(test, metric, line, server),
        group=group,
        unit="/s" if better == "higher" else "",
        better=better,
        points=tuple(points),
        control=control or {},
    )
