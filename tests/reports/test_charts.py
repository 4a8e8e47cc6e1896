"""Chart kinds: each compiles with the data its page gives it, has its colours in the script, is the same every time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from reports.charts import KINDS, STYLES, charts_script, specification, vega_script

SCRIPT = (Path(__file__).parents[2] / "reports/assets/site.js").read_text(encoding="utf-8")
MARK = {"p": 0.5, "label": "▼ 8.0.28", "row": 1, "kind": "worse", "text": "withdrawn"}
DATA: dict[str, dict[str, Any]] = {
    "medians": {"medians": [{"g": "writes", "p": 0, "v": "8.0.27", "r": 1.0}], "marks": [MARK], "notes": [MARK]},
    "steps": {
        "points": [{"p": 0, "v": "8.0.27", "y": 5.0, "n": 3}],
        "blocks": [{"x": 0.1, "v": "8.0.27", "y": 5.1}],
        "steps": [{"from": -0.5, "to": 0.5, "level": 5.0, "low": 4.9, "high": None}],
        "marks": [MARK],
        "epochs": [MARK],
        "notes": [MARK],
    },
    "seconds": {"seconds": [{"t": 0, "v": "8.0.27", "y": 1.0}, {"t": 1, "v": "8.0.27", "y": 2.0}]},
    "latency": {"latency": [{"v": "8.0.27", "ms": 0.5, "share": 50.0}, {"v": "8.0.27", "ms": 2, "share": 100.0}]},
    "effects": {"effects": [{"name": "scan", "change": -5, "low": -6, "high": -4, "kind": "worse"}]},
    "flame": {"flame": [{"row": "a", "function": "f", "from": 0, "to": 9, "insn": 9, "change": 1, "share": 2}]},
    "compare": {"tests": [{"test": "scan", "r": 0.9, "one": 1, "kind": "worse"}]},
    "noise": {"noise": [{"metric": "qps", "name": "x", "mde": 2.0, "noise": 0.5}]},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_draws_its_data(kind: str) -> None:
    spec = specification(kind)
    spec["width"] = 600
    spec["datasets"] = {"unit": [{"one": 1, "zero": 0}], **DATA[kind]}
    svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    assert "mark-" in svg
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", svg)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_reads_named_data_only_and_known_styles(kind: str) -> None:
    text = json.dumps(specification(kind))
    assert '"url"' not in text and '"values": [{' not in text
    names = set(re.findall(r'"data": \{"name": "(\w+)"\}', text))
    assert names <= {"unit", *DATA[kind]}
    styles = set(re.findall(r'"style": "(\w+)"', text))
    assert styles <= set(STYLES)


def test_every_style_has_a_colour_in_the_script() -> None:
    for style in STYLES:
        assert re.search(rf"\b{style}: ", SCRIPT), style


def test_scripts_are_the_same_every_time_and_evaluate_no_text() -> None:
    assert charts_script() == charts_script()
    assert "expressionInterpreter" in vega_script()
    assert "ast: true" in SCRIPT
    assert not re.search(r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write", SCRIPT)
