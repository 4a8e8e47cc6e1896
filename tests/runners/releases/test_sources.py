"""The package sources for real: what they offer comes, is verified, and says the version that was asked for."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.releases import Catalogue, Installed, Pin, UnknownRelease

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def catalogue(configs: Path, download_state: Path) -> Iterator[Catalogue]:
    catalogue = Catalogue(configs, download_state)
    yield catalogue
    catalogue.close()


def version_of(installed: Installed, program: str) -> str:
    arguments = ["--version"] if program == "postgres" else ["--no-defaults", "--version"]
    done = subprocess.run(installed.command(program, *arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def offered(catalogue: Catalogue, dbms: str, source: str) -> list[str]:
    """Versions of one source, oldest first; asks it."""
    catalogue.discover(dbms, source)
    releases = [state.release for state in catalogue.list(dbms) if state.state in ("new", "pinned")]
    return [release.version for release in releases if release.build == source]


def test_maven_offers_a_hundred_postgres_releases_in_order(catalogue: Catalogue) -> None:
    versions = offered(catalogue, "postgres", "maven")
    assert len(versions) > 100
    assert versions.index("9.6.24") < versions.index("10.4") < versions.index("17.2") < versions.index("17.10")
    installed = catalogue.fetch("postgres", "17.2")
    assert version_of(installed, "postgres").split()[-1] == "17.2"
    assert installed.loader is None and installed.find("initdb") and installed.changed_files() == []


def test_maven_has_mariadb_and_programs_come_out_executable(catalogue: Catalogue) -> None:
    assert {"10.2.11", "10.11.5", "11.4.5"} <= set(offered(catalogue, "mariadb", "maven"))
    assert "10.11.5-MariaDB" in version_of(catalogue.fetch("mariadb", "10.11.5"), "mariadbd")


def test_npm_has_mysql_5_6(catalogue: Catalogue) -> None:
    assert offered(catalogue, "mysql", "npm") == ["5.6.24"]
    installed = catalogue.fetch("mysql", "5.6.24")
    assert "Ver 5.6.24" in version_of(installed, "mysqld")
    assert installed.release.digest == "b57df3a5b3fd94ba05ccc9c01b723db04a64f46b503b77a7a50d693ecd44f213"


@pytest.mark.parametrize(
    ("source", "versions"),
    [
        ("maven-mxj", {"5.5.9"}),
        ("maven-airlift", {"5.7.19", "5.7.22", "8.0.12"}),
        ("maven-presto", {"8.0.15"}),
        ("maven-killbill", {"8.0.31"}),
    ],
)
def test_maven_has_old_servers_of_mysql_in_what_others_made_for_their_tests(
    catalogue: Catalogue, source: str, versions: set[str]
) -> None:
    had = offered(catalogue, "mysql", source)
    assert versions <= set(had) and "5.5.9" not in set(had) - versions
    assert source == "maven-airlift" or len(had) == 1, "nothing is guessed: only what the table names"
    for version in versions:
        installed = catalogue.fetch("mysql", version, source)
        assert f"Ver {version} " in version_of(installed, "mysqld")
        pin = next(pin for pin in catalogue.manifest("mysql").release if pin.version == version)
        assert installed.release.digest == pin.sha256
        assert installed.find("mysqld") and any(name.endswith("english/errmsg.sys") for name in installed.files)


def test_a_server_of_a_newer_suite_runs_through_its_own_loader(catalogue: Catalogue) -> None:
    version = offered(catalogue, "mysql", "debian-sid")[-1]
    installed = catalogue.fetch("mysql", version)
    assert installed.loader is not None and installed.loader.program.is_relative_to(installed.prefix)
    assert f"Ver {version}" in version_of(installed, "mysqld")
    listed = subprocess.run(
        [str(installed.loader.program), "--inhibit-cache", "--library-path",
         ":".join(map(str, installed.loader.library_path)), "--list", str(installed.program("mysqld"))],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    libraries = [line.split("=> ")[1].split()[0] for line in listed.splitlines() if "=> " in line]
    assert len(libraries) > 10
    assert all(Path(library).is_relative_to(installed.prefix) for library in libraries), "nothing of this machine's"


@pytest.mark.parametrize(("source", "line"), [("debian-bookworm", "15"), ("debian-trixie", "17")])
def test_debian_builds_releases_of_postgres_beside_mavens(catalogue: Catalogue, source: str, line: str) -> None:
    """One version of two builders is two releases, and each is found by its own name."""
    versions = offered(catalogue, "postgres", source)
    assert versions and all(version.startswith(f"{line}.") and version.endswith("+debian") for version in versions)
    assert len(offered(catalogue, "postgres", "maven")) > 100, "none of them was displaced"
    installed = catalogue.fetch("postgres", versions[-1], source)
    assert installed.release.build == source and installed.release.line == line
    assert catalogue.fetch("postgres", versions[-1]).release == installed.release
    assert version_of(installed, "postgres").split()[2] == versions[-1].partition("+")[0]


def test_myrocks_is_mariadb_with_its_plugin_in_one_prefix(catalogue: Catalogue) -> None:
    version = offered(catalogue, "myrocks", "debian-bookworm")[-1]
    installed = catalogue.fetch("myrocks", version)
    assert f"{version}-MariaDB" in version_of(installed, "mariadbd")
    assert installed.release.dbms == "myrocks" and installed.release.line == "10.11"
    assert any(name.endswith("plugin/ha_rocksdb.so") for name in installed.files)
    assert len(installed.parts) > 10, "the libraries are kept by digest too"
    pin = catalogue.pin_of("myrocks", version)
    assert pin is not None and pin.signature.startswith("good: debian-archive-keyring")
    assert pin.sha256 == pin.upstream.removeprefix("sha256:")
    assert pin not in catalogue.new_pins("myrocks"), "what the suite will drop does not belong into the manifest"


def test_what_a_suite_dropped_is_said_to_be_gone(catalogue: Catalogue) -> None:
    from runners.releases.sources import Offer

    source = catalogue.source_of("myrocks", "debian-bookworm")
    with pytest.raises(UnknownRelease, match=r"no longer in bookworm.*keeps no old releases"):
        source.download(Offer("10.11.1", "1:10.11.1-1"), Path("/nonexistent"))


def test_another_build_of_a_release_takes_the_place_of_one_that_is_gone(configs: Path, tmp_path: Path) -> None:
    catalogue = Catalogue(configs, tmp_path)
    version = offered(catalogue, "myrocks", "debian-bookworm")[-1]
    for gone in (version, "10.11.1"):
        pin = Pin(
            version=gone, source="debian-bookworm", locator=f"1:{gone}-0+deb12u0", sha256="0" * 64, verified="long ago"
        )
        catalogue.pin("myrocks", [pin])
    states = {state.release.version: state.state for state in catalogue.list("myrocks")}
    assert (states[version], states["10.11.1"]) == ("new", "gone")
    assert catalogue.pin_of("myrocks", version) is None
    with pytest.raises(UnknownRelease, match=r"was pinned, but debian-bookworm has 1:10\.11\.1-0\+deb12u0 no longer"):
        catalogue.fetch("myrocks", "10.11.1")


def test_the_system_package_state_is_left_alone(catalogue: Catalogue) -> None:
    offered(catalogue, "mysql", "debian-sid")
    shown = subprocess.run(["apt-cache", "policy", "mysql-server-core"], capture_output=True, text=True, check=True)
    assert " sid/" not in shown.stdout
