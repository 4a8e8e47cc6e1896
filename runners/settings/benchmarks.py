"""Benchmarks: the catalogue of tests, `configs/benchmarks/NAME.toml`.

    [[test]]
    name = "update-index.range100"
    group = "writes"
    script = "update_index"
    phase = "write"
    kind = "write"
    sql = "UPDATE sbtestN SET k=k+1 WHERE id=?"
    sets = ["42", "32"]

The order of the file is the order in which the tests run. After the last test of the phases `load` and `write` the
server is settled (flush, vacuum, compact), so that what follows starts from a state that does not depend on luck.

A test of the Insert Benchmark is a step, which starts from what the steps before it left:

    [[test]]
    name = "qr100"
    group = "range queries"
    phase = "end"
    kind = "read"
    sql = "SELECT ... ORDER BY ... LIMIT 10"
    step = { does = "range", rows_per_commit = 50, rate = 100 }
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from history.errors import BadSettings
from history.model import Better
from history.settings import Setting, find, read_toml, validate

Driver = Literal["sysbench", "insert"]
TestKind = Literal["read", "write", "warm"]
TestPhase = Literal["load", "warm", "pre", "write", "post", "end"]

#: Phases after which storage is settled, the field's "postwrite".
SETTLED_PHASES: tuple[TestPhase, ...] = ("load", "write")

OptionValue = int | float | str | bool


class Step(Setting):
    """What one step of the Insert Benchmark does."""

    does: Literal["load", "index", "replace", "range", "point"]
    """`replace` inserts and deletes as many; `range` and `point` query with inserts and deletes behind."""
    rows_per_commit: int = Field(default=1, ge=1)
    """Rows of a transaction that inserts or deletes."""
    rate: int = Field(default=0, ge=0)
    """Rows a second that each client inserts, and deletes, behind the queries."""

    @property
    def queries(self) -> bool:
        return self.does in ("range", "point")

    @model_validator(mode="after")
    def _rate_of_queries(self) -> Step:
        if self.queries != bool(self.rate):
            raise ValueError("a step that queries has a rate for what is inserted behind it, and no other step has one")
        return self


class Test(Setting):
    """One microbenchmark, or one step of the Insert Benchmark."""

    __test__: ClassVar[bool] = False  # pytest would take the class for one of its own

    name: str = Field(min_length=1)
    group: str = ""
    """Empty for a step that is not reported."""
    script: str = ""
    """Family: the name of a Lua script in `runners/sysbench/lua`, without `.lua`; a step has none."""
    options: dict[str, OptionValue] = Field(default_factory=dict)
    sql: str
    """The statement in a line, for people; the script has the real one."""
    phase: TestPhase
    kind: TestKind
    """Which duration of the profile applies; some tests that write use the duration of reads, as published."""
    sets: tuple[str, ...] = ()
    rows_per_operation: int | None = Field(default=None, ge=1)
    """Set for a scan: one operation is this many rows, not one statement."""
    better: Better = "higher"
    """Direction of the test's throughput."""
    counted_events: int | None = Field(default=None, ge=1)
    """Events that the instructions lane counts, after a warm-up that follows from the size of the table; absent for a
    test that only warms caches, and for a step: the Insert Benchmark is not counted."""
    step: Step | None = None

    @property
    def reported(self) -> bool:
        """Whether its figures are kept; steps that only warm caches are run and dropped."""
        return self.kind != "warm"


class Benchmark(Setting):
    """A catalogue of tests, in run order."""

    name: str
    title: str = ""
    driver: Driver
    size: str = ""
    """Insert Benchmark: the size of the profile that it takes, `cached` or `io-bound`."""
    extends: str = ""
    """The benchmark whose tests it has, instead of tests of its own."""
    tests: tuple[Test, ...] = Field(alias="test", default=())

    @model_validator(mode="after")
    def _unique(self) -> Benchmark:
        if not self.tests:
            raise ValueError("needs tests, or `extends` to take those of another benchmark")
        doubled = [name for name, times in Counter(test.name for test in self.tests).items() if times > 1]
        if doubled:
            raise ValueError(f"tests named twice: {', '.join(doubled)}")
        for test in self.tests:
            if test.reported and not test.group:
                raise ValueError(f"test {test.name} needs a group")
            if self.driver == "sysbench" and not (test.script and bool(test.counted_events) == test.reported):
                raise ValueError(f"test {test.name} needs a script and, if it is reported, counted_events")
            if self.driver == "insert" and not test.step:
                raise ValueError(f"test {test.name} needs a step")
        return self

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets, in the order they first occur."""
        return tuple(dict.fromkeys(name for test in self.tests for name in test.sets))

    def select(self, wanted: str | tuple[str, ...]) -> tuple[Test, ...]:
        """Tests of a set (or `all`), or those named, always in run order; BadSettings for a name that is not there.

        A step needs what the steps before it left, so those come with it.
        """
        if wanted == "all":
            return self.tests
        if isinstance(wanted, str):
            if wanted not in self.sets:
                raise BadSettings(f"benchmark {self.name}: no set {wanted!r}; there are: {', '.join(self.sets)}, all")
            return tuple(test for test in self.tests if wanted in test.sets)
        names = {test.name for test in self.tests}
        missing = [name for name in wanted if name not in names]
        if missing:
            raise BadSettings(
                f"benchmark {self.name}: no test {', '.join(missing)}; there are: {', '.join(sorted(names))}"
            )
        if self.driver == "insert":
            last = max(number for number, test in enumerate(self.tests) if test.name in wanted)
            return self.tests[: last + 1]
        return tuple(test for test in self.tests if test.name in wanted)


def settled_parts(tests: tuple[Test, ...]) -> tuple[tuple[Test, ...], ...]:
    """The tests in run order, cut where storage is settled: after the last one of each settled phase."""
    last = {test.phase: test.name for test in tests if test.phase in SETTLED_PHASES}
    parts: list[tuple[Test, ...]] = []
    begin = 0
    for number, test in enumerate(tests, start=1):
        if test.name in last.values() or number == len(tests):
            parts.append(tests[begin:number])
            begin = number
    return tuple(parts)


def load_benchmark(name_or_path: str | Path, configs: Path) -> Benchmark:
    """The catalogue of that name below `configs/benchmarks`, or the file itself; tests may be those of another."""
    path = find(name_or_path, configs / "benchmarks")
    data = read_toml(path)
    if base := data.get("extends"):
        data["test"] = read_toml(find(str(base), path.parent)).get("test", [])
    return validate(path, Benchmark, data)
