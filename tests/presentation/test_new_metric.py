"""A metric is a table in metrics.toml and nothing else: one that no code knows is detected, told and exported."""

from __future__ import annotations

import csv
import io
import random
import re
from pathlib import Path

import html5lib
import pytest

from alerts.context import context_from
from alerts.render import render
from alerts.settings import load_settings as load_alert_settings
from alerts.subject import subjects
from history.exporters import write
from history.model import Measurement
from history.store import Store
from pointdrop.jobs.detect import find, load_detector_settings
from presentation.findings import findings_frame
from reports.settings import load_settings as load_report_settings
from reports.site import build
from tests.alerts.scenarios import GROUPS, POSTGRES, release
from tests.builders import Writer

ROOT = Path(__file__).parents[2]
ENTRY = """
["joules/o"]
title = "energy per operation"
column = "J/o"
unit = "J"
better = "lower"
kind = "cpu"
resource = "energy"
smallest_change_pct = 1.0
noun = "energy per operation"
more = "more energy"
less = "less energy"
view = "Energy/op"
"""


@pytest.fixture(scope="module")
def configs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of settings whose registry has one metric more."""
    folder = tmp_path_factory.mktemp("configs")
    (folder / "metrics.toml").write_text((ROOT / "configs" / "metrics.toml").read_text() + ENTRY)
    return folder


@pytest.fixture(scope="module")
def store(configs: Path) -> Store:
    """Two of twelve tests need 6 % more energy from 17.5 on; the processor's time says nothing of it."""
    store = Store.open("sqlite://")
    writer = Writer(store, 21)
    session = writer.session("s-1", "local", 0, control="17.2")
    for version in POSTGRES:
        late = POSTGRES.index(version) >= POSTGRES.index("17.5")

        def measure(rng: random.Random, late: bool = late) -> list[Measurement]:
            return [
                Measurement(
                    test=f"{test}.range100", group=group, metric=metric, value=level * (1 + rng.gauss(0, 0.002))
                )
                for test, group in GROUPS.items()
                for metric, level in (
                    ("joules/o", 0.004 * (1.06 if late and test in ("point-query", "hot-points") else 1.0)),
                    ("cpu/o", 0.00048),
                )
            ]

        writer.run(session, release("postgres", version), "default", "sysbench", measure, lane="time")
        if version in ("17.4", "17.5"):  # measured again, before it is told
            later = writer.session("s-2", "local", 1, control="17.2")
            writer.run(later, release("postgres", version), "default", "sysbench", measure, lane="time")
    store.append_detection(find(list(store.series()), load_detector_settings(configs), store), "test")
    return store


def test_the_code_does_not_know_it() -> None:
    rooms = ("history", "runners", "detector", "presentation", "alerts", "reports", "pointdrop", "configs")
    for room in rooms:
        for path in (ROOT / room).rglob("*"):
            if path.suffix in (".py", ".toml", ".html", ".j2", ".js"):
                assert "joules" not in path.read_text(encoding="utf-8"), path


def test_it_is_a_finding_of_two_tests(store: Store) -> None:
    (finding,) = store.findings()
    assert finding.key == "postgres/17/17.5/regression" and finding.tier == "confirmed"
    assert {(move.key.test, move.key.metric) for move in finding.moves} == {
        ("point-query.range100", "joules/o"),
        ("hot-points.range100", "joules/o"),
    }


def test_it_is_in_the_issue(store: Store, configs: Path) -> None:
    settings = load_alert_settings(configs)
    (subject,) = subjects(store.findings(), settings.filing.kinds, settings.metrics)
    issue = render(subject, context_from(store, subject.finding, settings), settings)
    assert re.fullmatch(
        r"postgres 17\.5: \S+ needs [\d.]+ % more energy \(2 of 12 tests moved; point queries, local\)", issue.title
    )
    assert re.search(
        r" needs [56]\.\d % more energy per operation from postgres 17\.5 on than up to 17\.4\.", issue.body
    )
    assert "| `local` | `joules/o` | `point, part 1` | 2 of 3 |" in issue.body
    heads = [line.split() for line in issue.body.splitlines() if line.endswith("dbms")]
    assert heads and all("J/o" in head for head in heads)


def test_it_is_on_the_page_and_in_its_json(store: Store, configs: Path, tmp_path: Path) -> None:
    build(store, tmp_path, load_report_settings(configs))
    path = tmp_path / "findings/postgres/17/17.5/regression.html"
    root = html5lib.parse(path.read_text(encoding="utf-8"), treebuilder="etree", namespaceHTMLElements=False)
    assert "more energy" in "".join(next(root.iter("h1")).itertext())
    cells = ["".join(cell.itertext()) for cell in root.iter("td")]
    assert cells.count("joules/o") >= 2 + 1, "two moves and a group"
    assert "J/o" in ["".join(cell.itertext()) for cell in root.iter("th")]
    assert '"metric":"joules/o"' in path.with_suffix(".json").read_text(encoding="utf-8")


def test_it_is_in_the_terminal_row(store: Store, configs: Path) -> None:
    (row,) = findings_frame(store.findings(), load_alert_settings(configs).metrics).to_dict("records")
    assert row["metric"] == "joules/o" and "% more energy (" in row["title"]
    assert 4.5 < row["median_pct"] < 7.5


def test_it_is_exported(store: Store, tmp_path: Path) -> None:
    write(store, "csv", tmp_path / "values.csv", {"metric": "joules/o"})
    rows = list(csv.DictReader(io.StringIO((tmp_path / "values.csv").read_text(encoding="utf-8"))))
    assert len(rows) == len(GROUPS) * (len(POSTGRES) + 2) * 3, "two releases were measured twice"
    assert {row["metric"] for row in rows} == {"joules/o"}
    write(store, "otava", tmp_path / "otava.csv", {})
    assert "joules/o" in (tmp_path / "otava.csv").read_text(encoding="utf-8").replace("joules_o", "joules/o")
