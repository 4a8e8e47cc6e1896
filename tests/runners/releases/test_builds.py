"""Builds with the real tools: from git, from a tree, with a patch, in a sandbox; and Postgres itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from history.errors import BadSettings
from history.settings import read_model
from runners.engines import server_account
from runners.errors import BuildFailed, SourceUnavailable
from runners.releases import Catalogue, Installed, UnknownRelease
from runners.releases.archives import remove_tree
from runners.releases.builds import Builder, BuildRecipe, steps
from tests.runners.releases.vendorsite import Site

PROGRAM = '#include <stdio.h>\nint main(void) { puts("postgres (PostgreSQL) 17.2"); return 0; }\n'
#: What a build script can find out about the machine, written where the build may write.
SNOOP = (
    "import os, pathlib, socket\n"
    "seen = [str(p) for p in pathlib.Path('/').iterdir()]\n"
    "try:\n    socket.create_connection(('127.0.0.1', {port}), 1); net = 'reached'\n"
    "except OSError as e:\n    net = 'unreachable'\n"
    "print('SNOOP', os.geteuid(), net, sorted(seen), os.environ.get('SECRET'))\n"
)
PATCH = """--- a/server.c
+++ b/server.c
@@ -1,2 +1,2 @@
 #include <stdio.h>
-int main(void) { puts("postgres (PostgreSQL) 17.2"); return 0; }
+int main(void) { puts("postgres (PostgreSQL) 17.3"); return 0; }
"""


def source_tree(folder: Path, system: str, extra: str = "") -> Path:
    """A DBMS of one file, built by the system named."""
    folder.mkdir(parents=True)
    (folder / "server.c").write_text(PROGRAM)
    if system == "cmake":
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(server C)\nadd_executable(postgres server.c)\n"
            f"install(TARGETS postgres DESTINATION bin)\n{extra}\n"
        )
    elif system == "meson":
        (folder / "meson.build").write_text(
            "project('server', 'c')\nexecutable('postgres', 'server.c', install: true)\n"
        )
    else:
        (folder / "configure").write_text(
            "#!/bin/sh\nset -e\nCC=gcc\nfor a; do case $a in --prefix=*) p=${a#*=};; CC=*) CC=${a#*=};; esac; done\n"
            'd=$(dirname "$0")\n'
            f"{extra}\n"
            "cat >Makefile <<END\n"
            "all:\n\t$CC -o postgres $d/server.c\n"
            "install:\n\tinstall -D postgres \\$(DESTDIR)$p/bin/postgres\n"
            "END\n"
        )
        (folder / "configure").chmod(0o755)
    return folder


def repository(tree: Path, *tags: str) -> str:
    """The commit of `tree` as a git repository."""

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *identity, "-C", str(tree), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message=one")
    for tag in tags:
        git("tag", tag)
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    return git("rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path: Path, state: Path) -> Path:
    """A configuration with a git source for Postgres, and a recipe for each build system."""
    folder = tmp_path / "configs" / "dbms" / "postgres"
    (folder / "recipes").mkdir(parents=True)
    for system in ("configure", "cmake", "meson"):
        (folder / "recipes" / f"{system}.toml").write_text(f'system = "{system}"\npackages = ["gcc", "make"]\n')
    (folder / "releases.toml").write_text(
        f"""[[source]]
name = "git"
kind = "git"
url = "{tmp_path}/repo"
versions = ['REL\\.(?P<version>\\d\\d\\.\\d+)']
recipe = "configure"
"""
    )
    return tmp_path / "configs"


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory that the account which builds may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="pointdrop-builds-"))
    folder.chmod(0o755)
    yield folder
    remove_tree(folder)


@pytest.fixture
def catalogue(project: Path, state: Path) -> Catalogue:
    return Catalogue(project, state)


def says(installed: Installed) -> str:
    done = subprocess.run(installed.command("postgres"), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_tag_is_discovered_built_and_cached(catalogue: Catalogue, tmp_path: Path) -> None:
    commit = repository(source_tree(tmp_path / "repo", "configure"), "REL_17_2", "REL_17_10", "REL9_6_24", "nonsense")
    assert [release.version for release in catalogue.discover("postgres")] == ["17.2", "17.10"]
    installed = catalogue.fetch("postgres", "17.2")
    assert says(installed) == "postgres (PostgreSQL) 17.2"
    pin = catalogue.pin_of("postgres", "17.2")
    assert pin is not None and pin.upstream == f"git:{commit}"
    assert (installed.prefix / "bin" / "postgres").stat().st_uid == os.geteuid(), "no server can change what it runs"
    log = catalogue.cache.root / "builds" / f"{installed.prefix.name}.log"
    assert "make install" in log.read_text()
    (tmp_path / "repo").rename(tmp_path / "gone")
    assert catalogue.fetch("postgres", "17.2") == installed


def test_a_commit_with_and_without_a_patch_are_two_builds_each_made_once(catalogue: Catalogue, tmp_path: Path) -> None:
    commit = repository(source_tree(tmp_path / "repo", "configure"))
    patch = tmp_path / "a.patch"
    patch.write_text(PATCH)
    plain = catalogue.build_commit("postgres", commit)
    patched = catalogue.build_commit("postgres", commit, patch=patch)
    assert (says(plain), says(patched)) == ("postgres (PostgreSQL) 17.2", "postgres (PostgreSQL) 17.3")
    assert plain.release.version == f"17.2+g{commit[:10]}"
    assert patched.release.version.startswith(f"17.3+g{commit[:10]}.p")
    assert plain.release.line == patched.release.line == "17"
    assert plain.release.digest != patched.release.digest
    build_times = {path: path.stat().st_mtime_ns for path in (catalogue.cache.root / "builds").iterdir()}
    assert catalogue.build_commit("postgres", commit) == plain
    assert catalogue.build_commit("postgres", commit, patch=patch) == patched
    assert {path: path.stat().st_mtime_ns for path in (catalogue.cache.root / "builds").iterdir()} == build_times
    patch.write_text(PATCH.replace("puts", "nothing like the source"))
    with pytest.raises(BuildFailed, match=r"FAILED|malformed"):
        catalogue.build_commit("postgres", commit, patch=patch)


@pytest.mark.parametrize("system", ["configure", "cmake", "meson"])
def test_a_tree_is_built_by_every_system_with_uncommitted_changes(
    catalogue: Catalogue, tmp_path: Path, system: str
) -> None:
    tree = source_tree(tmp_path / "tree", system)
    first = catalogue.build_tree("postgres", tree, recipe=system)
    assert first.release.version.startswith("17.2+t") and says(first) == "postgres (PostgreSQL) 17.2"
    (tree / "server.c").write_text(PROGRAM.replace("17.2", "18beta1"))
    second = catalogue.build_tree("postgres", tree, recipe=system)
    assert second.release.version.startswith("18beta1+t") and second.release.line == "18"


def test_submodules_are_put_in_their_places(catalogue: Catalogue, project: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "server.c").write_text(PROGRAM)
    commit = repository(part)
    tree = source_tree(tmp_path / "repo", "configure", 'd="$d/deep/part"')
    (tree / "server.c").unlink()
    subprocess.run(["git", "init", "--quiet", str(tree)], check=True)
    subprocess.run(
        ["git", "-C", str(tree), "update-index", "--add", "--cacheinfo", f"160000,{commit},deep/part"], check=True
    )
    (tree / ".gitmodules").write_text(f'[submodule "p"]\n\tpath = deep/part\n\turl = {part}\n')
    (tree / "deep" / "part").mkdir(parents=True)
    repository(tree, "REL_17_2")
    manifest = project / "dbms" / "postgres" / "releases.toml"
    manifest.write_text(manifest.read_text() + 'submodules = ["deep/part"]\n')
    installed = catalogue.fetch("postgres", "17.2")
    assert says(installed) == "postgres (PostgreSQL) 17.2"
    assert f"deep%part@{commit}.tar" in installed.parts


def test_a_submodule_whose_files_are_in_the_tree_is_not_fetched(
    catalogue: Catalogue, project: Path, tmp_path: Path
) -> None:
    """A repository made of a source package has no commits to fetch, and no `.gitmodules` that would name them."""
    tree = source_tree(tmp_path / "repo", "configure", 'd="$d/deep/part"')
    (tree / "deep" / "part").mkdir(parents=True)
    (tree / "server.c").rename(tree / "deep" / "part" / "server.c")
    subprocess.run(["git", "init", "--quiet", str(tree)], check=True)
    repository(tree, "REL_17_2")
    manifest = project / "dbms" / "postgres" / "releases.toml"
    manifest.write_text(manifest.read_text() + 'submodules = ["deep/part"]\n')
    assert says(catalogue.fetch("postgres", "17.2")) == "postgres (PostgreSQL) 17.2"


def test_what_is_no_program_of_this_machine_is_told(catalogue: Catalogue, tmp_path: Path) -> None:
    prefix = tmp_path / "opt"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "postgres").write_bytes(b"\x7fELF of another machine")
    (prefix / "bin" / "postgres").chmod(0o755)
    with pytest.raises(SourceUnavailable, match=r"bin/postgres does not start: .*Exec format"):
        catalogue.adopt("postgres", prefix)


def test_a_failed_build_shows_the_end_of_its_log_and_what_it_needs(catalogue: Catalogue, tmp_path: Path) -> None:
    tree = source_tree(tmp_path / "tree", "configure", "echo configure: error: no libfoo found; exit 77")
    with pytest.raises(BuildFailed) as caught:
        catalogue.build_tree("postgres", tree)
    message = str(caught.value)
    assert "no libfoo found" in message and "status 77" in message and "apt-get install gcc make" in message
    assert Path(message.split("The whole log is ")[1].split(". ")[0]).is_file()
    assert list((catalogue.cache.root / "tmp").iterdir()) == []


def test_builds_never_run_as_root_and_a_sandboxed_one_sees_nothing(
    catalogue: Catalogue, tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "token")
    port = site.address.rpartition(":")[2]
    tree = source_tree(tmp_path / "tree", "configure", 'python3 "$d/snoop.py"')
    (tree / "snoop.py").write_text(SNOOP.replace("{port}", port))
    seen = {}
    for sandbox in (False, True):
        (tree / "which").write_text(str(sandbox))
        installed = catalogue.build_tree("postgres", tree, sandbox=sandbox)
        log = (catalogue.cache.root / "builds" / f"{installed.prefix.name}.log").read_text()
        seen[sandbox] = next(line for line in log.splitlines() if line.startswith("SNOOP"))
    assert not seen[False].startswith("SNOOP 0 ") and " reached " in seen[False]
    assert not seen[True].startswith("SNOOP 0 ") and " unreachable " in seen[True]
    assert "/usr" in seen[True] and "/home" not in seen[True] and "/root" not in seen[True]
    assert seen[False].endswith("None") and seen[True].endswith("None")


#: What a build may do to `$1`, where what it installed stands; `$out` is not its own.
LEADING_OUT = {
    "itself": "rm -r $1; ln -s $out $1",
    "on the way": "mv $1 x; rmdir $(dirname $1); ln -s $PWD $(dirname $1)",
    "a file": "ln -s $out/secret $1/fill_help_tables.sql",
    "a folder": "ln -s $out $1/share",
    "through another": "ln -s ../../../../../../../../.. $1/up; ln -s up$out $1/share",
}


@pytest.mark.parametrize("how", LEADING_OUT)
def test_a_sandboxed_build_leaves_no_link_that_leads_out(state: Path, how: str) -> None:
    """Root reads what was built, gives it to itself and opens it to all: it must be what was built."""
    out = state / "out"
    out.mkdir()
    (out / "secret").write_text("not theirs")
    for path in (out, out / "secret"):
        server_account().own(path)
    before = [(path.stat().st_uid, path.stat().st_mode) for path in (out, out / "secret")]
    tree = source_tree(state / "work" / "source", "configure")
    (tree / "leave.sh").write_text(f"set -e\nout={out}\n{LEADING_OUT[how]}\n")
    script = (tree / "configure").read_text()
    (tree / "configure").write_text(script.replace("\nEND\n", "\n\tsh $d/leave.sh \\$(DESTDIR)$p\nEND\n"))
    builder = Builder(BuildRecipe(system="configure"), state, sandbox=True)
    with pytest.raises(BuildFailed, match="leads out"):
        builder.build(tree, state / "work" / "into", Path("/opt/some/x"))
    assert [(path.stat().st_uid, path.stat().st_mode) for path in (out, out / "secret")] == before


def test_links_of_a_sandboxed_build_to_its_own_files_stay(state: Path) -> None:
    tree = source_tree(state / "work" / "source", "configure")
    (tree / "leave.sh").write_text("ln -s postgres $1/bin/short; ln -s /opt/some/x/bin/short $1/bin/long\n")
    script = (tree / "configure").read_text()
    (tree / "configure").write_text(script.replace("\nEND\n", "\n\tsh $d/leave.sh \\$(DESTDIR)$p\nEND\n"))
    into = state / "work" / "into"
    Builder(BuildRecipe(system="configure"), state, sandbox=True).build(tree, into, Path("/opt/some/x"))
    assert (into / "bin" / "long").readlink() == Path("/opt/some/x/bin/short")


def test_an_installed_prefix_is_copied_and_named_after_its_contents(
    catalogue: Catalogue, project: Path, tmp_path: Path
) -> None:
    prefix = tmp_path / "opt"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 17.2 (Debian 17.2-1)'\n")
    (prefix / "bin" / "postgres").chmod(0o755)
    first = catalogue.adopt("postgres", prefix)
    assert first.release.version.startswith("17.2+l")
    shutil.copytree(prefix, tmp_path / "elsewhere")
    assert catalogue.adopt("postgres", tmp_path / "elsewhere").prefix == first.prefix, "only contents count"
    (prefix / "bin" / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 17.3'\n")
    assert says(first) == "postgres (PostgreSQL) 17.2 (Debian 17.2-1)", "a change underneath changes nothing"
    assert catalogue.adopt("postgres", prefix).release.version.startswith("17.3+l")


@pytest.mark.parametrize("ref", ["--upload-pack=touch /tmp/x", "a..b", "", "ext::sh -c x"])
def test_what_is_no_ref_never_reaches_git(catalogue: Catalogue, ref: str) -> None:
    with pytest.raises(UnknownRelease, match="no tag, branch or commit"):
        catalogue.build_commit("postgres", ref)


def test_recipes_that_cannot_be_used_name_file_and_key(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('system = "autotools"\n')
    with pytest.raises(BadSettings, match=r"bad\.toml(.|\n)*system(.|\n)*configure"):
        read_model(tmp_path / "bad.toml", BuildRecipe)
    with pytest.raises(BadSettings, match=r"none\.toml"):
        read_model(tmp_path / "none.toml", BuildRecipe)


def test_every_committed_recipe_can_be_used(configs: Path) -> None:
    recipes = {path: read_model(path, BuildRecipe) for path in configs.glob("dbms/*/recipes/*.toml")}
    assert {recipe.system for recipe in recipes.values()} == {"configure", "cmake", "meson"}
    assert all(recipe.packages for recipe in recipes.values())


def test_the_commands_of_a_build_install_below_the_stage_for_the_prefix() -> None:
    paths = {name: Path("/w") / name for name in ("source", "work", "stage")}
    recipe = BuildRecipe(system="cmake", arguments=("-G", "Ninja"))
    commands = steps(recipe, prefix=Path("/p"), jobs=3, ccache=True, **paths)
    assert commands[0][0][:6] == ["cmake", "-S", "/w/source", "-B", "/w/work", "-DCMAKE_INSTALL_PREFIX=/p"]
    assert "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache" in commands[0][0] and commands[0][0][-2:] == ["-G", "Ninja"]
    assert commands[1][0][-2:] == ["--parallel", "3"]
    meson = steps(BuildRecipe(system="meson"), prefix=Path("/p"), jobs=3, ccache=False, **paths)
    assert "--destdir=/w/stage" in meson[-1][0]


LINKS = {
    "no link": lambda base: base / "state",
    "the state directory is one": lambda base: link(base / "link", base / "state"),
    "the cache is one": lambda base: link(base / "state" / "ccache", base / "large").parent,
    "the cache is one to what is not there yet": lambda base: link(base / "state" / "ccache", base / "a" / "b").parent,
    "the cache is a relative one": lambda base: link(base / "state" / "ccache", Path("../large")).parent,
}


def link(place: Path, target: Path) -> Path:
    place.symlink_to(target)
    return place


@pytest.mark.parametrize("how", LINKS)
def test_a_sandboxed_build_takes_from_ccache_and_adds_nothing(state: Path, how: str) -> None:
    """Also where the cache is reached through a link, and the second build has other directories."""
    for name in ("state", "large"):
        (state / name).mkdir()
    root = LINKS[how](state)

    def build(name: str, program: str, *, sandbox: bool) -> str:
        work = root / name
        work.mkdir()
        tree = source_tree(work / "source", "configure")
        (tree / "server.c").write_text(program)
        script = (tree / "configure").read_text()
        script = script.replace("$CC -o postgres $d/server.c", "$CC -c $d/server.c && gcc -o postgres server.o")
        script = script.replace("\tinstall -D", "\tinstall -D ccache.log \\$(DESTDIR)$p/ccache.log\n\tinstall -D")
        (tree / "configure").write_text(script)
        recipe = BuildRecipe(system="configure", environment={"CCACHE_LOGFILE": "ccache.log"})
        Builder(recipe, root, sandbox=sandbox, jobs=1).build(tree, work / "into", Path("/opt") / name)
        log = (work / "into" / "ccache.log").read_text()
        return re.findall(r"Result: (direct_cache_\w+)", log)[0]

    other = PROGRAM.replace("17.2", "17.3")
    assert build("first", PROGRAM, sandbox=False) == "direct_cache_miss"
    assert build("second", PROGRAM, sandbox=True) == "direct_cache_hit"
    assert build("third", other, sandbox=True) == "direct_cache_miss"
    assert build("fourth", other, sandbox=True) == "direct_cache_miss", "a stranger's build adds nothing"


def test_a_cache_that_builds_cannot_reach_is_told_before_anything_is_built(state: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has folders that its builds cannot enter")
    closed = state / "closed"
    closed.mkdir(mode=0o700)
    (state / "ccache").symlink_to(closed / "cache")
    tree = source_tree(state / "work" / "source", "configure")
    with pytest.raises(BuildFailed, match=f"may not enter {closed}"):
        Builder(BuildRecipe(system="configure"), state, sandbox=True).build(
            tree, state / "work" / "into", Path("/opt/x")
        )


def test_a_build_that_eats_the_disk_is_stopped(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runners.releases.builds.LEAST_FREE_BYTES", 1 << 60)
    monkeypatch.setattr("runners.bounds.LOOK_S", 0.1)
    tree = source_tree(state / "work" / "source", "configure", "sleep 600")
    with pytest.raises(BuildFailed, match=r"the build was stopped: less than .* GiB are free"):
        Builder(BuildRecipe(system="configure"), state, sandbox=True).build(
            tree, state / "work" / "into", Path("/opt/x")
        )
