"""What a source tree asks for besides: MySQL's Boost, with a tree of one file and an archive of one header."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from history.errors import BadSettings
from history.settings import read_model
from runners.errors import BuildFailed, DigestMismatch, SourceUnavailable
from runners.releases import Catalogue
from runners.releases import web as web_module
from runners.releases.archives import remove_tree
from runners.releases.builds import Builder, BuildRecipe
from runners.releases.cache import Cache
from runners.releases.requirements import Requirement, supply
from tests.runners.releases.vendorsite import Answer, Site, archive

BOOST = archive(
    "boost_1_77_0",
    {"boost/version.hpp": "#define BOOST_VERSION 107700\n", "libs/much.cpp": "not unpacked", "index.html": "nor this"},
    "bz2",
)
PATH = "/release/1.77.0/source/boost_1_77_0.tar.bz2"
#: As MySQL's, cut to what decides: the version named, the place it is looked for, and no download.
BOOST_CMAKE = """SET(BOOST_PACKAGE_NAME "boost_1_77_0")
SET(BOOST_DOWNLOAD_URL "https://never.example/${BOOST_PACKAGE_NAME}.tar.bz2")
FIND_PATH(LOCAL_BOOST_DIR NAMES "boost/version.hpp" PATHS ${WITH_BOOST} NO_DEFAULT_PATH)
IF(NOT LOCAL_BOOST_DIR)
  MESSAGE(FATAL_ERROR "MySQL currently requires ${BOOST_PACKAGE_NAME}")
ENDIF()
"""
#: The server says which Boost it was made with.
SERVER = (
    "#include <stdio.h>\n#include <boost/version.hpp>\n"
    'int main(void) { printf("mysqld  Ver 8.0.36 for Linux on x86_64 (Boost %d)\\n", BOOST_VERSION); return 0; }\n'
)
CMAKELISTS = (
    "cmake_minimum_required(VERSION 3.18)\nproject(server C)\ninclude(cmake/boost.cmake)\n"
    "include_directories(${LOCAL_BOOST_DIR})\nadd_executable(mysqld server.c)\n"
    "install(TARGETS mysqld DESTINATION bin)\n"
)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "FIRST_WAIT_SECONDS", 0.01)


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory that the account which builds may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="pointdrop-requirements-"))
    folder.chmod(0o755)
    yield folder
    remove_tree(folder)


@pytest.fixture
def requirement(site: Site, configs: Path) -> Requirement:
    """The committed one, but for where the archive is, and its digest."""
    site.routes[PATH] = Answer(BOOST)
    (committed,) = read_model(configs / "dbms" / "mysql" / "recipes" / "cmake.toml", BuildRecipe).requires
    address = committed.address.replace("https://archives.boost.io", site.address)
    digests = {"boost_1_77_0": hashlib.sha256(BOOST).hexdigest()}
    return committed.model_copy(update={"address": address, "sha256": digests})


@pytest.fixture
def project(tmp_path: Path, requirement: Requirement) -> Path:
    """A configuration of MySQL whose recipe wants that."""
    folder = tmp_path / "configs" / "dbms" / "mysql"
    (folder / "recipes").mkdir(parents=True)
    wanted = requirement.model_dump()
    digests = "".join(f'{name} = "{value}"\n' for name, value in wanted.pop("sha256").items())
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in wanted.items())
    (folder / "recipes" / "cmake.toml").write_text(
        f'system = "cmake"\n[[requires]]\n{settings}[requires.sha256]\n{digests}'
    )
    (folder / "releases.toml").write_text(
        f"""[[source]]
name = "git"
kind = "git"
url = "{tmp_path}/repo"
versions = ['mysql-(?P<version>\\d+\\.\\d+\\.\\d+)']
recipe = "cmake"
"""
    )
    return tmp_path / "configs"


def tree(folder: Path, boost_cmake: str = BOOST_CMAKE) -> Path:
    """MySQL of one file, with the question for Boost."""
    (folder / "cmake").mkdir(parents=True)
    (folder / "cmake" / "boost.cmake").write_text(boost_cmake)
    (folder / "CMakeLists.txt").write_text(CMAKELISTS)
    (folder / "server.c").write_text(SERVER)
    return folder


def tag(folder: Path, name: str) -> None:
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"], ["tag", name]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, "-C", str(folder), *arguments], check=True)


def asked(site: Site) -> int:
    return sum(path == PATH for path, _ in site.asked)


def test_a_tag_is_built_with_the_boost_it_asks_for_fetched_once(
    project: Path, state: Path, site: Site, tmp_path: Path
) -> None:
    """As `pointdrop releases build mysql --commit mysql-8.0.36` does it; the second tree builds without a network."""
    tag(tree(tmp_path / "repo"), "mysql-8.0.36")
    installed = Catalogue(project, state).build_commit("mysql", "mysql-8.0.36", sandbox=True)
    said = subprocess.run(installed.command("mysqld"), capture_output=True, text=True, check=True).stdout
    assert "Boost 107700" in said and installed.release.version.startswith("8.0.36+g")
    assert asked(site) == 1
    other = tree(tmp_path / "other")
    (other / "server.c").write_text(SERVER.replace("8.0.36", "8.0.37"))
    del site.routes[PATH]
    assert Catalogue(project, state, offline=True).build_tree("mysql", other).release.version.startswith("8.0.37+t")
    assert asked(site) == 1


def supplied(requirement: Requirement, source: Path, state: Path, *, offline: bool = False) -> list[str]:
    into = Path(tempfile.mkdtemp(dir=state))
    return supply((requirement,), source, into, Cache(state / "cache"), offline=offline)


def test_only_the_folder_that_is_used_is_unpacked(requirement: Requirement, state: Path, tmp_path: Path) -> None:
    (argument,) = supplied(requirement, tree(tmp_path / "tree"), state)
    folder = Path(argument.removeprefix("-DWITH_BOOST="))
    assert [path.relative_to(folder).as_posix() for path in folder.rglob("*.*")] == ["boost/version.hpp"]


@pytest.mark.parametrize("place", ["extra/boost/boost_1_77_0", "boost/boost_1_77_0"])
def test_what_the_tree_holds_is_not_fetched(
    requirement: Requirement, state: Path, site: Site, tmp_path: Path, place: str
) -> None:
    source = tree(tmp_path / "tree")
    (source / place).mkdir(parents=True)
    assert supplied(requirement, source, state, offline=True) == [f"-DWITH_BOOST={source / place}"]
    assert asked(site) == 0


def test_a_tree_that_asks_for_nothing_gets_nothing(requirement: Requirement, state: Path, tmp_path: Path) -> None:
    """MySQL 5.6, which has no such file, and one that names no version."""
    source = tree(tmp_path / "tree", "# nothing\n")
    assert supplied(requirement, source, state, offline=True) == []
    (source / "cmake" / "boost.cmake").unlink()
    assert supplied(requirement, source, state, offline=True) == []


def test_another_version_than_the_recipe_knows_is_never_fetched(
    requirement: Requirement, state: Path, site: Site, tmp_path: Path
) -> None:
    source = tree(tmp_path / "tree", BOOST_CMAKE.replace("1_77_0", "1_78_0"))
    with pytest.raises(BuildFailed, match=r"boost_1_78_0, of which the recipe has no sha256; .* boost_1_77"):
        supplied(requirement, source, state)
    assert site.asked == []


def test_other_bytes_than_the_pinned_ones_are_thrown_away(
    requirement: Requirement, state: Path, site: Site, tmp_path: Path
) -> None:
    site.routes[PATH] = Answer(BOOST + b"more")
    with pytest.raises(DigestMismatch, match=requirement.sha256["boost_1_77_0"]):
        supplied(requirement, tree(tmp_path / "tree"), state)
    assert not list((state / "cache" / "blobs").rglob("*"))


@pytest.mark.parametrize("offline", [True, False])
def test_without_a_network_the_message_has_the_command_that_helps(
    requirement: Requirement, state: Path, site: Site, tmp_path: Path, offline: bool
) -> None:
    source = tree(tmp_path / "tree")
    if not offline:
        del site.routes[PATH]
    with pytest.raises(SourceUnavailable, match="asks for boost_1_77_0, which is not in the cache") as caught:
        supplied(requirement, source, state, offline=offline)
    message = str(caught.value)
    assert ("while offline" if offline else "answers 404") in message
    site.routes[PATH] = Answer(BOOST)
    command = message[message.index("curl -fL") :]
    assert command.endswith(f"{site.address}{PATH}")
    subprocess.run([*command.split(), "--silent"], check=True)
    assert supplied(requirement, source, state, offline=True)
    Path(command.split()[-2]).write_bytes(b"broken")
    with pytest.raises(SourceUnavailable, match="not in the cache"):
        supplied(requirement, source, state, offline=True)


@pytest.mark.parametrize(
    ("named", "address"),
    [
        ("boost_1_59_0", "https://archives.boost.io/release/1.59.0/source/boost_1_59_0.tar.bz2"),
        ("boost_1_77_0", "https://archives.boost.io/release/1.77.0/source/boost_1_77_0.tar.bz2"),
    ],
)
def test_the_committed_recipe_knows_what_5_7_and_8_0_ask_for(
    configs: Path, tmp_path: Path, named: str, address: str
) -> None:
    (requirement,) = read_model(configs / "dbms" / "mysql" / "recipes" / "cmake.toml", BuildRecipe).requires
    names = requirement.asked_by(tree(tmp_path / "tree", BOOST_CMAKE.replace("boost_1_77_0", named)))
    assert names is not None and requirement.address.format(**names) == address
    assert names["name"] in requirement.sha256


def test_a_recipe_that_requires_nothing_builds_the_trees_it_built_before(state: Path) -> None:
    """The key of a tree that is unpacked or built already must not change with what other recipes require."""
    key = Builder(BuildRecipe(system="configure"), state).unpack_key
    assert "requires" not in key


def test_a_pattern_without_a_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(
        'system = "cmake"\n[[requires]]\nasked_in = "a"\npattern = "b"\naddress = "https://x.example/"\nkeep = "c"\n'
        'argument = "d"\nsha256 = {}\n'
    )
    with pytest.raises(BadSettings, match=r"requires\.0\.pattern.*\(\?P<name>"):
        read_model(tmp_path / "bad.toml", BuildRecipe)
