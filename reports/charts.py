"""Chart kinds as Vega-Lite specifications, written with altair; the pages' script feeds them data.

Vega-Lite was chosen because a chart is then data, not code: the specification of a kind is one constant of the site, a
page carries only its numbers, and the renderer is one file that runs under a strict Content-Security-Policy (its
interpreter of expressions needs no `eval`). Drawing at build time instead was measured at 50 ms a chart: 5,000 would
take four minutes.

Positions count the releases of a line from 0; parameters `names` (labels) and `ticks` (positions) are set by the page.
A chart with a row a name gets its height with its data (`height`, in pixels).
Marks have the style names of `STYLES`, which the page's script maps to its colours, light or dark.
"""

from __future__ import annotations

import json
from typing import Any

import altair as alt

#: Style names a specification may use; `site.js` has the colours.
STYLES = ("level", "band", "block", "point", "worse", "better", "other", "note", "axis", "flame", "flametext")
HEIGHT_PX = 260
#: Ticks of the noise chart: a symlog scale makes none of its own that do not lie on each other.
NOISE_TICKS_PCT = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
#: Height of a row: a series, a release's functions, a metric's noise.
ROW_PX = {"effects": 17, "compare": 17, "flame": 46, "noise": 30}
#: x offset of an annotation's or finding's text from its line, in pixels.
LABEL_DX = 4
LABEL_LINE_PX = 13
#: Colours of a function that costs less, the same, and more; dark text is readable on all, in both themes.
FLAME_COLOURS = ["#6ba8dc", "#e9edf2", "#ea8f52"]
#: A box narrower than this has no name in it.
LABEL_PX = 36
#: Change, as a percentage of the total, at which a function has the full colour.
SHADE_PCT = 5


def _x(field: str = "p", title: str | None = None) -> alt.X:
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(nice=False, zero=False, domain=alt.ExprRef("[-0.6, names.length - 0.4]")),
        axis=alt.Axis(
            labelExpr="names[datum.value]",
            values=alt.ExprRef("ticks"),
            labelAngle=-40,
            grid=False,
            labelOverlap="greedy",
        ),
    )


def _y(field: str, title: str | None) -> alt.Y:
    return alt.Y(f"{field}:Q", title=title, scale=alt.Scale(zero=False))


def _names() -> list[alt.Parameter]:
    return [alt.param(name="names", value=[]), alt.param(name="ticks", value=[])]


def _marks() -> list[alt.Chart]:
    """Findings as labelled lines, a style a kind; annotations as dotted lines with the letter of their text.

    A label stands `row` lines down, so that neighbours do not lie on each other.
    """
    layers = []
    row = alt.ExprRef(f"datum.row * {LABEL_LINE_PX}")
    for kind in ("worse", "better", "other"):
        base = alt.Chart(alt.NamedData("marks")).transform_filter(f"datum.kind === '{kind}'")
        layers.append(base.mark_rule(style=kind, strokeWidth=1.5).encode(x=_x()))
        layers.append(
            base.mark_text(style=kind, align="left", baseline="top", dx=LABEL_DX, dy=row, fontWeight="bold").encode(
                x=_x(), y=alt.value(2), text="label:N"
            )
        )
    notes = alt.Chart(alt.NamedData("notes"))
    layers.append(notes.mark_rule(style="note", strokeDash=[2, 3]).encode(x=_x(), tooltip=["text:N"]))
    layers.append(
        notes.mark_text(style="note", align="left", baseline="bottom", dx=LABEL_DX, fontStyle="italic").encode(
            x=_x(), y=alt.value(HEIGHT_PX - 4), text="label:N", tooltip=["text:N"]
        )
    )
    return layers


def medians() -> Any:
    """Line page: relative median of each group by release, as steps."""
    data = alt.Chart(alt.NamedData("medians"))
    legend = alt.Legend(orient="top", columns=6, symbolSize=300, symbolStrokeWidth=2)
    # colour and dash on one mark without points: only then are their legends one
    line = data.mark_line(interpolate="step", strokeWidth=2).encode(
        x=_x(),
        y=_y("r", "relative to base"),
        color=alt.Color("g:N", title=None, sort=None, legend=legend),
        strokeDash=alt.StrokeDash("g:N", title=None, sort=None, legend=legend),
    )
    hover = data.mark_point(opacity=0, size=160, filled=True).encode(
        x=_x(),
        y=_y("r", "relative to base"),
        tooltip=[
            alt.Tooltip("g:N", title="group"),
            alt.Tooltip("v:N", title="release"),
            alt.Tooltip("r:Q", title="relative", format=".3f"),
        ],
    )
    base_rule = alt.Chart(alt.NamedData("unit")).mark_rule(style="axis").encode(y="one:Q")
    return (
        alt.layer(base_rule, line, *_marks(), hover)
        .add_params(*_names())
        .properties(width="container", height=HEIGHT_PX)
    )


def steps() -> Any:
    """Test page: every block, the median of each release, the level of each stretch with its interval."""
    level = alt.Chart(alt.NamedData("steps"))
    ends = alt.X2("to:Q")
    blocks = alt.Chart(alt.NamedData("blocks"))
    epochs = alt.Chart(alt.NamedData("epochs"))
    tip = [
        alt.Tooltip("v:N", title="release"),
        alt.Tooltip("y:Q", title="value", format=",.6~g"),
    ]
    layers = [
        epochs.mark_rule(style="note", strokeDash=[6, 3]).encode(x=_x(), tooltip=["text:N"]),
        level.mark_rect(style="band").encode(x=_x("from"), x2=ends, y=_y("low", None), y2="high:Q"),
        blocks.mark_tick(style="block", orient="horizontal", width=9, thickness=1.4).encode(
            x=_x("x"), y=_y("y", None), tooltip=tip
        ),
        level.mark_rule(style="level", strokeWidth=2).encode(
            x=_x("from"),
            x2=ends,
            y=_y("level", None),
            tooltip=[
                alt.Tooltip("level:Q", format=",.6~g"),
                alt.Tooltip("low:Q", title="95 % low", format=",.6~g"),
                alt.Tooltip("high:Q", title="95 % high", format=",.6~g"),
            ],
        ),
        alt.Chart(alt.NamedData("points"))
        .mark_point(style="point", filled=True, size=34)
        .encode(
            x=_x(),
            y=_y("y", None),
            tooltip=[
                alt.Tooltip("v:N", title="release"),
                alt.Tooltip("y:Q", title="median", format=",.6~g"),
                alt.Tooltip("n:Q", title="blocks"),
            ],
        ),
        *_marks(),
    ]
    return alt.layer(*layers).add_params(*_names()).properties(width="container", height=HEIGHT_PX)


def seconds() -> Any:
    """One value a second, a colour a release."""
    return (
        alt.Chart(alt.NamedData("seconds"))
        .mark_line(strokeWidth=1.1)
        .encode(
            x=alt.X("t:Q", title="second", scale=alt.Scale(nice=False)),
            y=_y("y", None),
            color=alt.Color("v:N", title=None, sort=None, legend=alt.Legend(orient="top")),
            strokeDash=alt.StrokeDash("v:N", title=None, sort=None, legend=alt.Legend(orient="top")),
            tooltip=[
                alt.Tooltip("v:N", title="release"),
                alt.Tooltip("t:Q", title="second"),
                alt.Tooltip("y:Q", title="value", format=",.5~g"),
            ],
        )
        .properties(width="container", height=200)
    )


def latency() -> Any:
    """Share of operations at most as slow as x, a line a release."""
    return (
        alt.Chart(alt.NamedData("latency"))
        .mark_line(interpolate="step-after", strokeWidth=1.4)
        .encode(
            x=alt.X("ms:Q", title="milliseconds", scale=alt.Scale(type="log", nice=False)),
            y=alt.Y("share:Q", title="% of operations"),
            color=alt.Color("v:N", title=None, sort=None, legend=alt.Legend(orient="top")),
            strokeDash=alt.StrokeDash("v:N", title=None, sort=None, legend=alt.Legend(orient="top")),
            tooltip=[alt.Tooltip("v:N", title="release"), alt.Tooltip("ms:Q", format=".4~g"), alt.Tooltip("share:Q")],
        )
        .properties(width="container", height=200)
    )


def effects() -> Any:
    """Finding page: the change of each series with its 95 % interval, zero drawn."""
    base = alt.Chart(alt.NamedData("effects"))
    y = alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=300, grid=True))
    # the unfiltered layer comes first: it alone gives the axis the order of the data
    layers = [
        base.mark_point(opacity=0).encode(x="change:Q", y=y),
        alt.Chart(alt.NamedData("unit")).mark_rule(style="axis").encode(x="zero:Q"),
    ]
    for kind in ("worse", "better", "other"):
        of_kind = base.transform_filter(f"datum.kind === '{kind}'")
        layers.append(of_kind.mark_rule(style=kind, strokeWidth=2).encode(x="low:Q", x2="high:Q", y=y))
        layers.append(
            of_kind.mark_point(
                style=kind, filled=True, size=60, shape="triangle-down" if kind == "worse" else "triangle-up"
            ).encode(
                x=alt.X("change:Q", title="change, % (95 % interval)"),
                y=y,
                tooltip=[
                    alt.Tooltip("name:N", title="series"),
                    alt.Tooltip("change:Q", title="change, %", format="+.2f"),
                    alt.Tooltip("low:Q", format="+.2f"),
                    alt.Tooltip("high:Q", format="+.2f"),
                ],
            )
        )
    return alt.layer(*layers).properties(width="container", height=HEIGHT_PX)


def flame() -> Any:
    """Finding page: one bar a release, one box a function, as wide as its instructions per operation."""
    base = alt.Chart(alt.NamedData("flame"))
    x = alt.X("from:Q", title="instructions per operation", scale=alt.Scale(nice=False))
    y = alt.Y("row:N", title=None, sort=None, scale=alt.Scale(paddingInner=0.18))
    tip = [
        alt.Tooltip("function:N"),
        alt.Tooltip("row:N", title="release"),
        alt.Tooltip("insn:Q", title="instructions/op", format=",.0f"),
        alt.Tooltip("change:Q", title="change", format="+,.0f"),
    ]
    box = base.mark_rect(strokeWidth=1, style="flame").encode(
        x=x,
        x2="to:Q",
        y=y,
        tooltip=tip,
        fill=alt.Fill(
            "share:Q",
            title="change, % of the total",
            scale=alt.Scale(domain=[-SHADE_PCT, 0, SHADE_PCT], range=FLAME_COLOURS, clamp=True, interpolate="lab"),
            legend=alt.Legend(orient="top", gradientLength=160),
        ),
    )
    width = "scale('x', datum.to) - scale('x', datum.from)"
    room, shown = alt.ExprRef(f"max(1, {width} - 6)"), alt.ExprRef(f"{width} > {LABEL_PX} ? 1 : 0")
    label = base.mark_text(style="flametext", align="left", dx=3, fontSize=11, limit=room, opacity=shown).encode(
        x=x, y=y, text="function:N", tooltip=tip
    )
    return alt.layer(box, label).properties(width="container", height=HEIGHT_PX)


def compare() -> Any:
    """Compare page: relative value of each test, a line from 1."""
    base = alt.Chart(alt.NamedData("tests"))
    y = alt.Y("test:N", title=None, sort=None, axis=alt.Axis(labelLimit=280, grid=True))
    layers = [
        base.mark_point(opacity=0).encode(x="r:Q", y=y),
        alt.Chart(alt.NamedData("unit")).mark_rule(style="axis").encode(x="one:Q"),
    ]
    for kind, shape in (("worse", "triangle-down"), ("better", "triangle-up"), ("note", "circle")):
        of_kind = base.transform_filter(f"datum.kind === '{kind}'")
        layers.append(of_kind.mark_rule(style=kind, strokeWidth=2).encode(x="one:Q", x2="r:Q", y=y))
        layers.append(
            of_kind.mark_point(style=kind, filled=True, size=54, shape=shape).encode(
                x=alt.X(
                    "r:Q",
                    title="relative",
                    scale=alt.Scale(zero=False),
                    axis=alt.Axis(labelOverlap=True, labelSeparation=6),
                ),
                y=y,
                tooltip=["test:N", alt.Tooltip("r:Q", title="relative", format=".3f")],
            )
        )
    return alt.layer(*layers).properties(width="container", height=HEIGHT_PX)


def noise() -> Any:
    """A/A panel: smallest detectable change of every series, a strip a metric."""
    return (
        alt.Chart(alt.NamedData("noise"))
        .mark_tick(style="block", thickness=1.5)
        .encode(
            x=alt.X(
                "mde:Q",
                title="smallest detectable change, %",
                scale=alt.Scale(type="symlog", domainMin=0),
                axis=alt.Axis(values=NOISE_TICKS_PCT),
            ),
            y=alt.Y("metric:N", title=None, sort=None),
            tooltip=["name:N", alt.Tooltip("noise:Q", format=".2f"), alt.Tooltip("mde:Q", format=".2f")],
        )
        .properties(width="container", height=HEIGHT_PX)
    )


KINDS = {
    "medians": medians,
    "steps": steps,
    "seconds": seconds,
    "latency": latency,
    "effects": effects,
    "flame": flame,
    "compare": compare,
    "noise": noise,
}


def specification(kind: str) -> dict[str, Any]:
    """One kind as a Vega-Lite specification without altair's default configuration, which would override the page's."""
    spec: dict[str, Any] = KINDS[kind]().to_dict()
    spec.pop("config", None)
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return _named(spec)


def _named(spec: dict[str, Any]) -> dict[str, Any]:
    """altair numbers views by a counter of the process; the same site must have the same bytes."""
    text = json.dumps(spec, sort_keys=True)
    for number, name in enumerate(dict.fromkeys(part.split('"')[0] for part in text.split('"view_')[1:])):
        text = text.replace(f'"view_{name}"', f'"layer-{number}"')
    specification: dict[str, Any] = json.loads(text)
    return specification


def height_of(kind: str, rows: int) -> int:
    """Height in pixels of a chart with `rows` rows; one row at least."""
    return ROW_PX[kind] * max(1, rows)


def charts_script() -> str:
    """`assets/charts.js`: every kind as one constant."""
    kinds = {kind: specification(kind) for kind in KINDS}
    return f"window.pointdropCharts = {json.dumps(kinds, sort_keys=True, separators=(',', ':'))};\n"


def vega_script() -> str:
    """`assets/vega.js`: Vega, Vega-Lite and Vega-Embed (BSD-3-Clause) as vl-convert ships them."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle
