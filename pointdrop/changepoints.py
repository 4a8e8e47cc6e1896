"""What `pointdrop changepoints` does between its input and its output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from detector.commits import answer
from detector.errors import InvalidSeries
from detector.releases.matrix import release_changes

#: Asked once before the first line is read, so that no answer waits for a compiler or a cache.
WARM_UP = '{"values": [5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 15, 16, 15, 16, 15, 16, 15, 16, 15, 16, 15, 16]}'


def answer_lines(lines: Iterable[str]) -> Iterator[str]:
    """The answer to each line, in order; blank lines get none. See `detector.commits.protocol`."""
    handlers = {"matrix": matrix}
    answer(WARM_UP, handlers)
    for line in lines:
        if line.strip():
            yield answer(line, handlers)


def matrix(question: dict[str, Any]) -> dict[str, Any]:
    """`{"type": "matrix", "qps": [servers][tests][releases][blocks], "cpu": the same or null}`: every change as
    `[server, test, release]`."""
    qps, cpu = _blocks(question, "qps"), _blocks(question, "cpu")
    if qps is None:
        raise ValueError('"qps" must be an array [servers][tests][releases][blocks] of numbers and nulls')
    if cpu is not None and cpu.shape != qps.shape:
        raise ValueError(f'"cpu" has the shape {list(cpu.shape)} and "qps" {list(qps.shape)}; they must be the same')
    try:
        return {"changes": [list(change) for change in release_changes(qps, cpu)]}
    except InvalidSeries as error:
        raise ValueError(str(error)) from error


def _blocks(question: dict[str, Any], name: str) -> np.ndarray | None:
    given = question.get(name)
    if given is None:
        return None
    try:
        blocks = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f'"{name}" must be an array [servers][tests][releases][blocks] of numbers and nulls'
        ) from error
    if blocks.ndim != 4 or not blocks.size:
        raise ValueError(f'"{name}" must have four dimensions and none empty, got the shape {list(blocks.shape)}')
    return blocks
