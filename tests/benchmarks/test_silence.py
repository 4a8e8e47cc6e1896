"""A/A nights: quiet ones file nothing, and the count is not blind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from history.model import Block, Run, Session
from history.store import Store
from pointdrop.paths import configs_dir
from runners.settings import load_plan
from tests.benchmarks import silence
from tests.benchmarks.real_blocks import Source, copied, sources_of, together
from tests.benchmarks.silence import LINES, Replay, Tally, nights, table
from tests.builders import SESSION, block, measurement, run

TESTS = 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Six counted blocks of one release in two sessions, one of another."""
    random = np.random.default_rng(5)
    with Store.open(f"sqlite:///{tmp_path}/real.db") as opened:
        for session in ("s", "t"):
            opened.append_session(SESSION.model_copy(update={"id": session, "server": "local"}))
            for version, blocks in (("17.5", 3), ("17.6", session == "t")):
                of = run(version, session=session, lane="instructions").model_copy(update={"profile": "instructions"})
                opened.append_run(of)
                for number in range(1, blocks + 1):
                    values = 40_000 * np.exp(0.0005 * random.standard_normal(TESTS))
                    found = (measurement(f"test-{n}", "insn/o", value) for n, value in enumerate(values.tolist()))
                    opened.append_block(block(of, 1.0, number, measurements=tuple(found)))
        yield opened


def source(store: Store) -> Source:
    (found,) = sources_of(store, "instructions", LINES)
    return found


def test_releases_with_blocks_enough_are_drawn_from_session_by_session(store: Store) -> None:
    assert sources_of(store, "time", LINES) == []
    found = source(store)
    assert found.run.release.version == "17.5" and [len(blocks) for blocks in found.blocks] == [3, 3]
    one, two, three = found.blocks[0]
    assert together([[one], [two], [three]]) == ((one, two, three),)
    assert together([[one, two], [three]]) == ((one, two, three),)


def test_nights_in_which_nothing_changed_file_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally()
    nights(source(store), load_plan("local", configs_dir()), 2, Random(1), tally)
    assert (tally.nights, tally.issues) == (2, [])
    assert tally.blocks > 10 and tally.boundaries > 0
    assert table({"instructions": tally})[2].startswith("| instructions | 2 |")

    class Slower(Replay):
        """The newest releases of one line need a tenth more."""

        def __call__(self, plan: object, catalogue: object, sink: object, **rest: object) -> object:  # type: ignore[override]
            def put(session: Session, of: Run, drawn: Block) -> None:
                slow = of.release.version in ("17.5", "17.6")
                values = [m.model_copy(update={"value": m.value * (1.1 if slow else 1)}) for m in drawn.measurements]
                values = values[:4] + list(drawn.measurements[4:])
                sink(session, of, drawn.model_copy(update={"measurements": tuple(values)}))  # type: ignore[operator]

            return super().__call__(plan, catalogue, put, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(silence, "Replay", Slower)
    nights(source(store), load_plan("local", configs_dir()), 2, Random(1), tally)
    assert tally.nights == 4 and tally.issues and all("more instructions" in title for title in tally.issues)


def test_the_history_that_is_asked_is_only_read(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with Store.open(copied(str(store.url), str(tmp_path / "copy"))) as copy:
        assert [one.id for one in copy.runs()] == [one.id for one in store.runs()]
    with pytest.raises(SystemExit, match="SQLite file"):
        copied("postgresql://host/db", str(tmp_path))
