"""What one room is told of what another room's files say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from alerts import load_settings
from presentation.commands import Measurable
from runners.settings import load_benchmark
from runners.settings.dbms import load_dbms

if TYPE_CHECKING:
    from reports.settings import ReportSettings


def measurable(configs: Path) -> Measurable:
    """The servers, configs and tests below `configs`, for alerts that say how something is measured again.

    BadSettings when a file there is wrong.
    """
    dbms = sorted(path.parent.name for path in (configs / "dbms").glob("*/configs.toml"))
    benchmarks = sorted(path.stem for path in (configs / "benchmarks").glob("*.toml"))
    return Measurable(
        servers=frozenset(path.stem for path in (configs / "servers").glob("*.toml")),
        configs=frozenset((name, config) for name in dbms for config in load_dbms(name, configs).configs),
        tests={name: tuple(test.name for test in load_benchmark(name, configs).tests) for name in benchmarks},
    )


def site_settings(configs: Path, site_url: str = "") -> ReportSettings:
    """Settings of every build of the site; issues and feed link to the same address, `site` in alerts.toml, unless
    `site_url` names another."""
    from reports.settings import load_settings as load_report_settings

    links = load_settings(configs).links
    return replace(
        load_report_settings(configs),
        site_url=site_url or links.site,
        sources=links.source,
        measurable=measurable(configs),
    )
