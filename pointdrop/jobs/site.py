"""What a site is told besides the history: the reports' settings, and where alerts say that the site is published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from alerts import load_settings as load_alert_settings
from pointdrop.jobs.measurable import measurable
from reports.settings import ReportSettings
from reports.settings import load_settings as load_report_settings


def site_settings(configs: Path, site_url: str = "") -> ReportSettings:
    """Settings of every build of the site; issues and feed link to the same address, `site` in alerts.toml, unless
    `site_url` names another."""
    alerts = load_alert_settings(configs)
    return replace(
        load_report_settings(configs),
        site_url=site_url or alerts.links.site,
        sources=alerts.links.source,
        measurable=measurable(configs),
    )
