"""Templates to text. Pure but for reading the templates, which are part of the package."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from presentation.addresses import up
from presentation.near_zero import median_change, worst_change
from presentation.number_format import count, grouped, interval, percent, probability, signed
from presentation.sentences import CAUSES, TIER_WORDS
from presentation.tables import json_line
from reports.settings import ReportSettings

NAVIGATION = (
    ("Overview", "index.html"),
    ("Findings", "findings/index.html"),
    ("Compare", "compare/index.html"),
    ("Noise", "noise.html"),
    ("Environment", "environment.html"),
    ("About", "about.html"),
)


def script_json(value: Any) -> Markup:
    """JSON inside a script element: no `<`, so that no text can end the element."""
    text = json_line(value).strip()
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def when(moment: datetime | str) -> str:
    """`2026-11-21 09:40 UTC`; every time of the history is UTC."""
    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return moment.strftime("%Y-%m-%d %H:%M UTC")


def capitalized_first(text: str) -> str:
    return text[:1].upper() + text[1:]


@lru_cache(maxsize=1)
def environment() -> Environment:
    environment_of_pages = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment_of_pages.filters.update(
        json=script_json, when=when, count=count, capfirst=capitalized_first, grouped=grouped, signed=signed,
        interval=interval, percent=percent, probability=probability, cause=CAUSES.__getitem__,
        tier=TIER_WORDS.__getitem__, median_change=median_change, worst_change=worst_change,
    )  # fmt: skip
    return environment_of_pages


def render(
    template: str,
    page: str,
    settings: ReportSettings,
    context: dict[str, Any],
    *,
    charts: bool = False,
    crumbs: tuple[tuple[str, str], ...] = (),
) -> str:
    """The page at address `page`; `charts` loads the chart runtime, `crumbs` are (label, address)."""
    return (
        environment()
        .get_template(template)
        .render(site=settings, root=up(page), here=page, navigation=NAVIGATION, charts=charts, crumbs=crumbs, **context)
    )
