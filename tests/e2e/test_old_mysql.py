"""The releases of MySQL that Maven has, from 5.5 to 8.0: each counts and times, beside the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from history.model import Block, Run, Session
from runners.cores import Cores
from runners.releases import Catalogue
from runners.sessions import run_session
from tests.folders import open_folder
from tests.small_plans import CONFIGS, small_plan

VERSIONS = ("5.5.9", "5.7.19", "5.7.22", "8.0.12", "8.0.15", "8.0.31")
TESTS = ("point-query.range100", "update-index.range100")

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def state() -> Iterator[Path]:
    """A place that the servers' account may enter, unlike pytest's own."""
    with open_folder() as folder:
        yield folder


@pytest.mark.parametrize(("lane", "metric"), [("instructions", "insn/o"), ("time", "qps")])
@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_mysql_counts_and_times(
    download_state: Path, state: Path, tmp_path: Path, version: str, lane: str, metric: str
) -> None:
    plan = small_plan(lane, dbms="mysql", releases=(version,), control=version, tests=TESTS, counted_rows=2_000)
    blocks: list[Block] = []

    def keep(session: Session, run: Run, block: Block) -> None:
        blocks.append(block)

    with closing(Catalogue(CONFIGS, download_state)) as catalogue:
        outcome = run_session(plan, catalogue, keep, configs=CONFIGS, state=state, cores=Cores(tmp_path))
    assert (outcome.failed, outcome.skipped, len(blocks)) == (0, {}, 1), blocks
    values = {m.test: m.value for m in blocks[0].measurements if m.metric == metric}
    assert set(values) == set(TESTS) and min(values.values()) > 0
    if lane == "instructions":
        assert 10_000 < values[TESTS[0]] < values[TESTS[1]] < 1_000_000
