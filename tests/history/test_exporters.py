"""Exports: what other tools get, and that an import of it gives the same series."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from history.datasets import load
from history.errors import InvalidRecord, UnknownSeries
from history.exporters import FORMATS, write
from history.exporters.junit import document
from history.frames import BlockRow
from history.importers import import_any
from history.importers.figures import About
from history.importing import import_file
from history.model import MAJORS, Finding, Measurement, Move, Series, SeriesKey, fails_gates
from history.store import Store
from tests.builders import SESSION, block, run

#: Of the dataset: one line, server, config and benchmark, 40 series with 21 releases.
PLACE = {"dbms": "mysql", "line": "8.0", "server": "ser4", "config": "cy10a_bee", "benchmark": "insert"}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The dataset in a SQLite file."""
    store = Store.open(f"sqlite:///{tmp_path_factory.mktemp('published')}/history.db")
    load(store, "smalldatum")
    return store


Content = dict[tuple[str, str], list[float]]


def content(store: Store, **wanted: str) -> Content:
    """Values by series and version, without the pseudo-line."""
    return {
        (one.key.id, point.version): sorted(block.value for block in point.values)
        for one in store.series(**wanted)
        if one.key.line != MAJORS
        for point in one.points
    }


def there_and_back(store: Store, folder: Path, format_name: str, name: str, wanted: dict[str, str]) -> Content:
    out = folder / name
    write(store, format_name, out, dict(wanted))
    with Store.open(f"sqlite:///{folder}/back-{format_name}.db") as other:
        better = {one.key.metric: one.better for one in store.series(**wanted)}
        better["indexed_rows/s"] = "higher"  # benchstat's way to write it
        report = import_any(other, out, About(dbms="", better=better))
        assert report.stored, report
        assert all(better.get(one.key.metric) == one.better for one in other.series() if one.key.line != MAJORS)
        return content(other)


def test_otava_there_and_back(published: Store, tmp_path: Path) -> None:
    assert there_and_back(published, tmp_path, "otava", "out.csv", PLACE) == content(published, **PLACE)


def test_benchstat_there_and_back(published: Store, tmp_path: Path) -> None:
    found = there_and_back(published, tmp_path, "benchstat", "out.txt", PLACE)
    named = {(name.replace("_rows/s", " rows/s"), version): value for (name, version), value in found.items()}
    assert named == content(published, **PLACE)


def test_jsonl_there_and_back_is_everything(published: Store, tmp_path: Path) -> None:
    assert there_and_back(published, tmp_path, "jsonl", "out.jsonl.gz", {}) == content(published)
    with Store.open(f"sqlite:///{tmp_path}/back-jsonl.db") as other:
        assert other.sessions() == published.sessions()
        assert sorted(other.runs(), key=lambda one: one.id) == sorted(published.runs(), key=lambda one: one.id)
        assert list(other.series()) == list(published.series())


def newest(store: Store, **wanted: str) -> Content:
    """Values at the newest release of each series."""
    return {
        (one.key.id, one.points[-1].version): sorted(block.value for block in one.points[-1].values)
        for one in store.series(**wanted)
        if one.key.line != MAJORS
    }


def test_bencher_there_and_back(published: Store, tmp_path: Path) -> None:
    assert there_and_back(published, tmp_path, "bmf", "out.json", PLACE) == newest(published, **PLACE)


def test_github_action_benchmark_there_and_back(published: Store, tmp_path: Path) -> None:
    found: Content = {}
    for format_name in ("customBiggerIsBetter", "customSmallerIsBetter"):
        (tmp_path / format_name).mkdir()
        found |= there_and_back(published, tmp_path / format_name, format_name, "out.json", PLACE)
    assert found == newest(published, **PLACE)
    smaller = json.loads((tmp_path / "customSmallerIsBetter" / "out.json").read_text())
    assert not any(one["unit"] in ("qps", "ips") for one in smaller)


def test_an_export_while_others_append(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run comes with its session, whenever they arrived."""
    store.append_session(SESSION)
    store.append_run(run("17.1"))
    with Store.open(store.url) as runner:

        def growing(read: Callable[..., Any]) -> Callable[..., Any]:
            def grow(**wanted: Any) -> Any:
                found = read(**wanted)
                runner.append_session(SESSION.model_copy(update={"id": "late"}))
                runner.append_run(run("17.2", session="late"))
                return found

            return grow

        for name in ("runs", "sessions"):
            monkeypatch.setattr(store, name, growing(getattr(store, name)))
        write(store, "jsonl", tmp_path / "out.jsonl", {})
    with Store.open(f"sqlite:///{tmp_path}/again.db") as again:
        assert import_file(again, tmp_path / "out.jsonl").new == {"session": 1, "run": 1}


def test_one_release_can_be_chosen(published: Store, tmp_path: Path) -> None:
    write(published, "bmf", tmp_path / "out.json", dict(PLACE), "8.0.30")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["mysql/8.0.30/ser4/cy10a_bee/insert/l.i1"]["ips"] == {"value": 16949.0}


def fill(store: Store) -> None:
    """One release with replicates, and a name that is not harmless."""
    store.append_session(SESSION)
    store.append_run(run("17.1"))
    for number, value in enumerate((100.0, 0.1, 400.0), 1):
        odd = Measurement(test='=cmd("\\")\n|x', metric="cpu/o", value=value)
        plain = Measurement(test="point-query", metric="qps", value=value, better="higher")
        store.append_block(block(run("17.1"), 0, number, measurements=(odd, plain)))


def text_of(store: Store, folder: Path, format_name: str, **wanted: str) -> str:
    write(store, format_name, folder / "out", dict(wanted))
    return (folder / "out").read_text()


def test_csv_has_every_value_exactly_and_no_formula(store: Store, tmp_path: Path) -> None:
    fill(store)
    found = list(csv.DictReader(StringIO(text_of(store, tmp_path, "csv"), newline="")))
    assert list(found[0]) == list(BlockRow._fields)
    assert [float(row["value"]) for row in found if row["metric"] == "qps"] == [100.0, 0.1, 400.0]
    assert all(not cell.startswith("=") for row in found for cell in row.values())


def test_parquet_has_every_value_exactly(published: Store, tmp_path: Path) -> None:
    from pyarrow import parquet

    write(published, "parquet", tmp_path / "out.parquet", dict(PLACE))
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    found: Content = {}
    for row in table:
        name = "|".join(row[part] for part in SeriesKey.model_fields)
        found.setdefault((name, row["version"]), []).append(row["value"])
    assert found == content(published, **PLACE)
    assert not list(tmp_path.glob("*.part"))


def test_parquet_in_many_row_groups_loses_no_row(
    published: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    monkeypatch.setattr("history.frames.ROWS", 7)
    write(published, "parquet", tmp_path / "out.parquet", dict(PLACE))
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == len(content(published, **PLACE))


def test_the_level_of_replicates_is_their_median(store: Store, tmp_path: Path) -> None:
    fill(store)
    (value,) = json.loads(text_of(store, tmp_path, "bmf", metric="qps")).values()
    assert value["qps"]["value"] == 100.0, "of 100, 0.1 and 400"
    assert (value["qps"]["lower_value"], value["qps"]["upper_value"]) == (0.1, 400.0)


def test_openmetrics_is_escaped_and_ends(store: Store, tmp_path: Path) -> None:
    fill(store)
    lines = text_of(store, tmp_path, "openmetrics").splitlines()
    assert lines[0] == "# TYPE pointdrop_level gauge"
    assert lines[-1] == "# EOF"
    sample = re.compile(r'^pointdrop_level\{(?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+\} [0-9.e+-]+$')
    assert len(lines) == 5
    assert all(sample.match(line) for line in lines[2:-1]), lines


def finding(key: SeriesKey, **changed: object) -> Finding:
    level = {"before": 100.0, "after": 90.0, "change_pct": -10.0, "low_pct": -11.0, "high_pct": -9.0}
    quality = {"direction": "regression", "probability": 0.99, "noise_pct": 1.0, "mde_pct": 2.0}
    move = Move.model_validate({"key": key} | level | quality)
    known = {"key": "mysql/8.0/8.0.30/regression", "kind": "regression", "tier": "confirmed", "dbms": "mysql"}
    known |= {"line": "8.0", "previous": "8.0.28", "release": "8.0.30"}
    return Finding.model_validate({**known, "moves": (move,), "evidence": ("1 < 2 & 3 blocks \x07agree",), **changed})


def test_junit_fails_the_series_that_regressed(store: Store, tmp_path: Path) -> None:
    fill(store)
    key = next(store.series(metric="qps")).key
    store.append_detection([finding(key)], "s")
    root = ElementTree.fromstring(text_of(store, tmp_path, "junit"))
    (suite,) = root
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")
    failure = root.find(".//testcase[@name='point-query qps']/failure")
    assert failure is not None
    assert failure.attrib["message"] == "8.0.28 -> 8.0.30: -10.0 %"
    assert failure.text == "1 < 2 & 3 blocks agree"
    (sure,) = finding(key).moves
    unlikely = sure.model_copy(update={"probability": 0.4})
    seen_again = unlikely.model_copy(update={"tier": "confirmed"})
    for tier, move, failures in (
        ("unconfirmed", sure, "0"),
        ("provisional", sure, "1"),
        ("provisional", unlikely, "0"),
        ("confirmed", seen_again, "1"),
    ):
        told = finding(key, tier=tier, moves=(move,))
        store.append_detection([told], "s")
        assert ElementTree.fromstring(text_of(store, tmp_path, "junit"))[0].attrib["failures"] == failures
        assert fails_gates(told) == (failures == "1")


def test_junit_of_names_that_xml_forbids_is_xml() -> None:
    key = SeriesKey(
        dbms="a\x01b", line="17", server="s\ufffe", config="c", benchmark="sysbench", test="t\x07", metric="qps"
    )
    root = ElementTree.fromstring(document([Series(key=key, unit="1/s", better="higher", points=())], []))
    assert root[0].attrib["name"] == "ab|17|s|c|sysbench" and root[0][0].attrib["name"] == "t qps"


def test_otava_takes_one_line_a_file(published: Store, tmp_path: Path) -> None:
    with pytest.raises(UnknownSeries, match="choose"):
        write(published, "otava", tmp_path / "out.csv", {})
    assert not (tmp_path / "out.csv").exists()


def test_a_format_that_is_none(published: Store, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="jsonl, csv"):
        write(published, "excel", None, {})
    with pytest.raises(InvalidRecord, match="--out"):
        write(published, "parquet", None, {})


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_empty_history_exports(store: Store, tmp_path: Path, format_name: str) -> None:
    write(store, format_name, tmp_path / "out", {})
    assert (tmp_path / "out").exists()


def test_standard_output_and_gzip_are_the_same(
    published: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(published, "csv", None, dict(PLACE))
    write(published, "csv", tmp_path / "out.csv.gz", dict(PLACE))
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()).decode() == capsys.readouterr().out
