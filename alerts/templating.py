"""The Jinja2 environment of every text: strict about missing values, and nothing foreign gets out unescaped.

A template may print only `Markdown` values and integers. A plain string, which could be anybody's, stops the
rendering: that is a defect of the template, found by the first test that fills it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from alerts.safetext import Markdown, code, fenced, prose
from presentation.near_zero import median_change, worst_change
from presentation.number_format import grouped, sides, signed


def _only_safe(value: object) -> str:
    if isinstance(value, Markdown):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    # Undefined values raise by themselves, with the name that is missing.
    raise TypeError(f"a template may print only Markdown and integers, got {type(value).__name__}: {str(value)[:80]!r}")


def _labelled_fence(text: str, label: str) -> Markdown:
    return fenced([label, *text.splitlines()])


def markdown_filter(function: Callable[..., str]) -> Callable[..., Markdown]:
    """`function`, whose own words are safe, as a filter."""
    return lambda *args: Markdown(function(*args))


@cache
def environment() -> Environment:
    """One environment for the process."""
    # Markdown, not HTML: escaping HTML would be wrong, and `finalize` is stricter.
    env = Environment(
        loader=PackageLoader("alerts"),
        undefined=StrictUndefined,
        finalize=_only_safe,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        code=code,
        prose=prose,
        signed=markdown_filter(signed),
        grouped=markdown_filter(grouped),
        median_change=markdown_filter(median_change),
        worst_change=markdown_filter(worst_change),
        sides=markdown_filter(lambda before, after, at_most: " | ".join(sides(before, after, at_most))),
        # Addresses are made of escaped names only.
        link=lambda address: Markdown(f"<{address}>"),
        labelled_fence=_labelled_fence,
        command_fence=lambda command: fenced([command], "sh"),
    )
    return env


def template(name: str) -> Template:
    """One of `alerts/templates`."""
    return environment().get_template(name)


def render_block(of: Template, block: str, values: dict[str, Any]) -> Markdown:
    """One `{% block %}` of a template by itself."""
    return Markdown("".join(of.blocks[block](of.new_context(values))).strip("\n"))
