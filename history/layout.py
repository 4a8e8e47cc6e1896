"""How the values of a series fall into releases and sessions. Pure.

The series of a line mostly have values of the same blocks, so the arrangement of those blocks is worked out once and
applied to each series. Values come from the store, where they were checked, and are not checked again: a history
holds millions, and this is where loading it spends its time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from history.model import BlockValues, Point

#: Arrangements kept: a line has one or two a lane, and a few more where tests came or went.
ARRANGEMENTS = 64

#: Shared by all points made here: nobody changes what is frozen.
_FIELDS = set(Point.model_fields)
_set = object.__setattr__


def _point(version: str, position: int, values: BlockValues, released: date | None) -> Point:
    """`Point.model_construct`, at a fifth of its price: a line has as many points as tests times releases."""
    point = Point.__new__(Point)
    _set(point, "__dict__", {"version": version, "position": position, "values": values, "released": released})
    _set(point, "__pydantic_fields_set__", _FIELDS)
    _set(point, "__pydantic_extra__", None)
    _set(point, "__pydantic_private__", None)
    return point


class CountedBlock(NamedTuple):
    """A block that counts, as its values see it."""

    pk: int
    block_id: str
    version: str
    line: str
    lane: str
    session_id: str
    host: str
    epoch: str
    control: str

    @property
    def names(self) -> tuple[str, str, str, str]:
        """A BlockValue without its value."""
        return (self.block_id, self.session_id, self.host, self.epoch)


class _Release(NamedTuple):
    """One release in one arrangement: which of the values are its own, and whose they are."""

    version: str
    position: int
    released: date | None
    at: Callable[[Sequence[float]], tuple[float, ...]]
    names: tuple[tuple[str, ...], ...]
    """Blocks, sessions, hosts and epochs, each in the order of the values."""


class Arrangement(NamedTuple):
    """Where each of a series' values goes."""

    releases: list[_Release]
    """In the order of the line."""
    control: dict[str, Callable[[Sequence[float]], tuple[float, ...]]]
    """By session, for the sessions that are in `releases`."""
    control_versions: dict[str, str]
    """The control release that each session of `releases` declared, whether it has values or not."""


def _picker(places: list[int]) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """A function that picks the values at `places`, always as a tuple."""
    if len(places) == 1:
        (only,) = places
        return lambda values: (values[only],)
    return itemgetter(*places)


class Layout:
    """The blocks of a line and of its controls, in an order that does not depend on the order of arrival."""

    def __init__(
        self,
        blocks: Mapping[int, CountedBlock],
        controls: Mapping[int, CountedBlock],
        position: Mapping[str, int],
        released: Mapping[str, date | None],
    ) -> None:
        self.blocks = blocks
        self.controls = controls
        self.position = position
        self.released = released
        self._rank = {pk: number for number, pk in enumerate({**blocks, **controls})}
        self.arrangement = lru_cache(ARRANGEMENTS)(self._arrangement)

    def _arrangement(self, pks: tuple[int, ...]) -> Arrangement:
        """For values of the blocks `pks`; those of other lines and of blocks that do not count are left out."""
        order = sorted((self._rank[pk], at, pk) for at, pk in enumerate(pks) if pk in self._rank)
        own: dict[str, list[tuple[int, CountedBlock]]] = defaultdict(list)
        control: dict[str, list[int]] = defaultdict(list)
        for _, at, pk in order:
            if pk in self.blocks:
                own[self.blocks[pk].version].append((at, self.blocks[pk]))
            if pk in self.controls:
                control[self.controls[pk].session_id].append(at)
        releases = [
            _Release(
                version,
                self.position[version],
                self.released.get(version),
                _picker([at for at, _ in own[version]]),
                tuple(zip(*(block.names for _, block in own[version]), strict=True)),
            )
            for version in sorted(own, key=self.position.__getitem__)
        ]
        declared = {block.session_id: block.control for blocks in own.values() for _, block in blocks}
        pickers = {name: _picker(control[name]) for name in sorted(control) if name in declared}
        return Arrangement(releases, pickers, {name: declared[name] for name in sorted(declared) if declared[name]})

    def points(self, arrangement: Arrangement, values: Sequence[float]) -> tuple[Point, ...]:
        """The points of one series."""
        return tuple(
            [
                _point(version, place, BlockValues(at(values), names), released)
                for version, place, released, at, names in arrangement.releases
            ]
        )
