"""Writes the example issues of docs/alerts.md from real data.

python -m tests.alerts.document mysql                     the published MySQL 8.0 figures that ship, and
                                                          their golden issue
python -m tests.alerts.document postgres sqlite:///var/history.db [KEY]
                                                          the history of `make nightly`, its worst finding
python -m tests.alerts.document mysql-night sqlite:///var/history.db mysql/8.0/8.0.31/regression
                                                          the history of `pointdrop nightly --plan mysql`
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from alerts import AlertSettings
from alerts.observation import observe
from alerts.settings import Filing
from alerts.trackers import Draft
from alerts.trackers.files import FilesTracker
from history.datasets import load
from history.store import Store
from pointdrop.jobs.detect import load_detector_settings, run_detection
from pointdrop.jobs.room_settings import measurable
from tests.alerts.scenarios import GOLDEN, as_file

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "alerts.md"
MYSQL = "mysql/8.0/8.0.30/regression"
HEADINGS = {
    "postgres": "## From `make nightly`\n\nThe history that `make nightly` makes of real Postgres releases; "
    "`python -m tests.alerts.document postgres\nsqlite:///var/history.db` writes it.",
    "mysql-night": "## From `pointdrop nightly --plan mysql`\n\nThe releases of MySQL that package registries keep, "
    "counted on two cores of a virtual machine; "
    "`python -m tests.alerts.document mysql-night sqlite:///var/history.db mysql/8.0/8.0.31/regression` writes it.",
}
#: Published figures cannot be measured again, so nothing in them is confirmed.
SETTINGS = AlertSettings(filing=Filing(tiers=("confirmed", "provisional")), measurable=measurable(ROOT / "configs"))


def draft(store: Store, key: str = "") -> Draft:
    """The issue of `key`, or of the worst finding, in a history that has a detection."""
    with TemporaryDirectory() as empty:  # what was filed already does not matter here
        world = observe(store, FilesTracker(Path(empty)), SETTINGS, datetime.now(UTC)).world
    return world.drafts[key or world.subjects[0].key]


def insert(name: str, issue: Draft) -> None:
    """Put the issue between the lines `<!-- example NAME -->` and `<!-- end of example NAME -->`."""
    begin, end = f"<!-- example {name} -->", f"<!-- end of example {name} -->"
    text = f"{begin}\n\n> **{issue.title}**\n\n{issue.body.partition(chr(10))[2].strip()}\n\n{end}"
    page = DOCS.read_text()
    if begin not in page:
        page += f"\n{HEADINGS[name]}\n\n{begin}\n{end}\n"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    DOCS.write_text(pattern.sub(lambda _: text, page))


if __name__ == "__main__":
    if sys.argv[1] == "mysql":
        with Store.open("sqlite://") as published:
            load(published, "smalldatum")
            run_detection(published, load_detector_settings(ROOT / "configs"), write=True)
            issue = draft(published, MYSQL)
            insert("mysql", issue)
            (GOLDEN / "published.md").write_text(as_file(issue), encoding="utf-8")
    else:
        with Store.open(sys.argv[2]) as opened:
            insert(sys.argv[1], draft(opened, *sys.argv[3:4]))
