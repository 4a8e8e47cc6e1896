"""A term of docs/glossary.md has no second word in code, documentation or pages, and stands where the table says."""

from __future__ import annotations

import pkgutil
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| term", "| ---"))
]
SECOND_WORDS = [(row[0], word) for row in ROWS for word in row[3].split(", ") if word]


def texts() -> dict[str, str]:
    """Product code, pages and documentation that git has, by path."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {
        path: (ROOT / path).read_text(encoding="utf-8")
        for path in listed.splitlines()
        if path.endswith((".py", ".md", ".html", ".j2", ".toml"))
        and not path.startswith(("tests/", "history/datasets/"))
        and path not in ("docs/glossary.md", "CHANGELOG.md")
        and (ROOT / path).is_file()
    }


TEXTS = texts()


@pytest.mark.parametrize(("term", "word"), SECOND_WORDS, ids=[word for _, word in SECOND_WORDS])
def test_a_term_has_no_second_word(term: str, word: str) -> None:
    pattern = re.compile(rf"\b{re.escape(word)}s?\b", re.IGNORECASE)
    uses = [
        f"{path}:{number}: {line.strip()[:90]}"
        for path, text in TEXTS.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not uses, f"write {term!r} for {word!r}:\n" + "\n".join(uses)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_table_names_what_is_there(row: list[str]) -> None:
    """A path is a file or folder, a dotted name can be imported, a `Class.attribute` is declared somewhere."""
    place = row[2].strip("`")
    if "/" in place:
        assert list(ROOT.glob(place)), f"{place} is not there"
    elif (ROOT / place.split(".")[0]).is_dir():
        assert pkgutil.resolve_name(place)
    else:
        attribute = re.compile(rf"^    (def )?{place.rsplit('.', 1)[-1]}\b", re.MULTILINE)
        assert any(attribute.search(text) for path, text in TEXTS.items() if path.endswith(".py")), place
