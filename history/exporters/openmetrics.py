"""OpenMetrics 1.0 text: one gauge, `pointdrop_level`, with the series as labels, each line's newest release.

```
# TYPE pointdrop_level gauge
pointdrop_level{dbms="mysql",line="8.0",version="8.0.30",...,metric="qps",unit="/s",better="higher"} 13663.56
# EOF
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from history.exporters.snapshots import at
from history.model import Series

NAME = "pointdrop_level"
#: Of a label's value.
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def lines(all_series: Iterable[Series], version: str | None = None) -> Iterator[str]:
    """An exposition; the last line is `# EOF`."""
    yield f"# TYPE {NAME} gauge"
    yield f"# HELP {NAME} Level of a test at one release: median of its blocks."
    for series, point in at(all_series, version):
        labels = series.key.model_dump() | {"version": point.version, "unit": series.unit, "better": series.better}
        shown = ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels.items())
        yield f"{NAME}{{{shown}}} {point.level!r}"
    yield "# EOF"
