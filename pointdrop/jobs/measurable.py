"""What the configuration can measure, as alerts ask for it before they tell people how to repeat something."""

from __future__ import annotations

from pathlib import Path

from presentation.commands import Measurable
from runners.settings import load_benchmark
from runners.settings.dbms import load_dbms


def measurable(configs: Path) -> Measurable:
    """The servers, configs and tests below `configs`. BadSettings when a file there is wrong."""
    dbms = sorted(path.parent.name for path in (configs / "dbms").glob("*/configs.toml"))
    benchmarks = sorted(path.stem for path in (configs / "benchmarks").glob("*.toml"))
    return Measurable(
        servers=frozenset(path.stem for path in (configs / "servers").glob("*.toml")),
        configs=frozenset((name, config) for name in dbms for config in load_dbms(name, configs).configs),
        tests={name: tuple(test.name for test in load_benchmark(name, configs).tests) for name in benchmarks},
    )
