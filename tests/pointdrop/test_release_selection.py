"""What a night measures, from plan, known releases and history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.errors import BadSettings
from history.model import Release
from history.versions import line_of, version_key
from pointdrop.jobs.release_selection import Work, pick, releases_by_line, select_named, spread
from runners.settings.plans import Backfill, Measure

KNOWN = [
    "10.0", "10.23", "15.17", "16.0", "16.15", "17beta1", "17.0", "17.2", "17.4", "17.5", "17.6", "17.7", "17.11",
    "18.0", "18.1", "18.2", "18.6", "19beta2",
]  # fmt: skip


def releases(versions: list[str]) -> list[Release]:
    return [Release(dbms="postgres", version=v, line=line_of("postgres", v)) for v in versions]


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
