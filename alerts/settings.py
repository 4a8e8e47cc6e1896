"""`configs/alerts.toml`: what is filed, how much of it, and where it links to.

Everything has a default; a file that is not there means the defaults. Secrets are never in the file: a webhook names
the environment variables that hold its address and key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from history.metrics import MetricRegistry, load_metrics, shipped_metrics
from history.model import FindingKind, Tier
from history.settings import Setting, read_model
from presentation.commands import Measurable

Share = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class Labels(Setting):
    """Labels put on issues. Every issue of ours carries `issue`; listing goes by it."""

    issue: str = "perf-regression"
    environment: str = "environment"
    drift: str = "drift"
    improvement: str = "improvement"
    digest: str = "digest"
    not_a_bug: str = "not-a-bug"


class Filing(Setting):
    """What becomes an issue, and how many a day."""

    kinds: tuple[FindingKind, ...] = ("regression", "drift", "environment")
    """Kinds that get an issue of their own. Improvements are told in that of their boundary, and recover others."""
    tiers: tuple[Tier, ...] = ("confirmed",)
    daily_cap: Count = 20
    """New issues a UTC day; the rest of a flood becomes one digest."""
    common_mode_lines: Annotated[int, Field(ge=2)] = 3
    common_mode_share: Share = 0.8
    """When this share of a server's lines, and so many, move at their newest release, the machine is asked first."""
    withdraw_after_days: Count = 2
    """Days on which the detector must miss a filed boundary before its issue is closed."""


class Recovery(Setting):
    """When a later release has given a regression back."""

    given_back: Share = 0.8
    """Part of a test's loss that must be gone, on the log scale."""
    of_tests: Share = 0.8
    """Share of the tests that lost for which that must hold."""


class Text(Setting):
    """How much of it the issue shows; the pages have all."""

    tables: Count = 4
    """Tests with a per-operation table, the largest changes first."""
    sparklines: Count = 12
    functions: Count = 12
    plans: Count = 4
    releases: Annotated[int, Field(ge=3)] = 6
    """Rows of a per-operation table: releases around the boundary, and the newest."""


class Links(Setting):
    """Addresses."""

    site: str = ""
    """Where the pages are published, e.g. `https://perf.example.org/`; empty: the local `var/site`."""
    source: dict[str, str] = Field(
        default_factory=lambda: {
            "postgres": "https://github.com/postgres/postgres/compare/REL_{previous_}...REL_{release_}",
            "mysql": "https://github.com/mysql/mysql-server/compare/mysql-{previous}...mysql-{release}",
            "mariadb": "https://github.com/MariaDB/server/compare/mariadb-{previous}...mariadb-{release}",
        }
    )
    """Where the source of two releases is compared, by DBMS; `{previous_}` has underscores for dots."""


class Webhook(Setting):
    """An address that hears of every event."""

    name: Annotated[str, Field(min_length=1)]
    kind: Literal["signed", "slack"] = "signed"
    url_env: Annotated[str, Field(min_length=1)]
    """Environment variable that holds the address."""
    secret_env: str = ""
    """Environment variable that holds the HMAC key; a `signed` webhook needs one."""
    events: tuple[str, ...] = ("filed", "updated", "recovered", "returned", "withdrawn", "digested")


class GitHub(Setting):
    """What the environment does not tell."""

    bots: tuple[str, ...] = ("github-actions[bot]",)
    """Accounts whose issues are ours when the token cannot say who it is (GITHUB_TOKEN and App tokens cannot)."""
    seconds_between_writes: Annotated[float, Field(ge=0, le=60)] = 1.0
    """GitHub asks for a second between writes, one at a time."""
    attempts: Annotated[int, Field(ge=1, le=10)] = 5
    backoff_seconds: Annotated[float, Field(ge=0, le=60)] = 2.0
    """Wait before the second attempt, doubled for each further one."""
    longest_wait_seconds: Annotated[float, Field(ge=0, le=3600)] = 300.0
    """A rate limit that lasts longer ends the sync; the next one does the rest."""


class AlertFile(Setting):
    """The whole file."""

    labels: Labels = Labels()
    filing: Filing = Filing()
    recovery: Recovery = Recovery()
    text: Text = Text()
    links: Links = Links()
    github: GitHub = GitHub()
    webhooks: tuple[Webhook, ...] = ()


class AlertSettings(AlertFile):
    """The file, and what other files of the folder say."""

    metrics: MetricRegistry = Field(default_factory=shipped_metrics)
    measurable: Measurable | None = None
    """What can be measured here; everything if None."""


def load_settings(configs: Path, measurable: Measurable | None = None) -> AlertSettings:
    """The settings in a folder; without the file, its defaults. BadSettings names file and key."""
    path = configs / "alerts.toml"
    file = read_model(path, AlertFile) if path.is_file() else AlertFile()
    return AlertSettings(**dict(file), metrics=load_metrics(configs), measurable=measurable)
