"""sysbench 1.0: the text report of one run, or the JSON of `sysbench.report_json`.

```
    transactions:                        41095  (13663.56 per sec.)
    queries:                             41095  (13663.56 per sec.)
         95th percentile:                        0.02
```

The text gives `qps` and `tps` to two decimals and the latencies; the JSON, one entry a second, gives their mean over
the entries and keeps the entries as per-second samples. Neither names release or test: `--release` and `--test` do.
"""

from __future__ import annotations

import re
from statistics import fmean

from pydantic import BaseModel

from history.errors import InvalidRecord
from history.importers.figures import About, Figure, Parsed, decoded, read_json
from history.importing import Rejection
from history.metrics import shipped_metrics

RATES = {"transactions": "tps", "queries": "qps"}
LATENCIES = {"avg": "latency_avg", "max": "latency_max", "95th percentile": "latency_p95"}

#: Of no more digits than a number that is stored may have.
_NUMBER = r"(\d{1,18}(?:\.\d{1,18})?)"
_RATE = re.compile(rf"^\s+(transactions|queries):\s+(\d{{1,18}})\s+\({_NUMBER} per sec\.\)$")
_EVENTS = re.compile(rf"^\s+events per second:\s+{_NUMBER}$")
_LATENCY = re.compile(rf"^\s+(avg|max|95th percentile):\s+{_NUMBER}$")


class _Queries(BaseModel):
    total: float
    reads: float
    writes: float
    other: float


class _Entry(BaseModel):
    time: float
    threads: int
    tps: float
    qps: _Queries
    latency: float
    errors: float
    reconnects: float


def recognise(head: str) -> bool:
    """Whether a file that begins like this is sysbench's."""
    return head.startswith("sysbench ") or ('"tps"' in head and '"reconnects"' in head)


def parse(content: bytes, about: About) -> Parsed:
    """Figures of one sysbench run."""
    if not about.test:
        yield Rejection(line=0, reason="sysbench does not say which test it ran; give --test")
        return
    text = decoded(content)
    yield from _json(content, about) if text.lstrip().startswith("[") else _text(text, about)


def _text(text: str, about: About) -> Parsed:
    figures: dict[str, Figure] = {}
    latency = False
    for number, line in enumerate(text.splitlines(), 1):
        latency = line.startswith("Latency (ms)") or (latency and line.startswith(" "))
        figure = None
        if match := _RATE.match(line):
            figure = _figure(number, about, RATES[match[1]], float(match[3]), operations=int(match[2]))
        elif match := _EVENTS.match(line):
            figure = Figure(number, about.test, "events/s", float(match[1]), "/s", "higher")
        elif latency and (match := _LATENCY.match(line)):
            figure = _figure(number, about, LATENCIES[match[1]], float(match[2]))
        if figure is not None:
            if figure.metric in figures:
                yield Rejection(line=number, reason=f"a second {figure.metric}: the file holds more than one run")
                return
            figures[figure.metric] = figure
    if not {"qps", "events/s"} & figures.keys():
        yield Rejection(line=0, reason="no `queries: N (R per sec.)`; the run did not finish")
        return
    yield from figures.values()


def _figure(
    line_number: int,
    about: About,
    name: str,
    value: float,
    operations: int | None = None,
    samples: tuple[float, ...] = (),
) -> Figure:
    metric = shipped_metrics()[name]
    figure = Figure(line_number, about.test, name, value, metric.unit, metric.better)
    return figure._replace(operations=operations, samples=samples)


def _json(content: bytes, about: About) -> Parsed:
    try:
        entries = read_json(content, list[_Entry], "the JSON of sysbench.report_json")
    except InvalidRecord as error:
        yield Rejection(line=1, reason=str(error))
        return
    if not entries:
        yield Rejection(line=1, reason="no entries: the run was shorter than its report interval")
        return
    for metric, values in (
        ("qps", tuple(entry.qps.total for entry in entries)),
        ("tps", tuple(entry.tps for entry in entries)),
        ("latency_p95", tuple(entry.latency for entry in entries)),
    ):
        yield _figure(1, about, metric, fmean(values), samples=values)
