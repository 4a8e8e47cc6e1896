"""The catalogue: what is known, what is trusted, and what happens when bytes are not what they were."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runners.errors import DigestMismatch, NotRunnable, SourceUnavailable, Unverifiable
from runners.releases import Catalogue, UnknownRelease, pins_for, verify
from runners.releases.manifest import add_pins, manifest_path
from tests.runners.releases.vendorsite import Site


def states(catalogue: Catalogue) -> dict[str, str]:
    return {state.release.version: state.state for state in catalogue.list("mariadb")}


def test_discovery_lists_everything_in_the_dbms_own_order(catalogue: Catalogue) -> None:
    releases = catalogue.discover("mariadb")
    assert [release.version for release in releases] == ["10.11.5", "10.11.9", "11.4.3"]
    assert [release.line for release in releases] == ["10.11", "10.11", "11.4"]
    assert str(releases[0].released) == "2023-08-14"
    assert set(states(catalogue).values()) == {"new"}
    assert catalogue.warnings == []


def test_a_fetched_release_is_pinned_unpacked_and_runs(catalogue: Catalogue) -> None:
    installed = catalogue.fetch("mariadb", "10.11.9")
    done = subprocess.run(installed.command("mariadbd"), capture_output=True, text=True, check=True)
    assert "10.11.9-MariaDB" in done.stdout
    assert states(catalogue)["10.11.9"] == "pinned"
    assert len(installed.release.digest) == 64
    assert installed.release.build == "tarball"
    assert not any(path.stat().st_mode & 0o022 for path in installed.prefix.rglob("*"))
    [pin] = catalogue.new_pins("mariadb")
    assert pin.sha256 == installed.release.digest
    assert pin.upstream.startswith("sha512:")
    assert str(pin.released) == "2024-08-08"


def test_the_second_fetch_asks_nobody(catalogue: Catalogue, site: Site) -> None:
    first = catalogue.fetch("mariadb", "10.11.9")
    asked = len(site.asked)
    assert catalogue.fetch("mariadb", "10.11.9") == first
    assert len(site.asked) == asked


def test_offline_uses_what_is_cached_and_says_what_is_not(catalogue: Catalogue, project: Path, tmp_path: Path) -> None:
    catalogue.discover("mariadb")
    fetched = catalogue.fetch("mariadb", "10.11.9")
    offline = Catalogue(project, tmp_path / "state", offline=True)
    assert [release.version for release in offline.discover("mariadb")] == ["10.11.5", "10.11.9", "11.4.3"]
    assert offline.fetch("mariadb", "10.11.9").prefix == fetched.prefix
    with pytest.raises(SourceUnavailable, match=r"pointdrop releases fetch mariadb 10\.11\.5"):
        offline.fetch("mariadb", "10.11.5")


def test_offline_unpacks_again_from_the_archives_it_has(catalogue: Catalogue, project: Path, tmp_path: Path) -> None:
    prefix = catalogue.fetch("mariadb", "10.11.9").prefix
    catalogue.close()
    subprocess.run(["rm", "-rf", f"{prefix}", f"{prefix}.json"], check=True)
    assert Catalogue(project, tmp_path / "state", offline=True).fetch("mariadb", "10.11.9").find("mariadbd")


def test_other_bytes_than_the_pinned_ones_abort_with_both_values(
    catalogue: Catalogue, project: Path, site: Site, tmp_path: Path
) -> None:
    pins = pins_for(catalogue, "mariadb", ["10.11.9"])
    add_pins(manifest_path(project, "mariadb"), "mariadb", pins)
    site.mariadb({"10.11.9": "2024-08-09", "11.4.3": "2024-08-08"})
    path = next(path for path in site.routes if path.endswith("10.11.9-linux-systemd-x86_64.tar.gz"))
    site.routes[path].body += b"\0" * 512  # somebody made the archive again, and its checksum too
    api = json.loads(site.routes["/rest-api/mariadb/10.11.9/"].body)
    sums = api["release_data"]["10.11.9"]["files"][1]["checksum"]
    sums["sha512sum"] = hashlib.sha512(site.routes[path].body).hexdigest()
    site.routes["/rest-api/mariadb/10.11.9/"].body = json.dumps(api).encode()

    elsewhere = Catalogue(project, tmp_path / "another")
    with pytest.raises(DigestMismatch) as caught:
        elsewhere.fetch("mariadb", "10.11.9")
    assert caught.value.exit_code == 2
    assert str(pins[0].sha256) in str(caught.value)
    assert caught.value.actual in str(caught.value) and caught.value.actual != pins[0].sha256
    assert not list((tmp_path / "another" / "cache").glob("prefixes/*"))
    assert verify(catalogue, "mariadb", "10.11.9") == []
    [problem] = verify(catalogue, "mariadb", "10.11.9", again=True)
    assert caught.value.actual in problem


def test_withdrawn_and_not_runnable_are_refused_with_the_reason(catalogue: Catalogue, project: Path) -> None:
    catalogue.discover("mariadb")
    add_pins(
        manifest_path(project, "mariadb"),
        "mariadb",
        pins_for(catalogue, "mariadb", ["10.11.5"], withdrawn="loses rows"),
    )
    add_pins(
        manifest_path(project, "mariadb"),
        "mariadb",
        pins_for(catalogue, "mariadb", ["11.4.3"], not_runnable="needs a newer kernel"),
    )
    assert states(catalogue) == {"10.11.5": "withdrawn", "10.11.9": "new", "11.4.3": "not_runnable"}
    with pytest.raises(NotRunnable, match="withdrawn: loses rows"):
        catalogue.fetch("mariadb", "10.11.5")
    with pytest.raises(NotRunnable, match="cannot run: needs a newer kernel"):
        catalogue.fetch("mariadb", "11.4.3")
    assert (project / "dbms" / "mariadb" / "releases.toml").read_text().startswith("# kept")


def test_an_unknown_release_names_its_neighbours(catalogue: Catalogue) -> None:
    with pytest.raises(UnknownRelease, match=r"10\.11\.5, 10\.11\.9"):
        catalogue.fetch("mariadb", "10.11.7")
    with pytest.raises(UnknownRelease, match="no DBMS 'oracle'"):
        catalogue.list("oracle")


def test_a_release_that_is_gone_from_its_source_is_marked(
    catalogue: Catalogue, project: Path, site: Site, tmp_path: Path
) -> None:
    add_pins(manifest_path(project, "mariadb"), "mariadb", pins_for(catalogue, "mariadb", ["10.11.5"]))
    site.mariadb({"10.11.9": "2024-08-08"})
    other = Catalogue(project, tmp_path / "another")
    other.discover("mariadb")
    assert states(other) == {"10.11.5": "gone", "10.11.9": "new"}
    catalogue.discover("mariadb")
    assert states(catalogue)["10.11.5"] == "pinned", "what is cached can still be used"


def test_pins_of_a_source_that_was_removed_are_passed_over(catalogue: Catalogue, project: Path) -> None:
    catalogue.fetch("mariadb", "10.11.9")
    manifest = project / "dbms" / "mariadb" / "releases.toml"
    manifest.write_text(manifest.read_text().replace('name = "tarball"', 'name = "vendor"'))
    assert states(catalogue) == {}
    assert catalogue.fetch("mariadb", "10.11.9").release.build == "vendor"


def test_what_half_of_a_source_says_of_the_other_is_a_warning(project: Path, site: Site, tmp_path: Path) -> None:
    site.mysql("8.4.8", b"", "")
    folder = project / "dbms" / "mysql"
    folder.mkdir()
    (folder / "releases.toml").write_text(
        f'''[[source]]
name = "tarball"
kind = "tarball"
vendor = "mysql"
address = "{site.address}/archives"
current = "{site.address}"
files = ['mysql-{{version}}-linux-glibc2\\.12-x86_64\\.tar\\.xz']
'''
    )
    catalogue = Catalogue(project, tmp_path / "state")
    assert [release.version for release in catalogue.discover("mysql")] == ["8.4.8"]
    [warning] = catalogue.warnings
    assert warning.startswith("mysql from tarball: the newest release of each line is not known: ") and "404" in warning


def test_a_pin_keeps_the_platform_it_was_made_of(
    catalogue: Catalogue, project: Path, site: Site, tmp_path: Path
) -> None:
    """So that another order of preference later does not bring other bytes under the same name."""
    manifest = manifest_path(project, "mariadb")
    text = manifest.read_text().replace("linux-systemd", "{platform}")
    manifest.write_text(text + 'platforms = { "*" = ["linux-systemd", "linux"] }\n')
    catalogue.fetch("mariadb", "10.11.9")
    pin = catalogue.pin_of("mariadb", "10.11.9")
    assert pin is not None and pin.platform == "linux-systemd"
    add_pins(manifest, "mariadb", [pin])
    assert 'platform = "linux-systemd"' in manifest.read_text()
    page = site.routes["/rest-api/mariadb/10.11.9/"]
    release = json.loads(page.body)
    files = release["release_data"]["10.11.9"]["files"]
    files.append({**files[-1], "file_name": "mariadb-10.11.9-linux-x86_64.tar.gz", "file_download_url": "/other"})
    page.body = json.dumps(release).encode()
    manifest.write_text(manifest.read_text().replace('["linux-systemd", "linux"]', '["linux", "linux-systemd"]'))
    other = Catalogue(project, tmp_path / "another")
    assert other.fetch("mariadb", "10.11.9").release.digest == pin.sha256
    assert verify(other, "mariadb", "10.11.9", again=True) == []


def test_an_unreachable_source_is_a_warning_and_its_last_list_is_used(catalogue: Catalogue, site: Site) -> None:
    catalogue.discover("mariadb")
    site.routes.clear()
    assert [release.version for release in catalogue.discover("mariadb")] == ["10.11.5", "10.11.9", "11.4.3"]
    [warning] = catalogue.warnings
    assert "404" in warning and "mariadb from tarball" in warning


def test_changed_files_are_found(catalogue: Catalogue) -> None:
    installed = catalogue.fetch("mariadb", "10.11.9")
    program = installed.program("mariadbd")
    program.parent.chmod(0o755)
    program.chmod(0o755)
    program.write_text("#!/bin/sh\n")
    (installed.prefix / "bin" / "more").write_text("")
    assert verify(catalogue, "mariadb", "10.11.9") == ["bin/mariadbd was changed", "bin/more was changed"]


def test_a_damaged_archive_is_found_and_never_unpacked(
    catalogue: Catalogue, project: Path, tmp_path: Path, site: Site
) -> None:
    installed = catalogue.fetch("mariadb", "10.11.9")
    [digest] = installed.parts.values()
    blob = catalogue.cache.blob(digest)
    assert blob is not None
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes()[:-7] + b"garbage")
    [problem] = verify(catalogue, "mariadb", "10.11.9")
    assert problem == "archive mariadb-10.11.9-linux-systemd-x86_64.tar.gz is damaged"
    catalogue.close()
    os.utime(f"{installed.prefix}.json", (0, 0))
    catalogue.cache.prune(blob.stat().st_size)
    assert catalogue.cache.blob(digest), "only the tree was pruned"
    with pytest.raises(SourceUnavailable, match="not in the cache"):
        Catalogue(project, tmp_path / "state", offline=True).fetch("mariadb", "10.11.9")
    again = catalogue.fetch("mariadb", "10.11.9")
    assert again == installed and verify(catalogue, "mariadb", "10.11.9") == []


def test_nothing_is_used_without_a_checksum(catalogue: Catalogue, site: Site) -> None:
    site.mariadb({"10.11.9": "2024-08-08"}, md5="", sha1="", sha256="", sha512="")
    with pytest.raises(Unverifiable, match="no checksum"):
        catalogue.fetch("mariadb", "10.11.9")
    assert states(catalogue)["10.11.9"] == "new"


def _fetch(configs: Path, state: Path, answers: Any) -> None:
    catalogue = Catalogue(configs, state)
    answers.put(str(catalogue.fetch("mariadb", "10.11.9").prefix))


@pytest.mark.slow
def test_two_processes_at_once_download_once(project: Path, tmp_path: Path, site: Site) -> None:
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    processes = [context.Process(target=_fetch, args=(project, tmp_path / "state", answers)) for _ in range(3)]
    for process in processes:
        process.start()
    prefixes = {answers.get(timeout=240) for _ in processes}
    for process in processes:
        process.join(60)
    assert len(prefixes) == 1
    assert sum(path.endswith(".tar.gz") for path, _ in site.asked) == 1


def test_what_was_built_for_another_machine_is_refused_before_anything_is_downloaded(
    project: Path, tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = manifest_path(project, "mariadb")
    manifest.write_text(manifest.read_text().replace('kind = "tarball"', 'kind = "tarball"\nmachine = "x86_64"'))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    catalogue = Catalogue(project, tmp_path / "state")
    catalogue.discover("mariadb")
    assert set(states(catalogue).values()) == {"new"}
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert set(states(catalogue).values()) == {"not_runnable"}
    asked = len(site.asked)
    sentence = r"mariadb 10\.11\.9 cannot run: the builds of tarball are for x86_64, and this machine is aarch64; "
    with pytest.raises(NotRunnable, match=sentence + "build one with `pointdrop releases build mariadb`$"):
        catalogue.fetch("mariadb", "10.11.9")
    assert len(site.asked) == asked


@pytest.mark.parametrize("dbms", ["mariadb", "myrocks", "mysql", "postgres"])
def test_no_release_that_ships_is_said_to_run_on_arm(
    configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dbms: str
) -> None:
    """Every source that is not source code says what it was built for."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    catalogue = Catalogue(configs, tmp_path, offline=True)
    for pinned in catalogue.list(dbms):
        with pytest.raises(NotRunnable):
            catalogue.fetch(dbms, pinned.release.version)
    for settings in catalogue.manifest(dbms).source:
        source = catalogue.source_of(dbms, settings.name)
        assert source.machine == (None if "recipe" in settings.model_fields_set else "x86_64"), settings.name
