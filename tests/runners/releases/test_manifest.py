"""Manifests: the committed ones are whole, bad ones are refused with the key, and additions keep what people wrote."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.errors import BadSettings
from history.settings import read_model
from history.versions import line_of, version_key
from runners.releases import Pin
from runners.releases.manifest import Manifest, add_pins, manifest_path, patch_text
from runners.releases.sources import read_versions

SOURCE = '[[source]]\nname = "maven"\nkind = "maven"\ngroup = "g"\nartifact = "a"\nversions = ["(?P<version>.+)"]\n'
PIN = Pin(version="17.2", line="17", source="maven", locator="17.2.0", sha256="ab" * 32, verified="by hand")


@pytest.mark.parametrize("dbms", ["postgres", "mysql", "mariadb", "myrocks"])
def test_committed_manifests_are_whole(configs: Path, dbms: str) -> None:
    manifest = read_model(manifest_path(configs, dbms), Manifest)
    assert manifest.source
    assert list(manifest.release) == sorted(manifest.release, key=lambda pin: version_key(dbms, pin.version))
    for pin in manifest.release:
        assert pin.line == line_of(dbms, pin.version)
        assert pin.withdrawn or (pin.sha256 and pin.upstream and pin.verified and pin.size)


def test_postgres_is_pinned_from_9_6_to_18(configs: Path) -> None:
    pins = read_model(manifest_path(configs, "postgres"), Manifest).release
    lines = {pin.line for pin in pins}
    assert {"9.6", *map(str, range(10, 19))} <= lines
    assert len(pins) > 100
    assert len({pin.sha256 for pin in pins}) == len(pins)
    assert all(sum(pin.line == line for pin in pins) >= 6 for line in ("17", "18"))
    days = [(pin.line, pin.released) for pin in pins]
    assert all(day is not None for _, day in days)
    assert days == sorted(days, key=lambda row: (float(row[0]), row[1])), "later releases of a line came later"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[source", "not TOML"),
        ('[[source]]\nname = "x"\nkind = "ftp"\n', "(?s)source.0.*ftp.*maven"),
        (SOURCE.replace("(?P<version>.+)", "(.+)"), r"versions.*\(\?P<version>"),
        (SOURCE + "colour = 1\n", "colour"),
        (SOURCE + SOURCE, "two sources are called 'maven'"),
        (SOURCE + '[[release]]\nversion = "17.2"\n', "needs sha256, or withdrawn, or not_runnable"),
        (SOURCE + f'[[release]]\nversion = "1"\nsource = "npm"\nverified = "x"\nsha256 = "{"a" * 64}"\n', "'npm'"),
        (SOURCE + '[[release]]\nversion = "1"\nsource = "maven"\nverified = "x"\nsha256 = "abc"\n', "release.0.sha256"),
        (SOURCE + f'[[release]]\nversion = "1"\nsource = "maven"\nsha256 = "{"a" * 64}"\n', "how it was verified"),
        (SOURCE + patch_text([PIN, PIN]), "pinned twice"),
    ],
)
def test_a_bad_manifest_names_the_file_and_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "releases.toml").write_text(text)
    with pytest.raises(BadSettings, match=r"releases\.toml") as caught:
        read_model(tmp_path / "releases.toml", Manifest)
    with pytest.raises(BadSettings, match=says):
        raise caught.value


def test_additions_keep_comments_order_and_other_pins(tmp_path: Path) -> None:
    path = tmp_path / "releases.toml"
    path.write_text(f"# why\n\n{SOURCE}\n{patch_text([PIN])}")
    newer = PIN.model_copy(update={"version": "17.10", "sha256": "cd" * 32, "released": date(2026, 5, 14)})
    older = PIN.model_copy(update={"version": "9.6.24", "line": "9.6", "sha256": "ef" * 32})
    add_pins(path, "postgres", [newer, older])
    assert path.read_text().startswith("# why\n")
    assert [pin.version for pin in read_model(path, Manifest).release] == ["9.6.24", "17.2", "17.10"]
    add_pins(path, "postgres", [PIN.model_copy(update={"withdrawn": 'says "no"'})])
    assert read_model(path, Manifest).release[1].withdrawn == 'says "no"'
    with pytest.raises(BadSettings):
        add_pins(path, "postgres", [PIN.model_copy(update={"source": "elsewhere"})])
    assert len(read_model(path, Manifest).release) == 3, "a manifest that would be bad is not written"


@given(st.text(min_size=1, max_size=60), st.text(max_size=200), st.dates(min_value=date(1995, 1, 1)))
def test_a_patch_reads_back_as_it_was(version: str, reason: str, day: date) -> None:
    import tomllib

    pin = PIN.model_copy(update={"version": version, "withdrawn": reason, "released": day})
    [row] = tomllib.loads(patch_text([pin]))["release"]
    assert Pin.model_validate(row) == pin


def test_the_newest_rebuild_of_a_release_is_the_one_that_counts() -> None:
    patterns = [r"(?P<version>9\.\d+\.\d+)(?:-(?P<revision>\d+))?", r"(?P<version>\d\d\.\d+)\.(?P<revision>.+)"]
    offers = read_versions(patterns, ["10.5.0", "10.5.0-1", "11.22.1", "11.22.0", "9.6.24", "9.6.24-2", "latest"])
    assert {offer.version: offer.locator for offer in offers} == {
        "10.5": "10.5.0-1", "11.22": "11.22.1", "9.6.24": "9.6.24-2",
    }  # fmt: skip
