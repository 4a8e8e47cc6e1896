"""What a night measures, from plan, known releases and history."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.errors import BadSettings
from history.model import Release
from history.settings import read_model
from history.versions import line_of, version_key
from pointdrop.jobs.release_selection import Work, pick, releases_by_line, select_named, spread
from runners.releases.lines import LineCalendar
from runners.releases.manifest import Manifest, manifest_path
from runners.settings.plans import Backfill, Measure, load_plan

KNOWN = [
    "10.0", "10.23", "15.17", "16.0", "16.15", "17beta1", "17.0", "17.2", "17.4", "17.5", "17.6", "17.7", "17.11",
    "18.0", "18.1", "18.2", "18.6", "19beta2",
]  # fmt: skip


#: What vendors offered in the autumn of 2026, shortened inside the lines.
REALISTIC = {
    "postgres": [*KNOWN, *("14.0", "14.23", "15.0", "19.0")],
    "mysql": [
        "5.7.44", *(f"8.0.{n}" for n in range(11, 47) if n != 29), "8.1.0", "8.2.0", "8.3.0",
        *(f"8.4.{n}" for n in range(10)), "9.0.0", "9.0.1", *(f"9.{n}.0" for n in range(1, 7)),
        *(f"9.7.{n}" for n in range(5)), "26.7.0",
    ],
    "mariadb": [
        "10.6.7", "10.6.25", "10.11.2", "10.11.18", "11.4.2", "11.4.12", "11.8.2", "11.8.8", "12.0.2", "12.1.2",
        "12.2.2", "12.3.2", "12.3.4",
    ],
}  # fmt: skip
CONFIGS = Path(__file__).parents[2] / "configs"


def calendar(dbms: str, today: str) -> LineCalendar:
    """What the committed catalogue says of the lines."""
    return LineCalendar(read_model(manifest_path(CONFIGS, dbms), Manifest).line, date.fromisoformat(today))


def releases(versions: list[str], dbms: str = "postgres") -> list[Release]:
    return [Release(dbms=dbms, version=v, line=line_of(dbms, v)) for v in versions]


def measure(**values: object) -> Measure:
    return Measure.model_validate({"dbms": "postgres", "profile": "quick", **values})


def versions(work: Work) -> list[str]:
    return [release.version for release in work.candidates]


def test_the_newest_release_of_the_newest_lines_with_each_lines_first_as_control() -> None:
    work = pick(measure(newest_lines=2, newest_releases=1), "default", releases(KNOWN), {})
    assert [(w.line, versions(w), w.control.version) for w in work] == [
        ("17", ["17.11"], "17.0"),
        ("18", ["18.6"], "18.0"),
    ]
    assert [r.version for r in work[0].releases] == ["17.0", "17.11"]


def test_a_fresh_history_is_filled_in_one_session_and_a_second_night_finds_nothing() -> None:
    wanted = measure(
        lane="instructions", newest_lines=2, newest_releases=1, blocks=1,
        backfill=Backfill(majors_from="10", releases_per_line=5),
    )  # fmt: skip
    (work,) = pick(wanted, "default", releases(KNOWN), {})
    assert versions(work) == [
        "10.23", "15.17", "16.15", "17.0", "17.4", "17.5", "17.6", "17.11", "18.0", "18.1", "18.2", "18.6",
    ]  # fmt: skip
    measured = dict.fromkeys(versions(work), 1)
    assert pick(wanted, "default", releases(KNOWN), measured) == []
    (tomorrow,) = pick(wanted, "default", releases([*KNOWN, "18.7"]), measured)
    assert versions(tomorrow) == ["18.7"]


@pytest.mark.parametrize(
    ("dbms", "today", "chosen"),
    [
        # On the day on which 8.0 is still supported, and on one when it is not but its last release was never measured.
        ("mysql", "2026-04-30", {"8.0": "8.0.46", "8.4": "8.4.9", "9.7": "9.7.4", "majors": "26.7.0"}),
        ("mysql", "2026-11-22", {"8.0": "8.0.46", "8.4": "8.4.9", "9.7": "9.7.4", "majors": "26.7.0"}),
        ("mariadb", "2026-11-22", {
            "10.6": "10.6.25", "10.11": "10.11.18", "11.4": "11.4.12", "11.8": "11.8.8", "12.3": "12.3.4",
        }),
        ("postgres", "2026-11-12", {
            "14": "14.23", "15": "15.17", "16": "16.15", "17": "17.11", "18": "18.6", "19": "19.0",
        }),
        ("postgres", "2026-11-13", {"15": "15.17", "16": "16.15", "17": "17.11", "18": "18.6", "19": "19.0"}),
    ],
)  # fmt: skip
def test_the_nightly_plan_takes_the_lines_that_get_point_releases(
    dbms: str, today: str, chosen: dict[str, str]
) -> None:
    (wanted, *_) = (m for m in load_plan("nightly", CONFIGS).measure if m.dbms == dbms)
    work = pick(wanted, "default", releases(REALISTIC[dbms], dbms), {}, calendar(dbms, today))
    assert {w.line: ",".join(versions(w)) for w in work} == chosen


def test_a_line_past_its_end_drops_out_once_its_last_release_is_measured() -> None:
    wanted = Measure(dbms="mysql", profile="quick", newest_lines=3, newest_releases=1, supported_lines=True)
    known, tonight = releases(REALISTIC["mysql"], "mysql"), calendar("mysql", "2026-11-22")
    lines = [w.line for w in pick(wanted, "default", known, {"8.0.46": 2}, tonight)]
    assert lines == ["8.4", "9.7", "majors"]
    in_time = [w.line for w in pick(wanted, "default", known, {"9.7.4": 2, "26.7.0": 2, "8.4.9": 2}, tonight)]
    assert in_time == ["8.0"]


def test_the_newest_of_the_line_before_is_measured_in_the_session_of_a_lines_newest() -> None:
    """What the line of majors compares stands side by side; a session without the newest of its line has no use for it,
    nor has counting, which compares sessions as they are."""
    wanted = measure(newest_lines=2, newest_releases=1, line_before=True)
    work = pick(wanted, "default", releases(KNOWN), {})
    assert [([r.version for r in w.beside], versions(w), w.control.version) for w in work] == [
        (["16.15"], ["17.11"], "17.0"),
        (["17.11"], ["18.6"], "18.0"),
    ]
    assert [r.version for r in work[1].releases] == ["17.11", "18.0", "18.6"]
    named = select_named(wanted, "default", releases(KNOWN), ["18.6", "17.5"])
    assert [([r.version for r in w.beside], versions(w)) for w in named] == [([], ["17.5"]), (["17.11"], ["18.6"])]
    for other in (measure(newest_lines=2, newest_releases=1), wanted.model_copy(update={"lane": "instructions"})):
        assert not any(w.beside for w in pick(other, "default", releases(KNOWN), {}))
    assert pick(wanted, "default", releases(KNOWN), {"17.11": 2, "18.6": 2}) == [], "it makes no session of its own"
    lines = measure(lines=("10", "18"), newest_releases=1, line_before=True)
    assert [[r.version for r in w.beside] for w in pick(lines, "default", releases(KNOWN), {})] == [[], ["10.23"]]


@pytest.mark.parametrize("name", ["local", "nightly"])
def test_plans_that_time_every_night_measure_the_line_before(name: str) -> None:
    timed = [m for m in load_plan(name, CONFIGS).measure if m.lane == "time" and m.benchmark == "sysbench"]
    assert timed and all(m.line_before for m in timed)


def test_innovations_stand_beside_the_line_with_point_releases_before_them() -> None:
    wanted = Measure(
        dbms="mysql", profile="quick", newest_lines=1, newest_releases=1, supported_lines=True, line_before=True
    )
    known, tonight = releases(REALISTIC["mysql"], "mysql"), calendar("mysql", "2026-11-22")
    work = pick(wanted, "default", known, {"8.0.46": 2, "8.4.9": 2, "9.7.4": 2}, tonight)
    assert [([r.version for r in w.beside], versions(w)) for w in work] == [(["9.7.4"], ["26.7.0"])]


def test_an_innovation_is_measured_beside_the_line_before_it_and_ends_with_the_next() -> None:
    wanted = Measure(dbms="mysql", profile="quick", newest_lines=1, newest_releases=1, supported_lines=True)
    tonight = calendar("mysql", "2026-11-22")

    def innovations(*more: str) -> list[tuple[list[str], str]]:
        known = releases([*REALISTIC["mysql"], *more], "mysql")
        work = pick(wanted, "default", known, {}, tonight)
        return [(versions(w), w.control.version) for w in work if w.line == "majors"]

    assert innovations() == [(["26.7.0"], "9.7.0")]
    assert innovations("26.7.1") == [(["26.7.1"], "9.7.0")]
    assert innovations("26.7.1", "26.10.0") == [(["26.10.0"], "9.7.0")], "October comes after July"
    (named,) = select_named(wanted, "default", releases(REALISTIC["mysql"], "mysql"), ["26.7.0"], tonight)
    assert (named.line, named.control.version) == ("majors", "9.7.0"), "as the job of the workflow is told"
    counted = wanted.model_copy(update={"lane": "instructions"})
    (together,) = pick(counted, "default", releases(REALISTIC["mysql"], "mysql"), {}, tonight)
    assert (versions(together), together.control.version) == (["8.4.9", "9.7.4", "26.7.0"], "9.7.0")


@pytest.mark.parametrize(("newest_lines", "line"), [(1, "9.7"), (2, "8.4"), (3, "8.0"), (4, "5.7")])
def test_the_newest_lines_are_those_with_point_releases(newest_lines: int, line: str) -> None:
    wanted = Measure(dbms="mysql", profile="quick", newest_lines=newest_lines, newest_releases=1)
    work = pick(wanted, "default", releases(REALISTIC["mysql"], "mysql"), {}, calendar("mysql", "2026-11-22"))
    assert work[0].line == line and len(work) == newest_lines


def test_every_line_means_innovations_too_each_beside_the_line_before_it() -> None:
    """As the studies of old to new want them."""
    wanted = Measure(dbms="mysql", profile="quick", newest_releases=1)
    work = pick(wanted, "default", releases(REALISTIC["mysql"], "mysql"), {}, calendar("mysql", "2026-11-22"))
    assert [(w.line, versions(w), w.control.version) for w in work] == [
        ("5.7", ["5.7.44"], "5.7.44"),
        ("8.0", ["8.0.46"], "8.0.11"),
        ("majors", ["8.1.0", "8.2.0", "8.3.0"], "8.0.11"),
        ("8.4", ["8.4.9"], "8.4.0"),
        ("majors", ["9.0.1", "9.1.0", "9.2.0", "9.3.0", "9.4.0", "9.5.0", "9.6.0"], "8.4.0"),
        ("9.7", ["9.7.4"], "9.7.0"),
        ("majors", ["26.7.0"], "9.7.0"),
    ]


def test_the_default_plan_chooses_what_it_chose_before_there_were_ends_of_life() -> None:
    """Its night has a quarter of an hour."""
    known = releases(KNOWN)
    for measure_ in load_plan("local", CONFIGS).measure:
        told = pick(measure_, "default", known, {}, calendar("postgres", "2026-11-22"))
        assert told == pick(measure_, "default", known, {}) and told


def test_a_release_with_too_few_blocks_is_still_wanted() -> None:
    wanted = measure(newest_lines=1, newest_releases=1, blocks=2)
    assert versions(pick(wanted, "default", releases(KNOWN), {"18.6": 1})[0]) == ["18.6"]
    assert pick(wanted, "default", releases(KNOWN), {"18.6": 2}) == []


@pytest.mark.parametrize("values", [{"lines": ("77",)}, {"versions": ("1.2",)}, {"newest_lines": 1, "control": "3.1"}])
def test_names_that_are_not_known_say_what_to_run(values: dict[str, object]) -> None:
    with pytest.raises(BadSettings, match="pointdrop releases"):
        pick(measure(**values), "default", releases(KNOWN), {})


def test_prereleases_and_foreign_lines_are_never_picked_by_themselves() -> None:
    assert list(releases_by_line(releases(KNOWN))) == ["10", "15", "16", "17", "18"]
    assert pick(measure(newest_lines=3), "default", [], {}) == []


@given(
    known=st.lists(st.sampled_from(KNOWN), unique=True, min_size=1),
    measured=st.dictionaries(st.sampled_from(KNOWN), st.integers(0, 3)),
    newest_lines=st.integers(0, 4),
    newest_releases=st.integers(0, 3),
    per_line=st.integers(0, 6),
    lane=st.sampled_from(["time", "instructions"]),
)
def test_doing_the_work_leaves_no_work(
    known: list[str], measured: dict[str, int], newest_lines: int, newest_releases: int, per_line: int, lane: str
) -> None:
    wanted = measure(
        lane=lane, newest_lines=newest_lines, newest_releases=newest_releases, blocks=2,
        backfill=Backfill(majors_from="10", releases_per_line=per_line),
    )  # fmt: skip
    work = pick(wanted, "default", releases(known), measured)
    done = dict(measured)
    for item in work:
        assert item.candidates, "a session without candidates would measure the control for nothing"
        for release in item.candidates:
            assert measured.get(release.version, 0) < 2
            done[release.version] = 2
    assert pick(wanted, "default", releases(known), done) == []


@given(
    known=st.lists(st.sampled_from(REALISTIC["mysql"]), unique=True, min_size=1),
    today=st.dates(date(2023, 1, 1), date(2036, 1, 1)),
    newest_lines=st.integers(0, 4),
    lane=st.sampled_from(["time", "instructions"]),
)
def test_a_night_of_mysql_measures_each_once_beside_a_control_that_lasts_and_the_next_finds_nothing(
    known: list[str], today: date, newest_lines: int, lane: str
) -> None:
    wanted = Measure.model_validate({
        "dbms": "mysql", "profile": "quick", "lane": lane, "newest_lines": newest_lines, "supported_lines": True,
        "newest_releases": 1,
    })  # fmt: skip
    there, tonight = releases(known, "mysql"), calendar("mysql", today.isoformat())
    work = pick(wanted, "default", there, {}, tonight)
    chosen = [version for item in work for version in versions(item)]
    assert len(chosen) == len(set(chosen)) and pick(wanted, "default", there, dict.fromkeys(chosen, 2), tonight) == []
    for item in work:
        line = item.candidates[0].line
        before = [r.line for r in there if version_key("mysql", r.line) < version_key("mysql", line)]
        if item.line == "majors" and any(map(tonight.has_point_releases, before)):
            assert tonight.has_point_releases(item.control.line)
        assert lane == "instructions" or item.line in ("majors", line)


@given(st.lists(st.integers(), unique=True), st.integers(0, 12))
def test_spread_keeps_order_and_both_ends(items: list[int], count: int) -> None:
    known = releases([f"17.{n}" for n in range(len(items))])
    chosen = spread(known, count)
    assert len(chosen) == min(count, len(known))
    assert chosen == sorted(chosen, key=lambda r: version_key("postgres", r.version))
    assert len({r.version for r in chosen}) == len(chosen)
    if count > 1 and known:
        assert {known[0].version, known[-1].version} <= {r.version for r in chosen}


def test_a_build_of_another_builder_is_measured_by_name_and_in_no_night() -> None:
    """Also where it is the newest of all: the line it would stand in was built by somebody else."""
    both = releases([*KNOWN, "17.2+debian", "18.7+debian", "20.0+debian"])
    every = measure(newest_lines=3, newest_releases=3, backfill=Backfill(majors_from="10", releases_per_line=9))
    for lane in ("time", "instructions"):
        night = every.model_copy(update={"lane": lane})
        assert pick(night, "default", both, {}) == pick(night, "default", releases(KNOWN), {})
    (work,) = select_named(every, "default", releases([*KNOWN, "18.6+debian", "18.7+debian"]), ["18.7+debian"])
    assert (versions(work), work.control.version) == (["18.7+debian"], "18.6+debian"), "a control of the same builder"
    (work,) = pick(measure(versions=["17.2", "17.2+debian"]), "default", both, {})
    assert versions(work) == ["17.2", "17.2+debian"]
