"""configs/annotations.toml: what is accepted, what is refused with words, where remarks stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from history.errors import BadSettings
from reports.annotations import Annotation, load_annotations, place

COMMITTED = Path(__file__).parents[2] / "configs" / "annotations.toml"


def test_the_committed_file_is_good_and_says_that_8_0_29_was_withdrawn() -> None:
    found = load_annotations(COMMITTED)
    assert any((one.dbms, one.release) == ("mysql", "8.0.29") and "withdrawn" in one.text for one in found)


def test_no_file_is_no_annotations(tmp_path: Path) -> None:
    assert load_annotations(tmp_path / "none.toml") == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[annotation]\n", "not TOML"),
        ('[[annotation]]\ntext = "x"\n', "needs dbms and release, or host and date"),
        ('[[annotation]]\ntext = "x"\ndbms = "a"\nrelease = "1"\nhost = "h"\ndate = 2024-01-01\n', "or host and date"),
        ('[[annotation]]\ntext = "x"\ndbms = "a"\nrelease = "1"\nurl = "javascript:alert(1)"\n', "annotation.0.url"),
        ('[[annotation]]\ntext = "x"\ndbms = "a"\nrelease = "1"\ncolour = "red"\n', "annotation.0.colour"),
    ],
)
def test_a_bad_file_says_where_and_why(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "annotations.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadSettings, match=says) as caught:
        load_annotations(path)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("release", "versions", "at"),
    [
        ("8.0.30", ["8.0.28", "8.0.30"], 1.0),
        ("8.0.29", ["8.0.28", "8.0.30"], 0.5),
        ("8.0.9", ["8.0.11", "8.0.12"], None),
        ("8.0.40", ["8.0.28", "8.0.30"], None),
    ],
)
def test_an_unmeasured_release_stands_between_its_neighbours(release: str, versions: list[str], at: float) -> None:
    one = Annotation(text="t", dbms="mysql", release=release)
    assert place(one, "mysql", "8.0", versions) == at
    assert place(one, "postgres", "8.0", versions) is None
