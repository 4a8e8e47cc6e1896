"""What the store promises: rows come back as they went in, once, and series in version order."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from history import assemble, outcomes
from history.database import reading, writing
from history.errors import ConflictingRecord, InvalidRecord, UnknownSeries
from history.interchange import line_of_record
from history.model import (
    METHOD,
    Block,
    BlockValue,
    CallCost,
    EffectiveSetting,
    FindingEvent,
    Fingerprint,
    FunctionCost,
    IssueLink,
    Measurement,
    Point,
    Release,
    Run,
    Series,
    Session,
    StatementPlan,
)
from history.records import digest
from history.store import Store
from history.writing import RowKeys
from tests.builders import DAY, SESSION, block, measurement, run
from tests.history.test_maintenance import FINDING


def fill(store: Store, versions: dict[str, float], line: str = "17") -> None:
    store.append_session(SESSION)
    for version, value in versions.items():
        store.append_run(run(version, line))
        store.append_block(block(run(version, line), value))


def test_an_append_is_idempotent_and_other_contents_conflict(store: Store) -> None:
    fill(store, {"17.2": 100.5})
    assert not store.append_block(block(run("17.2"), 100.5))
    with pytest.raises(ConflictingRecord, match="supersedes"):
        store.append_block(block(run("17.2"), 100.6))
    assert [one.measurements[0].value for one in store.blocks("s/17.2")] == [100.5]


def test_series_are_in_version_order_with_the_position_in_the_line(store: Store) -> None:
    fill(store, {"17.10": 3.0, "17.2": 1.0})
    store.pin_release(Release(dbms="postgres", version="17.4", line="17", digest="ab"))
    (series,) = store.series(line="17")
    assert [(point.version, point.position) for point in series.points] == [("17.2", 0), ("17.10", 2)]
    assert [one.version for one in store.releases("postgres")] == ["17.2", "17.4", "17.10"]


def test_majors_hold_the_newest_measured_release_of_each_line_as_of_a_release(store: Store) -> None:
    fill(store, {"16.1": 1.0, "16.3": 2.0}, "16")
    fill(store, {"17.1": 3.0, "17.2": 4.0})
    (majors,) = store.series(line="majors")
    assert [point.version for point in majors.points] == ["16.3", "17.2"]
    (then,) = store.series(line="majors", until="17.1")
    assert [point.version for point in then.points] == ["16.3", "17.1"]


def test_majors_give_a_line_one_place_whichever_of_its_releases_a_lane_has_there(store: Store) -> None:
    fill(store, {"16.3": 2.0}, "16")
    fill(store, {"17.1": 3.0})
    fill(store, {"18.1": 5.0}, "18")
    counted = run("17.2", lane="instructions")
    store.append_run(counted)
    store.append_block(block(counted, 4.0, measurements=(measurement("point-query", "insn/o", 4.0),)))
    by_metric = {one.key.metric: one for one in store.series(line="majors")}
    assert [(point.version, point.position) for point in by_metric["insn/o"].points] == [("17.2", 1)]
    assert [point.position for point in by_metric["qps"].points] == [0, 1, 2]


def test_another_builder_s_release_stands_for_a_line_that_has_no_other(store: Store) -> None:
    fill(store, {"15.2+debian": 1.0, "15.3+debian": 2.0}, "15")
    fill(store, {"17.1": 3.0, "17.2+debian": 4.0})
    (majors,) = store.series(line="majors")
    assert [point.version for point in majors.points] == ["15.3+debian", "17.1"]


def test_only_blocks_that_are_ok_and_not_superseded_count(store: Store) -> None:
    fill(store, {"17.1": 1.0})
    store.append_block(block(run("17.1"), 9.0, 2, status="noisy", reason="steal"))
    store.append_block(block(run("17.1"), 1.1, 3))
    store.supersede("block", "s/17.1/1", "the disk was full")
    (series,) = store.series()
    assert [one.value for one in series.points[0].values] == [1.1]
    assert store.measured("postgres", "default") == {"17.1": 1}
    assert len(store.blocks("s/17.1")) == 3


def test_a_metric_keeps_its_unit(store: Store) -> None:
    fill(store, {"17.1": 1.0})
    other = Measurement(test="point-query", metric="qps", value=1.0, unit="1/ms", better="higher")
    with pytest.raises(ConflictingRecord, match="another name"):
        store.append_block(block(run("17.1"), 1.0, 2, measurements=(other,)))
    assert len(store.blocks("s/17.1")) == 1


def test_children_need_their_parents(store: Store) -> None:
    with pytest.raises(UnknownSeries, match="session s"):
        store.append_run(run("17.1"))
    with pytest.raises(UnknownSeries, match="append it before its blocks"):
        store.append_block(block(run("17.1"), 1.0))


def test_the_first_pin_wins(store: Store) -> None:
    pinned = Release(dbms="postgres", version="17.1", line="17", build="maven", digest="ab")
    assert store.pin_release(pinned)
    assert not store.pin_release(pinned)
    with pytest.raises(ConflictingRecord, match="pinned to ab"):
        store.pin_release(pinned.model_copy(update={"digest": "cd"}))
    store.append_session(SESSION)
    with pytest.raises(ConflictingRecord, match="changed after it was pinned"):
        store.append_run(run("17.1").model_copy(update={"release": pinned.model_copy(update={"digest": "cd"})}))


def test_series_are_like_those_made_by_hand(store: Store) -> None:
    """They are put together without checks; they must be equal, printable, dumped and unchangeable all the same."""
    fill(store, {"17.2": 1.5, "17.10": 2.5})
    for one in store.series():
        again = Series.model_validate_json(one.model_dump_json())
        assert (again, repr(again), again.model_copy()) == (one, repr(one), one)
        point = one.points[0]
        held, made = point.values, tuple(point.values)
        assert isinstance(made[0], BlockValue)
        assert (held, made, hash(held), repr(held)) == (made, held, hash(made), repr(made))
        assert (held[0], held[-1], held[:1], len(held)) == (made[0], made[-1], made[:1], len(made))
        assert point.numbers == again.points[0].numbers == tuple(value.value for value in made)
        assert Point(**dict(point)) == point == pickle.loads(pickle.dumps(point))
        assert point.model_copy(update={"position": 7}).position == 7
        with pytest.raises(ValidationError):
            point.position = 7  # type: ignore[misc]


def test_series_are_the_same_however_many_are_read_at_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One query a series where series are long, one for many where they are short; rows one by one or all at once."""
    for version, value in {"17.2": 1.5, "17.10": 2.5, "18.1": 3.5}.items():
        fill(store, {version: value}, version.partition(".")[0])
        measured = run(version, version.partition(".")[0])
        for number in (2, 3):
            tests = tuple(Measurement(test=test, metric="qps", value=value + number) for test in "abc"[: number - 1])
            store.append_block(block(measured, value, number, measurements=tests))
    whole = list(store.series())
    assert {one.key.test for one in whole} >= {"a", "b"}
    for name, value in (("LONG_SERIES", 1), ("LONG_SERIES", 10**9), ("ROWS", 1), ("BATCH_VALUES", 1)):
        monkeypatch.setattr(assemble, name, value)
        assert list(store.series()) == whole


def test_the_order_of_arrival_and_the_database_do_not_show(store: Store) -> None:
    """Series are the same whoever came first, also with names that databases sort differently."""
    records: list[tuple[Session, Run, Block]] = []
    for name, minute in (("b", 3), ("B", 3), ("ä", 1), ("_", 2)):
        session = SESSION.model_copy(
            update={"id": name, "started": DAY + timedelta(minutes=minute), "control": "17.2", "host": name}
        )
        for version, line in (("17.2", "17"), ("17.10", "17"), ("16.9", "16")):
            of = run(version, line, name)
            for number in (1, 2):
                values = tuple(
                    Measurement(test=test, metric="qps", value=float(len(records)))
                    for test in ("B", "a", "Ä", "_", "b")
                )
                records.append((session, of, block(of, 0, number, measurements=values)))
    with Store.open("sqlite://") as other:
        for target, order in ((store, records), (other, records[::-1])):
            for one in order:
                target.append_session(one[0])
                target.append_run(one[1])
                target.append_block(one[2])
        found = list(store.series())
        assert found == list(other.series())
        assert store.lines() == other.lines()
    assert [one.key.test for one in found[:5]] == ["B", "_", "a", "b", "Ä"]
    hosts = [value.host for value in found[-1].points[-1].values]
    assert hosts == ["ä", "ä", "_", "_", "B", "B", "b", "b"]


def test_the_control_of_another_line_is_the_control_of_the_session(store: Store) -> None:
    store.append_session(SESSION.model_copy(update={"control": "16.1"}))
    for version, line, value in (("16.1", "16", 50.0), ("17.1", "17", 100.0), ("17.2", "17", 90.0)):
        store.append_run(run(version, line))
        store.append_block(block(run(version, line), value))
    (series,) = store.series(line="17")
    assert series.control == {"s": (50.0,)}
    assert [point.version for point in series.points] == ["17.1", "17.2"]
    (then,) = store.series(line="17", until="17.1")
    assert (then.control, [point.version for point in then.points]) == ({"s": (50.0,)}, ["17.1"])
    (own,) = store.series(line="16")
    assert own.control == {"s": (50.0,)}


def test_a_block_without_calls_has_the_digest_it_had_before_there_were_any() -> None:
    """Or `history verify` would call every block of before damaged, and no session that was cut off could go on."""
    costs = {"scan": (FunctionCost(function="exec", object="postgres", insn_per_op=7.5),)}
    day = datetime(2026, 1, 5, tzinfo=UTC)
    old = Block(id="s/17.1/1", run_id="s/17.1", number=1, started=day, ended=day, functions=costs)
    assert digest(old) == "fef19acd81eddbd7ae23b6089dabbee90ac2580553f0eaf085a492964e47e872"
    assert "calls" not in line_of_record(old) and "inclusive" not in line_of_record(old)


def test_samples_functions_and_plans_are_of_the_newest_block_that_has_them(store: Store) -> None:
    fill(store, {"17.1": 1.0})
    costs = {"point-query": (FunctionCost(function="exec", insn_per_op=7.5),)}
    calls = {"point-query": (CallCost(caller="main", callee="exec", calls_per_op=1.0, insn_per_op=9.5),)}
    plans = {"point-query": (StatementPlan(statement="SELECT", digest="ab"),)}
    samples = {"point-query": {"qps": (1.5, 2.5)}}
    later = {"started": DAY + timedelta(hours=1), "ended": DAY + timedelta(hours=2)}
    store.append_block(block(run("17.1"), 1.0, 2, functions=costs, calls=calls, plans=plans, samples=samples))
    store.append_block(block(run("17.1"), 1.0, 3, **later))
    store.append_block(block(run("17.1"), 1.0, 4, status="noisy", functions={"point-query": ()}, **later))
    assert store.functions("postgres", "17.1", "point-query") == costs["point-query"]
    assert store.calls("postgres", "17.1", "point-query", config="default") == calls["point-query"]
    assert store.calls("postgres", "17.1", "scan") == ()
    assert store.blocks("s/17.1")[1].calls == calls
    assert store.plans("postgres", "17.1", "point-query", server="small") == plans["point-query"]
    assert store.samples("s/17.1/2") == samples
    assert store.functions("postgres", "17.1", "point-query", server="medium") == ()
    assert store.blocks("s/17.1", details=False)[1].functions == {}


def test_blocks_that_say_how_long_another_one_takes(store: Store) -> None:
    """The newest of a host, whatever came of them unless they failed; those of before, without phases, say nothing."""
    phases = {"block": {"load": 3.5, "stop": 0.25}, "tests": {"point-query": 60.5}}
    fill(store, {"17.1": 1.0})
    for number, status in enumerate(("ok", "noisy", "failed", "ok"), start=2):
        at = {"started": DAY + timedelta(hours=number), "ended": DAY + timedelta(hours=number, minutes=5)}
        store.append_block(block(run("17.1"), 1.0, number, status=status, phases=phases, **at))
    timed = store.timed_blocks(SESSION.host, 9, dbms="postgres", server="small")
    assert [(each.number, each.status) for each in timed] == [(5, "ok"), (3, "noisy"), (2, "ok")]
    assert all(each.phases == phases and not each.measurements for each in timed)
    assert [each.number for each in store.timed_blocks(None, 1)] == [5]
    assert store.blocks("s/17.1")[1].phases == phases
    for nothing in (
        store.timed_blocks("another", 9),
        store.timed_blocks(None, 9, dbms="mysql"),
        store.timed_blocks(None, 9, profile="full"),
    ):
        assert nothing == []


def test_the_settings_of_a_run_are_those_of_its_first_block_that_has_them(store: Store) -> None:
    settings = {
        "jit": EffectiveSetting(value="off", default="on", source="file"),
        "work_mem": EffectiveSetting(value="4096kB", default="4096kB"),
    }
    other = settings | {"jit": EffectiveSetting(value="on", default="on")}
    fill(store, {"17.1": 1.0})
    assert store.settings("s/17.1") == {}, "as in a history of before"
    for number, kept in ((2, settings), (3, {}), (4, other)):
        at = {"started": DAY + timedelta(hours=number), "ended": DAY + timedelta(hours=number, minutes=5)}
        store.append_block(block(run("17.1"), 1.0, number, settings=kept, **at))
    assert store.settings("s/17.1") == settings
    assert [each.settings for each in store.blocks("s/17.1")] == [{}, settings, {}, other]
    assert store.blocks("s/17.1", details=False)[1].settings == {}
    assert store.settings("nobody") == {}


def test_findings_are_those_of_the_newest_detection(store: Store) -> None:
    assert store.findings() == []
    assert store.append_detection([FINDING], "one")
    assert not store.append_detection([FINDING], "one"), "the same again"
    assert store.findings() == [FINDING]
    assert store.findings(dbms="mysql") == store.findings(kind="improvement") == []
    assert store.append_detection([], "one")
    assert store.findings() == []
    assert store.append_detection([FINDING], "one"), "it came back"
    with pytest.raises(ConflictingRecord, match="twice"):
        store.append_detection([FINDING, FINDING], "one")


def test_the_detection_written_last_is_the_newest_whatever_the_clocks_say(store: Store) -> None:
    ahead = outcomes.Detection(0, datetime.now(UTC) + timedelta(days=1), "settings", "digest")
    store.transact(lambda connection, known: outcomes.take_over(connection, known, ahead, []))
    assert store.append_detection([FINDING], "one")
    assert store.findings() == [FINDING]
    assert not store.append_detection([FINDING], "one")


def test_two_publishers_of_the_same_findings_store_one_detection(store: Store) -> None:
    def publish() -> bool:
        with Store.open(store.url) as other:
            return other.append_detection([FINDING], "one")

    with ThreadPoolExecutor() as pool:
        with writing(store.engine) as connection:
            assert outcomes.append_detection(connection, RowKeys(), [FINDING], "one")
            second = pool.submit(publish)
            wait([second], timeout=0.5)  # it waits for this transaction; without that it would be done now
        assert not second.result()
    with reading(store.engine) as connection:
        assert len(outcomes.detections(connection)) == 1


def test_nothing_stands_in_its_own_place(store: Store) -> None:
    fill(store, {"17.2": 1.5})
    with pytest.raises(InvalidRecord, match="own place"):
        store.supersede("block", "s/17.2/1", "twice", "s/17.2/1")


def test_events_and_links_are_idempotent_and_in_order(store: Store) -> None:
    first = FindingEvent(key="k", event="filed", at=DAY + timedelta(hours=1), detail={"number": 7})
    earlier = FindingEvent(key="k", event="detected", at=DAY)
    other = FindingEvent(key="l", event="detected", at=DAY)
    assert [store.append_event(one) for one in (first, earlier, other, first)] == [True, True, True, False]
    assert store.events("k") == [earlier, first]
    assert len(store.events()) == 3
    link = IssueLink(key="k", tracker="github:o/r", number=7, url="https://example.org/7")
    assert [store.append_link(link), store.append_link(link)] == [True, False]
    assert (store.links("k"), store.links("l")) == ([link], [])


def test_a_superseded_session_or_run_takes_its_blocks_along(store: Store) -> None:
    fill(store, {"17.1": 1.0, "17.2": 2.0})
    assert store.supersede("run", "s/17.1", "wrong options", "s/17.2")
    assert not store.supersede("run", "s/17.1", "wrong options", "s/17.2")
    assert [point.version for one in store.series() for point in one.points] == ["17.2"]
    store.supersede("session", "s", "wrong machine")
    assert list(store.series()) == store.lines() == []
    assert [one.reason for one in store.supersessions()] == ["wrong options", "wrong machine"]
    with pytest.raises(UnknownSeries, match="cannot be superseded"):
        store.supersede("finding", "k", "no")
    with pytest.raises(InvalidRecord, match="reason"):
        store.supersede("session", "s", " ")


def test_what_another_method_measured_does_not_count(store: Store) -> None:
    def measured(name: str, version: str, value: float, facts: dict[str, str], control: str = "17.1") -> None:
        fields = {"id": name, "fingerprint": Fingerprint(facts=facts), "control": control}
        session = SESSION.model_copy(update=fields)
        row = run(version).model_copy(update={"id": f"{name}/{version}", "session_id": name})
        store.append_session(session)
        store.append_run(row)
        store.append_block(block(row, value))

    measured("published", "17.1", 1.0, {"workload": "sysbench"}, control="")
    measured("before", "17.2", 2.0, {"workload": "aa"})
    measured("now", "17.3", 3.0, {"workload": "bb", "method": METHOD})
    for name in ("99", "two", ""):
        measured(f"method {name}", f"17.{10 + len(name)}", 4.0, {"workload": "bb", "method": name})
    assert store.measured("postgres") == {"17.1": 1, "17.3": 1}, "figures of others have methods of their own"
    assert [point.version for point in next(iter(store.series())).points] == ["17.1", "17.3"]
    assert len(store.blocks("before/17.2")) == 1, "nothing is lost"
