"""One test, one number: what a test counts does not depend on which tests are counted beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from history.model import Block
from runners.cores import Cores
from runners.releases import Catalogue
from runners.sessions import SessionPlan, run_session
from runners.settings import load_benchmark

CONFIGS = Path(__file__).parents[3] / "configs"
#: How far two counts of one test may be apart.
AGREEMENT = 0.003

RELEASES = (("mysql", "5.6.24"), ("mysql", "9.7.4"), ("mariadb", "11.4.5"), ("postgres", "12.22"), ("postgres", "18.1"))


def names(selection: str) -> tuple[str, ...]:
    return tuple(test.name for test in load_benchmark("sysbench", CONFIGS).select(selection))


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("dbms", "version"), RELEASES)
def test_a_test_counts_the_same_alone_and_beside_others(
    catalogue: Catalogue, state: Path, tmp_path: Path, make_plan: Callable[..., SessionPlan], dbms: str, version: str
) -> None:
    catalogue.discover(dbms)
    newest = [s.release.version for s in catalogue.list(dbms) if s.release.version.startswith(version.split(".")[0])]
    version = version if version in newest else newest[-1]  # Debian's suites have one release at a time
    blocks: list[Block] = []

    def counts(tests: tuple[str, ...], name: str) -> dict[str, float]:
        plan = make_plan("instructions", releases=(version,), control=version, tests=tests, dbms=dbms, session_id=name)
        blocks.clear()
        run_session(
            plan,
            catalogue,
            lambda *row: blocks.append(row[2]),
            configs=CONFIGS,
            state=state,
            cores=Cores(tmp_path),
        )
        assert [block.reason for block in blocks] == [""]
        return {m.test: m.value for m in blocks[0].measurements}

    beside = counts(names("local"), "local")
    for test in ("update-index.range100", "point-query.range100"):
        assert counts((test,), "alone")[test] == pytest.approx(beside[test], rel=AGREEMENT), f"{test} of {version}"
    if version == "18.1":  # the one whose 42 take the fewest minutes
        assert {name: value for name, value in counts(names("42"), "42").items() if name in beside} == pytest.approx(
            beside, rel=AGREEMENT
        )
