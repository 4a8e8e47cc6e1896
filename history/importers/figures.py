"""What importers of foreign formats produce, and how figures become sessions, runs and blocks.

An importer is a module with `parse(content, about)`: pure, from bytes to figures, and never a wrong answer: what it
cannot read for certain it yields as a `Rejection`, and then nothing of the file is stored.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from history.errors import InvalidRecord
from history.importing import RecordLine, Rejection
from history.interchange import Record
from history.limits import MAX_REJECTIONS, checked_json
from history.metrics import shipped_metrics
from history.model import Better, Block, Fingerprint, Measurement, Release, Run, Session
from history.records import text_of
from history.versions import line_of

#: The moment of figures that carry none; it says "unknown", and is the same at every import.
UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)

#: Names of other tools for metrics of which more is better.
FOREIGN_RATES = frozenset({"ops", "throughput", "bandwidth", "events", "requests"})

#: Parts of a name that `history export` writes for formats of one release.
ADDRESS = ("dbms", "version", "server", "config", "benchmark", "test")

#: The line of commits, where none is told.
COMMIT_LINE = "main"

RATE_ENDS = ("/s", "/sec", "per second", "_per_second", "per_sec")


@dataclass(frozen=True)
class About:
    """What a foreign file does not say, from the command line."""

    dbms: str
    version: str = ""
    line: str = ""
    server: str = "imported"
    host: str = "imported"
    config: str = "default"
    benchmark: str = "imported"
    test: str = ""
    started: datetime = UNKNOWN_TIME
    label: str = ""
    """Tells repetitions of the same measurement apart."""
    source: str = ""
    """Citation or address, kept with every release."""
    better: Mapping[str, Better] = field(default_factory=dict)
    """Direction by metric, where the name does not tell."""


class Figure(NamedTuple):
    """One value of one test of one release, in the words of the project."""

    line_number: int
    test: str
    metric: str
    value: float
    unit: str = ""
    better: Better | None = None
    """None where the file does not say: then `direction` does."""
    group: str = ""
    operations: int | None = None
    started: datetime | None = None
    dbms: str = ""
    version: str = ""
    line: str = ""
    server: str = ""
    config: str = ""
    benchmark: str = ""
    source: str = ""
    samples: tuple[float, ...] = ()
    """Per second, where the format has them."""


Parsed = Iterator[Figure | Rejection]


def direction(metric: str, unit: str, about: About) -> Better:
    """The better direction: as told, else by the name of the metric or of a unit that is a rate."""
    if metric in about.better:
        return about.better[metric]
    names = {metric.lower(), unit.lower()}
    if names & FOREIGN_RATES or any(name.endswith(RATE_ENDS) for name in names):
        return "higher"
    # Only rates of ours are known by their name alone: a `p99` of another tool is a response time.
    metrics = shipped_metrics()
    ours = (metrics[metrics.named(name)] for name in names)
    return "higher" if any(registered.leads and registered.better == "higher" for registered in ours) else "lower"


def number(text: str) -> float:
    """A finite number, as tables write them. InvalidRecord for anything else.

    >>> number("1,234.5"), number("12%")
    (1234.5, 12.0)
    """
    try:
        value = float(text.strip().replace(",", "").removesuffix("%"))
    except ValueError:
        raise InvalidRecord(f"{text!r} is no number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise InvalidRecord(f"{text!r} is not finite")
    return value


def commit_release(moment: datetime, commit: str, about: About) -> dict[str, Any]:
    """Version and line of a figure that was measured on a commit, unless the command line names the release."""
    if about.version:
        return {"version": about.version}
    return {"version": commit_version(moment, commit), "line": about.line or COMMIT_LINE}


def commit_version(moment: datetime, commit: str) -> str:
    """The version of a commit on a branch: sorts by time.

    >>> commit_version(datetime(2026, 1, 5, 12, 30, tzinfo=UTC), "3f2a9c1d44e0")
    '20260105.123000+3f2a9c1d44'
    """
    return f"{moment.astimezone(UTC):%Y%m%d.%H%M%S}+{commit[:10]}"


def decoded(content: bytes) -> str:
    """Text. InvalidRecord when the bytes are not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRecord(f"not UTF-8 at byte {error.start}") from None


def read_json(content: bytes, file_type: Any, title: str) -> Any:
    """A JSON file as `file_type`. InvalidRecord says that it is not of the format `title`, and why."""
    try:
        return TypeAdapter(file_type).validate_python(checked_json(decoded(content)))
    except (ValueError, InvalidRecord) as error:  # pydantic's errors are ValueErrors
        raise InvalidRecord(f"not {title}: {'; '.join(str(error).splitlines()[:3])}") from None


def taken_apart(name: str) -> dict[str, Any]:
    """Fields of a figure from the name of its test, where it is an address that we wrote: `snapshots.address`.

    >>> taken_apart("mysql/8.0.30/small/z12c/sysbench/point-query")["version"], taken_apart("sort/1000")
    ('8.0.30', {'test': 'sort/1000'})
    """
    parts = name.split("/", len(ADDRESS) - 1)
    return dict(zip(ADDRESS, parts, strict=True)) if len(parts) == len(ADDRESS) else {"test": name}


def _id(*parts: object) -> str:
    return "import/" + hashlib.sha256(text_of([str(part) for part in parts]).encode()).hexdigest()[:20]


class _Place(NamedTuple):
    """What figures of one run share."""

    started: datetime
    server: str
    dbms: str
    line: str
    version: str
    source: str
    config: str
    benchmark: str


def _place(figure: Figure, about: About) -> _Place:
    place = _Place(*(getattr(figure, name) or getattr(about, name) for name in _Place._fields))
    if not place.dbms:
        raise InvalidRecord("the file does not name the DBMS; give it with --dbms")
    if not place.version:
        raise InvalidRecord("the file does not name the release; give it with --release")
    return place if place.line else place._replace(line=line_of(place.dbms, place.version))


def records(format_name: str, parsed: Iterable[Figure | Rejection], about: About) -> Iterator[RecordLine]:
    """Records for `history.importing.import_lines`: a session a moment and server, a run a release and config, and the
    nth value of the same test and metric in the nth block. The same file gives the same ids."""
    places: dict[_Place, list[Figure]] = defaultdict(list)
    rejected = 0
    for item in parsed:
        if isinstance(item, Rejection):
            problem = item
        else:
            try:
                places[_place(item, about)].append(item)
                continue
            except (InvalidRecord, ValueError) as error:
                problem = Rejection(line=item.line_number, reason=str(error))
        rejected += 1
        yield RecordLine(problem.line, None, problem.reason)
        if rejected > MAX_REJECTIONS:
            return
    if not places and not rejected:
        yield RecordLine(0, None, f"no figures of the format {format_name} in the file")
    yielded_ids: set[str] = set()
    for place, figures in places.items():
        try:
            for record in _run(format_name, place, figures, about):
                if record.id not in yielded_ids:
                    yielded_ids.add(record.id)
                    yield RecordLine(figures[0].line_number, record)
        except ValueError as error:
            yield RecordLine(figures[0].line_number, None, str(error).replace("\n", "; "))


def _run(format_name: str, place: _Place, figures: list[Figure], about: About) -> Iterator[Record]:
    session = Session(
        id=_id("session", format_name, about.label, about.host, place.server, place.started.isoformat()),
        host=about.host,
        server=place.server,
        plan=f"imported from {format_name}",
        fingerprint=Fingerprint(facts={"imported": format_name}),
        started=place.started,
    )
    yield session
    run = Run(
        id=_id("run", session.id, *place),
        session_id=session.id,
        release=Release(dbms=place.dbms, version=place.version, line=place.line, source=place.source),
        config=place.config,
        benchmark=place.benchmark,
        profile="imported",
    )
    yield run
    blocks: list[dict[tuple[str, str], Figure]] = []
    for figure in figures:
        name = (figure.test, figure.metric)
        free = next((block for block in blocks if name not in block), None)
        if free is None:
            blocks.append(free := {})
        free[name] = figure
    for index, block in enumerate(blocks, 1):
        samples: dict[str, dict[str, tuple[float, ...]]] = defaultdict(dict)
        for figure in block.values():
            if figure.samples:
                samples[figure.test][figure.metric] = figure.samples
        yield Block(
            id=f"{run.id}/{index}",
            run_id=run.id,
            number=index,
            started=place.started,
            ended=place.started + timedelta(seconds=max((len(figure.samples) for figure in block.values()), default=0)),
            measurements=tuple(_measurement(figure, about) for figure in block.values()),
            samples=samples,
        )


def _measurement(figure: Figure, about: About) -> Measurement:
    values = {name: getattr(figure, name) for name in Measurement.model_fields if name != "warnings"}
    return Measurement(**values | {"better": figure.better or direction(figure.metric, figure.unit, about)})
