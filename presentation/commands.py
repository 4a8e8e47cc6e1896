"""What to type to see a finding again, and where its source is compared. Pure.

>>> configs = frozenset({("mysql", "default")})
>>> measurable = Measurable(servers=frozenset({"small"}), configs=configs, tests={"insert": ("l.i0",)})
>>> measurable.has(SeriesKey.parse("mysql|8.0|small|default|insert|l.i0|cpu/o"))
True
>>> measurable.has(SeriesKey.parse("mysql|8.0|ser4|cy10a_bee|insert|l.i0|cpupq"))
False
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from history.metrics import MetricRegistry
from history.model import Finding, Move, Row, SeriesKey
from presentation.headline import headline_moves

#: Tests that a command names; the largest changes come first.
MOST_TESTS = 4


class Measurable(Row):
    """The names that the configuration has: what can be measured here. Published figures, and servers that are gone,
    cannot."""

    servers: frozenset[str]
    configs: frozenset[tuple[str, str]]
    """(DBMS, config)."""
    tests: dict[str, tuple[str, ...]]
    """By benchmark."""

    def has(self, key: SeriesKey) -> bool:
        """Whether a series can be measured again just as it was."""
        there = key.server in self.servers and (key.dbms, key.config) in self.configs
        return there and key.test in self.tests.get(key.benchmark, ())

    def known(self, benchmark: str, tests: Iterable[str]) -> list[str]:
        """Those of the tests that the benchmark has by this name."""
        return [test for test in tests if test in self.tests.get(benchmark, ())]


def measurable_here(finding: Finding, measurable: Measurable | None) -> bool:
    """Whether any of a finding's series can be measured again; without `measurable`, all can."""
    return measurable is None or any(measurable.has(move.key) for move in finding.moves)


class Command(Row):
    """A command line, and what it is for."""

    why: str
    line: str


def commands(
    finding: Finding,
    metrics: MetricRegistry,
    *,
    measurable: Measurable | None = None,
    dataset: str = "",
    run: str = "",
    source: str = "",
) -> list[Command]:
    """How to measure a finding again, to see how the detector came to it, and to narrow it down.

    Every name is quoted for the shell, since names may come from elsewhere. `measurable` is what can be measured here,
    everything if None; `dataset` the published dataset that its figures come from; `run` the newest run of the release;
    `source` the pattern by which the source of both sides is compared.
    """
    moves = headline_moves(finding, metrics)
    # Rather a smaller move that can be measured here than a larger one that cannot.
    repeatable = moves if measurable is None else [move for move in moves if measurable.has(move.key)]
    repeatable = repeatable or [move for move in finding.moves if measurable is None or measurable.has(move.key)]
    shown = (repeatable or moves)[0].key
    again = _measured_again(finding, repeatable or moves, metrics, measurable if not repeatable else None)
    purposes = [again] if repeatable else []
    if repeatable and finding.cause == "toolchain":
        purposes = [*_built_alike(finding, repeatable, metrics, source), *purposes]
    published = ["--dataset", dataset] if dataset else []
    explained = "Show how the detector came to it"
    if not repeatable:
        # Said once, at the first command, since the one that measures again may not exist.
        figures = f"were published (dataset {dataset})" if dataset else "are of a place that is not configured here"
        explained = f"These figures {figures}. Show how the detector came to them"
    purposes.append((explained, ["explain", shown.id, *published]))
    if dataset:
        replay = ["replay", *published, "--dbms", finding.dbms, "--line", finding.line, "--format", "text"]
        purposes.append(("Show when it would have been found", replay))
    if not repeatable:
        purposes.append(again)
    if run:
        purposes.append((f"Repeat the run that measured {finding.release}, from its bundle", ["repeat", run]))
    if repeatable and finding.kind == "regression" and finding.cause in ("product", "both"):
        bisect = ["bisect", finding.dbms, finding.previous, finding.release, "--test", shown.test]
        bisect += ["--metric", shown.metric, *_place(shown)]
        purposes.append(("Narrow it down: first releases in between, then with --repository commits", bisect))
    return [Command(why=why, line=shlex.join(["pointdrop", *words])) for why, words in purposes if words]


def _place(key: SeriesKey) -> list[str]:
    return ["--server", key.server, "--config", key.config, "--benchmark", key.benchmark]


def _built_alike(
    finding: Finding, moves: Sequence[Move], metrics: MetricRegistry, pattern: str
) -> list[tuple[str, list[str]]]:
    """Both sides built here by one compiler, then compared: what is left of the step is the code's. Nothing where the
    tags of their source are not known, or are one."""
    # `17.2+debian` is built from the tag of 17.2.
    named = {side: getattr(finding, side).partition("+")[0] for side in ("previous", "release")}
    tags = source_tags(pattern, finding.model_copy(update=named))
    if tags is None or tags[0] == tags[1]:
        return []
    builds = [
        (f"Tell code from compiler: build {version} here", ["releases", "build", finding.dbms, "--commit", tag])
        for version, tag in zip((finding.previous, finding.release), tags, strict=True)
    ]
    sides = [f"{finding.dbms}@git:{tag}" for tag in tags]
    _, measured = _measured_again(finding, moves, metrics, None, sides)
    return [*builds, ("Then compare the two builds, made by one compiler", measured)]


def _measured_again(
    finding: Finding,
    moves: Sequence[Move],
    metrics: MetricRegistry,
    elsewhere: Measurable | None,
    sides: Sequence[str] = (),
) -> tuple[str, list[str]]:
    """Both releases (or `sides`, as `pointdrop compare` names them) in interleaved blocks: as they were measured, or at
    a small scale on a machine of the reader's. No words where no machine can."""
    first = moves[0].key
    lane = metrics[first.metric].lane
    place = (first.server, first.config, first.benchmark)
    tests = [m.key.test for m in moves if (m.key.server, m.key.config, m.key.benchmark) == place]
    tests = list(dict.fromkeys(tests))
    where = _place(first)
    why = "Measure both releases again, blocks interleaved"
    if elsewhere:
        tests = elsewhere.known(first.benchmark, tests)
        config = ["--config", first.config] if (first.dbms, first.config) in elsewhere.configs else []
        where = [*config, "--benchmark", first.benchmark]
        why = "Measure both releases on a machine of your own, blocks interleaved, at the scale of server local"
    sides = sides or [f"{finding.dbms}@{version}" for version in (finding.previous, finding.release)]
    words = ["compare", *sides, *where, "--lane", lane, "--tests", ",".join(tests[:MOST_TESTS])]
    return why, words if tests else []


def source_address(pattern: str, finding: Finding) -> str:
    """Where the source of both sides is compared; empty without a pattern, and for versions that are not plain numbers,
    since a foreign version in an address would be foreign text in Markdown."""
    versions = (finding.previous, finding.release)
    if not pattern or not all(re.fullmatch(r"\d+(\.\d+)*", version) for version in versions):
        return ""
    dotless = [version.replace(".", "_") for version in versions]
    return pattern.format(previous=versions[0], release=versions[1], previous_=dotless[0], release_=dotless[1])


def source_tags(pattern: str, finding: Finding) -> tuple[str, str] | None:
    """The tags of both sides, as that address names them: `REL_18_1`, `REL_18_2`."""
    address = re.fullmatch(r".*/compare/([\w.+-]+?)\.\.\.([\w.+-]+)", source_address(pattern, finding))
    return (address[1], address[2]) if address else None
