"""What the detector and the pages read: the values of one test and metric over the releases of a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import partial
from statistics import median
from typing import Annotated, Any, NamedTuple, overload

from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter

from history.model.values import Better, Name, Row, Value


class LineKey(NamedTuple):
    """What the series of one line have in common, whatever their test and metric."""

    dbms: str
    line: str
    server: str
    config: str
    benchmark: str

    @property
    def title(self) -> str:
        return f"{self.dbms} {self.line}"

    @property
    def where(self) -> str:
        return f"{self.server} · {self.config} · {self.benchmark}"

    @classmethod
    def of(cls, key: SeriesKey) -> LineKey:
        return cls(key.dbms, key.line, key.server, key.config, key.benchmark)


class SeriesKey(Row):
    """What a series is of; two keys are the same series exactly when they are equal."""

    dbms: Name
    line: Name
    server: Name
    config: Name
    benchmark: Name
    test: Name
    metric: Name

    @property
    def id(self) -> str:
        """The key on one line, as commands take it: `postgres|17|local|default|sysbench|point-query|insn/o`."""
        return "|".join((self.dbms, self.line, self.server, self.config, self.benchmark, self.test, self.metric))

    @classmethod
    def parse(cls, text: str) -> SeriesKey:
        """The inverse of `id`; ValueError when `text` has not seven parts."""
        parts = text.split("|")
        if len(parts) != 7:
            raise ValueError(f"a series is DBMS|LINE|SERVER|CONFIG|BENCHMARK|TEST|METRIC, got {text!r}")
        return cls(**dict(zip(cls.model_fields, parts, strict=True)))


class BlockValue(NamedTuple):
    """One block's value in a series. A tuple, since a history holds millions of them."""

    value: Value
    block_id: str
    session_id: str
    host: str
    epoch: str
    """Digest of the host's fingerprint when the block ran."""


class BlockValues(Sequence[BlockValue]):
    """BlockValue by BlockValue, made when asked for, over columns that the series of a line share.

    >>> BlockValues((1.5, 2.5), (("b1", "b2"), ("s", "s"), ("bee", "bee"), ("e", "e")))[1]
    BlockValue(value=2.5, block_id='b2', session_id='s', host='bee', epoch='e')
    """

    __slots__ = ("names", "numbers")

    def __init__(self, numbers: tuple[float, ...], names: tuple[tuple[str, ...], ...]) -> None:
        """`names`: blocks, sessions, hosts and epochs, each in the order of `numbers`."""
        self.numbers = numbers
        self.names = names

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[BlockValue]:
        return map(_block_value, zip(self.numbers, *self.names, strict=True))

    @overload
    def __getitem__(self, at: int) -> BlockValue: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[BlockValue, ...]: ...
    def __getitem__(self, at: int | slice) -> BlockValue | tuple[BlockValue, ...]:
        if isinstance(at, slice):
            return tuple(self)[at]
        return _block_value((self.numbers[at], *(column[at] for column in self.names)))

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, BlockValues | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


#: A BlockValue from its fields, at half the price of naming them.
_block_value: Callable[[tuple[Any, ...]], BlockValue] = partial(tuple.__new__, BlockValue)


def _checked_values(values: Any) -> tuple[BlockValue, ...]:
    return _BLOCK_VALUES.validate_python(tuple(values) if isinstance(values, BlockValues) else values)


_BLOCK_VALUES: TypeAdapter[tuple[BlockValue, ...]] = TypeAdapter(tuple[BlockValue, ...])


class Point(Row):
    """All blocks of one release in one series; `position` counts the line's releases from 0."""

    version: Name
    position: int
    values: Annotated[Sequence[BlockValue], PlainValidator(_checked_values), PlainSerializer(tuple)]
    """A tuple, or from the store BlockValues."""
    released: date | None = None

    @property
    def numbers(self) -> tuple[float, ...]:
        """The values alone."""
        values = self.values
        return values.numbers if isinstance(values, BlockValues) else tuple([block.value for block in values])

    @property
    def sessions(self) -> tuple[str, ...]:
        """The session of each value."""
        values = self.values
        return values.names[1] if isinstance(values, BlockValues) else tuple([block.session_id for block in values])

    @property
    def epochs(self) -> tuple[str, ...]:
        """The epoch of each value."""
        values = self.values
        return values.names[3] if isinstance(values, BlockValues) else tuple([block.epoch for block in values])

    @property
    def level(self) -> float:
        """The level of the release: the median of its blocks, which one bad block does not move."""
        return median(self.numbers)


class Series(Row):
    """The values of one key over the releases of its line, in the DBMS's own version order.

    `control` holds, per session, the values of the control release in the same series, so that a machine that moved
    can be told from a product that moved; a release that is the control is in `points` too.
    """

    key: SeriesKey
    group: str = ""
    unit: str = ""
    better: Better = "lower"
    points: tuple[Point, ...]
    control: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    control_versions: dict[str, str] = Field(default_factory=dict)
    """The control release by session, whether it has values here or not; a session that is not here named none, or the
    one that all such sessions had."""
    sessions: tuple[str, ...] = ()
    """Sessions in the order in which they began; one that is not here is taken to have come later, by its name."""

    def control_of(self, session: str) -> str:
        """Version of the control release of a session, empty where nobody said."""
        return self.control_versions.get(session, "")
