"""What the roles said becomes the field's metrics; a step that broke its promise gives no query rate."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.errors import WorkloadFailed
from runners.insertbench.figures import Rates, Window, efficiency, measured_rates, parse_window, throughput
from runners.meters.sample import Cpu, Disk, MeterSample
from runners.sessions.steps import samples, sla_warning
from runners.settings import Step
from runners.sysbench.output import parse_report

QUERY = Step(does="range", rows_per_commit=50, rate=1000)
FIRST = MeterSample(
    at_s=100.0,
    cpu=Cpu(busy_s=10.0, idle_s=10.0, steal_s=0.0),
    context_switches=1_000,
    disk=Disk(10, 4096, 20, 8192, None, None),
    server_cpu_s=2.0,
    client_cpu_s=0.5,
    harness_cpu_s=0.1,
    rss_bytes=100 * 1024**2,
)
LAST = replace(
    FIRST,
    at_s=110.0,
    cpu=Cpu(busy_s=20.0, idle_s=20.0, steal_s=0.0),
    context_switches=21_000,
    disk=Disk(110, 4096 + 1024_000, 220, 8192 + 2048_000, None, None),
    server_cpu_s=7.0,
    client_cpu_s=1.5,
    rss_bytes=200 * 1024**2,
)


def window(transactions: int, seconds: float) -> Window:
    return Window(transactions, 50.0, 50.0 + seconds)


def test_a_window_is_from_the_first_begin_to_the_last_end() -> None:
    text = "x\nend: client=2 transactions=30 begin=10.5 end=12.0\nend: client=1 transactions=20 begin=10.0 end=11.0\n"
    assert parse_window(text, clients=2) == Window(50, 10.0, 12.0)
    with pytest.raises(WorkloadFailed, match="2 of 3 clients"):
        parse_window(text, clients=3)


def test_throughput_of_the_steps_that_write() -> None:
    load = measured_rates(
        Step(does="load", rows_per_commit=100), {"insert": window(400, 2.0)}, clients=1, rows=40_000, query_s=9
    )
    assert throughput(load) == {"ips": 20_000.0}
    index = measured_rates(Step(does="index"), {"index": window(3, 2.0)}, clients=3, rows=40_000, query_s=9)
    assert throughput(index) == {"indexed rows/s": 60_000.0}, "rows of all tables, not times their three indexes"


@pytest.mark.parametrize(
    ("inserted", "seconds", "void"),
    [(200, 9.5, False), (190, 9.99, False), (189, 9.99, True), (200, 10.5, False), (200, 11.0, True), (0, 0.0, True)],
)
def test_below_95_percent_of_the_promised_rate_the_queries_are_void(inserted: int, seconds: float, void: bool) -> None:
    windows = {"query": window(50_000, 10.0), "insert": window(inserted, seconds), "delete": window(inserted, seconds)}
    rates = measured_rates(QUERY, windows, clients=1, rows=40_000, query_s=10)
    assert rates.void is void
    assert ("qps" in throughput(rates)) is not void
    assert throughput(rates)["target_ips"] == 1000.0
    assert throughput(rates)["ips"] == pytest.approx(inserted * 50 / max(10.0, seconds))


@given(
    queries=st.integers(1, 10**7),
    inserted=st.integers(0, 10**5),
    clients=st.integers(1, 40),
    seconds=st.floats(0.5, 4000),
)
def test_the_promise_is_of_all_clients_and_a_void_step_has_no_cost_an_operation(
    queries: int, inserted: int, clients: int, seconds: float
) -> None:
    windows = {"query": window(queries, seconds), "insert": window(inserted, seconds)}
    rates = measured_rates(QUERY, windows, clients=clients, rows=1000, query_s=1)
    assert rates.promised_per_s == 1000 * clients
    values = throughput(rates) | efficiency(FIRST, LAST, rates)
    share = values["ips"] / values["target_ips"]
    assert ("qps" in values) == (share >= 0.95)
    assert ("cpupq" in values) == ("qps" in values)
    assert {"cpups", "csps", "rss"} <= values.keys()
    assert all(value >= 0 for value in values.values())


def test_efficiency_is_the_published_definition() -> None:
    rates = Rates("qps", 500.0, 5_000, inserted_per_s=1000.0, promised_per_s=1000.0)
    costs = efficiency(FIRST, LAST, rates)
    # half of two cores: cpu % / 100 x cores x 1e6 / rate
    assert costs["cpups"] == pytest.approx(50.0)
    assert costs["cpupq"] == pytest.approx(0.5 * 2 * 1e6 / 500)
    assert costs["cpu_us/o"] == pytest.approx(5.0 * 1e6 / 5_000)
    assert costs["clientpq"] == pytest.approx(1.0 * 1e6 / 5_000)
    assert (costs["csps"], costs["cspq"]) == (pytest.approx(2_000), pytest.approx(4.0))
    assert (costs["rpq"], costs["rkbpq"]) == (pytest.approx(0.02), pytest.approx(0.2))
    assert (costs["wpi"], costs["wkbpi"]) == (pytest.approx(0.02), pytest.approx(0.2)), "of the rows inserted"
    assert costs["rss"] == 200.0


def test_meters_that_are_not_there_give_nothing() -> None:
    bare = {"cpu": None, "context_switches": None, "disk": None, "server_cpu_s": None, "client_cpu_s": None}
    first, last = replace(FIRST, rss_bytes=None, **bare), replace(LAST, rss_bytes=None, **bare)
    assert efficiency(first, last, Rates("ips", 500.0, 5_000, 500.0)) == {}


def test_nothing_done_is_a_failure() -> None:
    with pytest.raises(WorkloadFailed, match="no transaction"):
        measured_rates(Step(does="load"), {"insert": window(0, 1.0)}, clients=1, rows=10, query_s=1)


def test_a_broken_promise_is_said_in_words() -> None:
    rates = Rates("qps", 500.0, 5_000, inserted_per_s=927.0, promised_per_s=1000.0)
    assert sla_warning("qp1000", rates) == (
        "qp1000: 927 of 1000 inserts/s were reached (93%, SLA 95%), so its queries do not count"
    )


def test_seconds_and_response_times_of_every_role_are_kept() -> None:
    text = """[ 1s ] thds: 1 tps: 20.00 qps: 20.00 (r/w/o: 0/20/0) lat (ms,100%): 7.00 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       7.000 |**********                               20
SQL statistics:
    queries performed:
    transactions:                        20 (20.00 per sec.)
    queries:                             20 (20.00 per sec.)
    ignored errors:                      0      (0.00 per sec.)
Latency (ms):
         min: 1.00
         avg: 2.00
         max: 7.00
        100th percentile: 7.00
        sum: 20.00
"""
    report = parse_report(text)
    by_name = samples(50, {"query": report, "insert": report, "delete": report})
    assert by_name["qps"] == (20.0,)
    assert (by_name["ips"], by_name["dps"]) == ((1000.0,), (1000.0,))
    assert by_name["max_ms"] == by_name["insert_max_ms"] == by_name["delete_max_ms"] == (7.0,)
    assert by_name["histogram_count"] == by_name["delete_histogram_count"] == (20.0,)
