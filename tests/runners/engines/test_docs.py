"""The example in docs/engines.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "engines.md"


@pytest.mark.e2e
def test_the_example_of_the_document(
    download_state: Path, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert example is not None
    code = example[1].replace('Path("var")', f"Path({str(place)!r})")
    (place / "cache").symlink_to(download_state / "cache")
    monkeypatch.chdir(DOCUMENT.parents[1])
    exec(compile(code, str(DOCUMENT), "exec"), {})
    assert capsys.readouterr().out.startswith("[(1,)] Connection(driver='pgsql'")
    assert (place / "prepared" / "PG_VERSION").read_text() == "17\n"
