"""What a counted server sees of the CPU, and that its counts do not follow it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from history.model import Block, Release
from runners.cores import Cores
from runners.engines import engine_for
from runners.instructions import valgrind
from runners.instructions.callgrind import CallgrindProfile
from runners.instructions.counted_cpu import MASKED, SIZES, counted_cpu, host_flags, pins
from runners.instructions.valgrind import Callgrind
from runners.meters.fingerprint import host_fingerprint
from runners.releases import Catalogue
from runners.sessions import plan_session, run_session
from runners.settings import load_benchmark, load_profile, load_server
from runners.settings.dbms import Sizing, load_dbms, render
from tests.folders import open_folder
from tests.runners.instructions.emulated_cpus import CPUS, valgrind_with

LOADER = Path("/lib64/ld-linux-x86-64.so.2")
only_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="other architectures are not pinned")


def glibc_view(library: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """What the loader of this machine has made of the CPU that valgrind shows it, by the name it gives it."""
    environment = {"PATH": os.environ["PATH"], "VALGRIND_LIB": str(library), **variables}
    command = [
        "valgrind",
        "-q",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        str(LOADER),
        "--list-diagnostics",
    ]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^x86\.cpu_features\.(\S+)=(\S+)$", text, re.MULTILINE))


@pytest.fixture(scope="module")
def libraries() -> Iterator[dict[str, Path]]:
    """Valgrind's folder by the CPU that it emulates, where the account of the servers can read it."""
    with open_folder() as folder:
        yield {cpu: valgrind_with(cpu, folder) for cpu in CPUS}


@only_x86
def test_glibc_chooses_by_the_same_on_every_cpu(libraries: dict[str, Path]) -> None:
    chosen_by = [f"preferred.{name}" for name in MASKED] + [name.removeprefix("x86_") for name in SIZES]
    #: ERMS, BMI and AVX2 are bits of the second word of leaf 7; SSSE3, SSE4 and AVX of the third of leaf 1.
    leaf1, leaf7 = "features[0x0].active[0x2]", "features[0x1].active[0x1]"
    views = {cpu: glibc_view(library, {}) for cpu, library in libraries.items()}
    assert len({(view[leaf1], view[leaf7]) for view in views.values()}) == len(CPUS), "the masks do nothing"
    assert len({tuple(view.get(name) for name in chosen_by) for view in views.values()}) > 1

    pinned = {cpu: glibc_view(library, pins()) for cpu, library in libraries.items()}
    for view in pinned.values():
        assert int(view[leaf7], 16) & 0x328 == 0, "AVX2, BMI1, BMI2, ERMS"
        assert int(view[leaf1], 16) & 0x18981200 == 0, "AVX, OSXSAVE, FMA, POPCNT, SSE4, SSSE3"
        assert all(int(view[f"preferred.{name}"], 16) == 0 for name in MASKED if f"preferred.{name}" in view)
        sizes = {name.removeprefix("x86_"): size for name, size in SIZES.items()}
        assert all(int(view[name], 16) == size for name, size in sizes.items() if name in view)
    assert len({tuple(view.get(name) for name in chosen_by) for view in pinned.values()}) == 1


def test_only_a_counted_session_has_the_pin_in_its_fingerprint(tmp_path: Path) -> None:
    timed, counted = (host_fingerprint(tmp_path, {}, counted=lane).facts for lane in (False, True))
    assert counted.items() - timed.items() == {("counted_cpu", counted_cpu(host_flags()))}
    assert timed.items() <= counted.items()


def test_flags_are_those_the_kernel_names(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: X\nflags\t\t: fpu sse2 avx2\nbugs\t\t: none\n\nprocessor\t: 1\n")
    assert host_flags(cpuinfo) == {"fpu", "sse2", "avx2"}
    cpuinfo.write_text("processor\t: 0\nhart\t: 0\n")
    assert host_flags(cpuinfo) == frozenset()
    names = {flag.split("=")[0] for flag in counted_cpu(host_flags(cpuinfo), "riscv64").split()}
    assert {"baseline,", "libraries"} <= names


# --- a real server ----------------------------------------------------------------------------------------------

#: What a session of Postgres does as wall time has it: wait when its client's next statement is not there yet, and
#: report statistics once a second.
BY_WALL_TIME = re.compile(
    r"WaitEventSetWait|ModifyWaitEvent|secure_(raw_)?read|ProcessClientReadInterrupt|pq_recvbuf|pgstat_|recv$|epoll_|"
    r"__errno_location|GetCurrentTimestamp|clock_gettime|gettimeofday|__memset|memset"
)
#: Postgres asks the CPU by itself for these.
BY_ITSELF = re.compile(r"pg_comp_crc32c|pg_popcount")
#: Instructions an operation; less than that has what runs once in a while, as a timer that is set.
PART = 20
TESTS = ("point-query.range100", "insert.range100")

Costs = dict[tuple[str, str], float]
Count = Callable[..., dict[str, Costs]]


def work(costs: Costs, *, without: re.Pattern[str] | None = None) -> float:
    """Instructions that do not follow wall time, and not the functions `without`."""
    return sum(
        cost
        for (function, _), cost in costs.items()
        if not BY_WALL_TIME.match(function) and not (without and without.match(function))
    )


def from_libraries(costs: Costs) -> set[str]:
    """Functions of the C library that have a part in a count; an address where the library has no symbols."""
    return {
        function
        for (function, place), cost in costs.items()
        if re.match(r"lib[cm][.-]", place) and cost >= PART and not BY_WALL_TIME.match(function)
    }


@pytest.fixture(scope="module")
def catalogue(configs: Path, download_state: Path) -> Iterator[Catalogue]:
    catalogue = Catalogue(configs, download_state)
    yield catalogue
    catalogue.close()


@only_x86
@pytest.mark.e2e
@pytest.mark.parametrize("sandbox", [False, True])
def test_pins_reach_every_process_of_a_server(sandbox: bool, catalogue: Catalogue, configs: Path) -> None:
    """Neither the change of account nor bubblewrap takes them out."""
    installed = catalogue.fetch("postgres", "17.5")
    sizing = Sizing(pool_mib=64, log_mib=64, cores=2, connections=20)
    options = render(load_dbms("postgres", configs), "default", "17.5", sizing, ("instructions",))
    with (
        open_folder() as state,
        engine_for(installed, options, state / "server", state=state, sandbox=sandbox) as engine,
    ):
        engine.initialise()
        engine.start(wrapper=Callgrind(engine.directory).wrapper)
        engine.wait_ready()
        environments = []
        for pid in engine.server.pids():
            with suppress(OSError):  # some children live for a moment
                environments.append(Path(f"/proc/{pid}/environ").read_text().split("\0"))
    assert len(environments) > 3, "a postmaster and its children"
    for environment in environments:
        assert {f"{name}={value}" for name, value in pins().items()} <= set(environment)


@pytest.fixture(scope="module")
def count(libraries: dict[str, Path], configs: Path, catalogue: Catalogue) -> Iterator[Count]:
    """`count(cpu, pinned=...)`: one block of Postgres counted on that CPU, once; by test, instructions an operation by
    (function, object)."""
    release = Release(dbms="postgres", version="17.5", line="17", digest="17")
    benchmark = load_benchmark("sysbench", configs)
    plan = plan_session(
        session_id="s", plan="test", server=load_server("local", configs), benchmark=benchmark,
        tests=benchmark.select(TESTS), profile=load_profile("instructions", configs), releases=[release],
        control=release, configs=("default",), blocks=1, seed=11, noisy_repeats=0,
    )  # fmt: skip
    take, wrapper = Callgrind.take, vars(Callgrind)["wrapper"].fget
    with open_folder() as state:

        @cache
        def counted(cpu: str, *, pinned: bool = True) -> dict[str, Costs]:
            before = ["env", f"VALGRIND_LIB={libraries[cpu]}"]
            profiles: list[CallgrindProfile] = []
            blocks: list[Block] = []

            def taking(self: Callgrind, pid: int) -> CallgrindProfile:
                profiles.append(take(self, pid))
                return profiles[-1]

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Callgrind, "take", taking)
                patch.setattr(Callgrind, "wrapper", property(lambda self: [*before, *wrapper(self)]))
                if not pinned:
                    patch.setattr(valgrind, "pins", dict)
                run_session(
                    plan,
                    catalogue,
                    lambda _session, _run, block: blocks.append(block),
                    configs=configs,
                    state=state,
                    cores=Cores(state),
                )
            values = {row.test: row.value for row in blocks[0].measurements if row.metric == "insn/o"}
            measured = [test.name for test in plan.tests if test.reported]
            return {
                test: {key: cost / profile.total * values[test] for key, cost in profile.functions.items()}
                for test, profile in zip(measured, profiles, strict=True)
            }

        yield counted


@only_x86
@pytest.mark.e2e
def test_counts_do_not_follow_the_cpu(count: Count) -> None:
    newest, older, oldest = (count(cpu) for cpu in ("haswell", "westmere", "core2"))
    for test in TESTS:
        assert from_libraries(newest[test]) == from_libraries(older[test]) == from_libraries(oldest[test])
        assert work(older[test]) == pytest.approx(work(newest[test]), rel=5e-4)
        itself = work(newest[test], without=BY_ITSELF)
        assert work(oldest[test], without=BY_ITSELF) == pytest.approx(itself, rel=5e-4)
    # What Postgres chooses by itself stays: a CPU without SSE4.2 is another machine, and no pin hides it.
    assert work(oldest["insert.range100"]) > 1.005 * work(newest["insert.range100"])


@only_x86
@pytest.mark.e2e
def test_without_the_pin_the_c_library_chooses_by_the_cpu(count: Count) -> None:
    newest, older = (count(cpu, pinned=False) for cpu in ("haswell", "westmere"))
    for test in TESTS:
        assert from_libraries(newest[test]) != from_libraries(older[test])
        assert from_libraries(newest[test]) != from_libraries(count("haswell")[test])
