"""The year of nights: its history is what it says, and what changes there is found through the growing control."""

from __future__ import annotations

from pathlib import Path

from history.store import Store
from pointdrop.jobs.detect import find, load_detector_settings
from pointdrop.paths import configs_dir
from tests.benchmarks import year

NIGHTS, TESTS = 6, 6


def test_nights_add_blocks_of_the_control_and_findings_stay_where_they_are(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    settings = load_detector_settings(configs_dir())
    boundaries = []
    with Store.open(url) as store:
        for night in range(NIGHTS):
            year.append(store, night, TESTS)
            assert year.control_blocks(store) == (night + 1) * year.BLOCKS["time"]
            series = list(store.series())
            findings = find(series, settings, store)
            assert findings == find(series[::-1], settings, store)
            counted = [f for f in findings if f.line == "17" and any(m.key.metric == "insn/o" for m in f.moves)]
            boundaries.append({finding.release for finding in counted})
    changed = {f"17.{point}" for point in range(1, year.FIRST_RELEASES) if point % year.CHANGES == 0}
    assert boundaries == [changed] * NIGHTS
    seconds, count = year.cost(url, 1)
    assert seconds > 0 and count == len(findings)
