"""Views: a tab of every page, an option of the terminal, from the registry alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from history.errors import UnknownSeries
from history.metrics import SHIPPED, MetricRegistry, load_metrics
from history.model import Measurement, Release
from history.store import Store
from presentation.addresses import LineKey
from presentation.heat import heat_table
from presentation.line_tables import Selection, line_tables
from presentation.tables import tables_text
from presentation.views import named_view, offered_views, preferred_series, views

from .examples import METRICS, series

ADDED = """
["stalls/o"]
title = "stalled cycles per operation"
unit = "cycles"
better = "lower"
noun = "stalled cycles per operation"
view = "Stalls/op"
ratio_decimals = 3
"""


@pytest.fixture
def added(tmp_path: Path) -> MetricRegistry:
    """The shipped registry and one more metric."""
    (tmp_path / "metrics.toml").write_text((SHIPPED / "metrics.toml").read_text(encoding="utf-8") + ADDED)
    return load_metrics(tmp_path)


def test_throughput_prefers_the_query_rate_of_a_read_write_step() -> None:
    background, queries = series({"1": [100]}, "qr100", "ips"), series({"1": [5000]}, "qr100", "qps")
    assert preferred_series([background, queries], views(METRICS)[0].metrics) == [queries]


def test_the_fullest_view_comes_first() -> None:
    both = [series({"1": [1]}), series({"1": [1], "2": [1]}, metric="insn/o"), series({"1": [1]}, metric="cs/o")]
    assert [view.id for view in offered_views(both, views(METRICS))] == ["instructions-op", "throughput"]


def test_a_view_or_a_metric_is_named_and_another_name_lists_what_is_allowed() -> None:
    assert named_view("instructions-op", METRICS) == named_view("insn/o", METRICS)
    assert named_view("throughput", METRICS).metrics[:2] == ("qps", "ips")
    assert named_view("ips", METRICS).metrics == ("ips",)
    assert named_view("cs/o", METRICS).note == "relative context switches per operation: above 1 is slower"
    with pytest.raises(UnknownSeries, match=r"no metric 'speed'; allowed are the views throughput, .*cs/o"):
        named_view("speed", METRICS)


def test_a_metric_of_the_registry_needs_no_line_of_code(added: MetricRegistry, tmp_path: Path) -> None:
    from reports.settings import ReportSettings
    from reports.site import build

    from ..reports.conftest import Writer

    with Store.open(f"sqlite:///{tmp_path / 'history.db'}") as store:
        writer = Writer(store, 1)
        session = writer.session("s", "local", 0)
        for at, version in enumerate(("17.0", "17.1")):
            measured = [Measurement(test="scan", metric="stalls/o", value=1000.0 + 100 * at, unit="cycles")]
            release = Release(dbms="postgres", version=version, line="17")
            writer.run(session, release, "default", "sysbench", lambda rng, measured=measured: measured)
        stalls = list(store.series())
        build(store, tmp_path / "site", ReportSettings(metrics=added))
    key = LineKey("postgres", "17", "local", "default", "sysbench")
    folder = tmp_path / "site/lines/postgres/17/local/default/sysbench"
    view = views(added)[-1]
    assert (view.id, view.title) == ("stalls-op", "Stalls/op")
    assert heat_table(stalls, view, added).ratios.loc["all tests", "scan"].tolist() == [1.0, 1.1]
    line, test = ((folder / name).read_text(encoding="utf-8") for name in ("index.html", "scan.html"))
    assert 'data-heat="stalls-op"' in line and "1.100" in line
    assert "Stalled cycles per operation" in test and ">stalls/o</th>" in test
    for name in ("stalls-op", "stalls/o", ""):
        (table,) = line_tables("relative", {key: stalls}, Selection(added, {}, name))
        assert "relative stalled cycles per operation" in table.title
        assert tables_text([table], "csv") == "test,17.0,17.1\nscan,1.0,1.1\n" + '"median, all tests",1.0,1.1\n'
    (absolute, _) = line_tables("per-operation", {key: stalls}, Selection(added, {}))
    assert absolute.columns == ["stalls/o", "dbms"]
    compare = (tmp_path / "site/compare/local/sysbench.csv").read_text(encoding="utf-8")
    assert "postgres,17,17.1,default,stalls-op,all tests,scan,1100.0" in compare
