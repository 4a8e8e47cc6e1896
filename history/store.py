"""The append-only history behind one SQLAlchemy URL.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/history.db") as store:
...     store.pin_release(Release(dbms="postgres", version="17.2", line="17", digest="00"))
...     [release.version for release in store.releases("postgres")]
True
['17.2']

Every `append_*` is one transaction: when it returns, the row is on disk; True when it was new, False when the same
row was there. When the database cannot take a session, run or block, it is kept in the spool and StoreUnavailable
says where (`history.spool`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from sqlalchemy import URL, Connection, Engine
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from history import assemble, canary, frames, outcomes, queries, writing
from history.database import is_passing, migrate, open_engine, parse_url
from history.database import reading as read_transaction
from history.database import writing as write_transaction
from history.errors import StoreUnavailable
from history.interchange import Record
from history.model import (
    MAJORS,
    Block,
    CallCost,
    CanaryReading,
    EffectiveSetting,
    Finding,
    FindingEvent,
    FunctionCost,
    IssueLink,
    LineKey,
    Release,
    Run,
    Series,
    Session,
    StatementPlan,
)
from history.outcomes import Supersession
from history.queries import RunFilters, TimedFilters
from history.spool import Spool

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")

#: A transaction that failed for a passing reason (deadlock, lost connection) is tried so often.
ATTEMPTS = 4
#: Seconds; the waits between attempts grow up to this.
LONGEST_WAIT = 5.0


class Store:
    """One history. Use as a context manager; one thread at a time."""

    def __init__(self, engine: Engine, spool: Spool | None = None) -> None:
        self.engine = engine
        self._row_keys = writing.RowKeys()
        self._spool = spool or Spool()
        self._parent_rows: dict[tuple[type, str], Session | Run] = {}
        """Sessions and runs of this process, by type and id: a spooled block needs them."""
        self._spooled: set[tuple[type, str]] = set()
        """Records that went to the spool, by type and id: the next row of such a session or run brings it along."""

    @classmethod
    def open(cls, url: str | URL, spool: Spool | None = None) -> Store:
        """Open a history, creating and migrating it. StoreUnavailable when that cannot be."""
        store = cls(open_engine(parse_url(url)), spool)
        try:
            migrate(store.engine)
        except BaseException:
            store.close()
            raise
        return store

    @property
    def url(self) -> URL:
        """`str` of it hides the password."""
        return self.engine.url

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing ---------------------------------------------------------------------------------------------------

    def transact(self, work: Callable[[Connection, writing.RowKeys], T]) -> T:
        """Run `work` in one transaction, again after a passing failure; it must not mind being run twice."""
        attempts = Retrying(
            retry=retry_if_exception(is_passing),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(max=LONGEST_WAIT),
            reraise=True,
        )
        done: T = attempts(self._transact, work)
        return done

    def _transact(self, work: Callable[[Connection, writing.RowKeys], T]) -> T:
        try:
            with write_transaction(self.engine) as connection:
                return work(connection, self._row_keys)
        except BaseException:
            self._row_keys.forget()
            raise

    def _append(self, record: Record) -> bool:
        parents = self._parents(record)
        unsent = [parent for parent in parents if (type(parent), parent.id) in self._spooled]

        def put_all(connection: Connection, row_keys: writing.RowKeys) -> bool:
            for parent in unsent:
                self.put(connection, row_keys, parent)
            return self.put(connection, row_keys, record)

        try:
            new = self.transact(put_all)
        except StoreUnavailable as error:
            path = self._spool.keep([*parents, record])
            self._spooled.update((type(row), row.id) for row in (*parents, record))
            self._remember(record)
            raise StoreUnavailable(
                f"{error}. The results are kept in {path}; when the database is back: pointdrop history recover"
            ) from error
        self._spooled.difference_update((type(row), row.id) for row in (*unsent, record))
        self._remember(record)
        return new

    def _remember(self, record: Record) -> None:
        """Only what the history or the spool took: a block must never be spooled below a run that was refused."""
        if isinstance(record, Session | Run):
            self._parent_rows[type(record), record.id] = record

    def _parents(self, record: Record) -> list[Record]:
        """The session and run that `record` belongs to, as far as this process appended them."""
        parents: list[Record] = []
        parent: Record | None = record
        if isinstance(parent, Block) and (parent := self._parent_rows.get((Run, parent.run_id))):
            parents.append(parent)
        if isinstance(parent, Run) and (parent := self._parent_rows.get((Session, parent.session_id))):
            parents.insert(0, parent)
        return parents

    @staticmethod
    def put(connection: Connection, row_keys: writing.RowKeys, record: Record) -> bool:
        """Append one record in a transaction that is open already."""
        if isinstance(record, Session):
            return writing.append_session(connection, row_keys, record)
        if isinstance(record, Run):
            return writing.append_run(connection, row_keys, record)
        if isinstance(record, CanaryReading):
            return canary.append_reading(connection, row_keys, record)
        return writing.append_block(connection, row_keys, record)

    def append_session(self, session: Session) -> bool:
        """Idempotent; ConflictingRecord when the id is stored with other contents."""
        return self._append(session)

    def append_run(self, run: Run) -> bool:
        """Idempotent; UnknownSeries without its session, ConflictingRecord when its build is pinned otherwise."""
        return self._append(run)

    def append_block(self, block: Block) -> bool:
        """Idempotent; UnknownSeries without its run, ConflictingRecord when a metric changed its unit."""
        return self._append(block)

    def append_reading(self, reading: CanaryReading) -> bool:
        """What the machine canary took; idempotent."""
        return self._append(reading)

    def pin_release(self, release: Release) -> bool:
        """The first pin of a build wins; another digest is ConflictingRecord."""
        return self.transact(lambda connection, row_keys: writing.pin_release(connection, row_keys, release))

    def supersede(self, kind: str, target_id: str, reason: str, replacement_id: str | None = None) -> bool:
        """From now on a session, run or block counts no more; it stays stored, with the reason."""
        correction = Supersession(kind, target_id, reason, replacement_id, datetime.now(UTC))
        return self.transact(lambda connection, row_keys: outcomes.supersede(connection, row_keys, correction))

    def append_detection(self, findings: Sequence[Finding], settings_digest: str) -> bool:
        """One detection with all its findings; False when the newest one is the same."""
        append = partial(outcomes.append_detection, findings=list(findings), settings_digest=settings_digest)
        return self.transact(append)

    def append_event(self, event: FindingEvent) -> bool:
        """Something happened to a finding."""
        return self.transact(lambda connection, row_keys: outcomes.append_event(connection, row_keys, event))

    def append_link(self, link: IssueLink) -> bool:
        """Where a finding stands in a tracker."""
        return self.transact(lambda connection, row_keys: outcomes.append_link(connection, row_keys, link))

    # --- reading ---------------------------------------------------------------------------------------------------

    def _read(self, query: Callable[[Connection], T]) -> T:
        with read_transaction(self.engine) as connection:
            return query(connection)

    def releases(self, dbms: str | None = None) -> list[Release]:
        """Pinned and measured releases, one a version, in version order."""
        return self._read(lambda connection: queries.releases(connection, dbms))

    def pins(self) -> list[Release]:
        """Pinned releases only: one a version and build."""
        return self._read(queries.pins)

    def sessions(self) -> list[Session]:
        """By start."""
        return self._read(queries.sessions)

    def readings(self) -> list[CanaryReading]:
        """Of the machine canary, by time, then host."""
        return self._read(canary.readings)

    def runs(
        self,
        session_id: str | None = None,
        *,
        id: str | None = None,
        dbms: str | None = None,
        line: str | None = None,
        version: str | None = None,
        server: str | None = None,
        config: str | None = None,
        benchmark: str | None = None,
        lane: str | None = None,
    ) -> list[Run]:
        """In the order they were stored."""
        filters = {"id": id, "session_id": session_id, "dbms": dbms, "line": line, "version": version}
        filters |= {"server": server, "config": config, "benchmark": benchmark, "lane": lane}
        return self._read(lambda connection: list(queries.runs(connection, **filters)))

    def blocks(self, run_id: str, *, details: bool = True, measurements: bool = True) -> list[Block]:
        """By number; `details=False` leaves out samples, functions, calls, plans and settings, which are large, and
        `measurements=False` the measurements too: what is left says whether and when a block ran."""
        return self._read(partial(queries.blocks, run_id=run_id, details=details, measurements=measurements))

    def timed_blocks(self, host: str | None, newest: int, **filters: Unpack[TimedFilters]) -> list[Block]:
        """The newest blocks of `host` (of any when it is None) that came to their end, with their phases and nothing
        else."""
        return self._read(lambda connection: queries.timed_blocks(connection, host, newest, **filters))

    def block_ids(self, session_id: str) -> set[str]:
        """What a resumed session need not do again: every block of it, whatever its status."""
        return self._read(lambda connection: queries.block_ids(connection, session_id))

    def measured(
        self,
        dbms: str,
        config: str | None = None,
        benchmark: str | None = None,
        lane: str | None = None,
        server: str | None = None,
    ) -> dict[str, int]:
        """Blocks that count, by version."""
        filters = {"dbms": dbms, "config": config, "benchmark": benchmark, "lane": lane, "server": server}
        return self._read(lambda connection: queries.measured(connection, **filters))

    def lines(self, dbms: str | None = None) -> list[LineKey]:
        """(dbms, line, server, config, benchmark) of every line with blocks that count, `majors` included."""
        return self._read(lambda connection: queries.lines(connection, dbms))

    def series(
        self,
        dbms: str | None = None,
        line: str | None = None,
        server: str | None = None,
        config: str | None = None,
        benchmark: str | None = None,
        test: str | None = None,
        metric: str | None = None,
        until: str | None = None,
    ) -> Iterator[Series]:
        """Every series that has values, line by line, by test and metric, a few at a time in memory.

        Blocks that are noisy, failed or superseded are left out. `until` leaves out releases after that version: the
        history as it was when that release came out.
        """
        wanted = {"dbms": dbms, "line": line, "server": server, "config": config, "benchmark": benchmark}
        return assemble.read_series(self.engine, wanted | {"test": test, "metric": metric}, until)

    def frame(self, **selection: str | None) -> DataFrame:
        """One row a block and metric of what `series` would give: the columns of `frames.BLOCK_DTYPES`.

        `majors` holds the values of the real lines once more, so it is left out unless it is the line selected.
        """
        return frames.block_frame(self._selected(selection))

    def release_frame(self, **selection: str | None) -> DataFrame:
        """One row a release and metric, selected as for `frame`: the columns of `frames.RELEASE_DTYPES`."""
        return frames.release_frame(self._selected(selection))

    def _selected(self, selection: dict[str, str | None]) -> Iterator[Series]:
        majors = selection.get("line") == MAJORS
        return (series for series in self.series(**selection) if majors or series.key.line != MAJORS)

    def functions(self, dbms: str, version: str, test: str, **filters: Unpack[RunFilters]) -> tuple[FunctionCost, ...]:
        """Instructions per operation by function, from the newest block that has them, the most expensive first."""
        query = partial(
            queries.newest_details, kind="functions", dbms=dbms, version=version, test=test, filters=filters
        )
        return tuple(FunctionCost.model_validate(cost) for cost in self._read(query))

    def calls(self, dbms: str, version: str, test: str, **filters: Unpack[RunFilters]) -> tuple[CallCost, ...]:
        """Calls between functions per operation, from the newest block that has them, the most expensive first."""
        query = partial(queries.newest_details, kind="calls", dbms=dbms, version=version, test=test, filters=filters)
        return tuple(CallCost.model_validate(call) for call in self._read(query))

    def plans(self, dbms: str, version: str, test: str, **filters: Unpack[RunFilters]) -> tuple[StatementPlan, ...]:
        """Plans of the newest block that has them."""
        query = partial(queries.newest_details, kind="plans", dbms=dbms, version=version, test=test, filters=filters)
        return tuple(StatementPlan.model_validate(plan) for plan in self._read(query))

    def settings(self, run_id: str) -> dict[str, EffectiveSetting]:
        """The effective settings of a run by name; empty where it kept none, as runs of before."""
        stored = self._read(partial(queries.settings, run_id=run_id))
        return {name: EffectiveSetting.model_validate(setting) for name, setting in stored.items()}

    def samples(self, block_id: str) -> dict[str, dict[str, tuple[float, ...]]]:
        """One value a second, by test, then metric."""
        return self._read(lambda connection: queries.samples(connection, block_id))

    def findings(
        self, dbms: str | None = None, line: str | None = None, kind: str | None = None, tier: str | None = None
    ) -> list[Finding]:
        """Findings of the newest detection."""
        return self._read(lambda connection: outcomes.findings(connection, dbms=dbms, line=line, kind=kind, tier=tier))

    def events(self, key: str | None = None) -> list[FindingEvent]:
        """What happened to a finding, in order; without a key, to all."""
        return self._read(lambda connection: outcomes.events(connection, key))

    def links(self, key: str | None = None) -> list[IssueLink]:
        """Issues of a finding, oldest first; without a key, of all."""
        return self._read(lambda connection: outcomes.links(connection, key))

    def supersessions(self) -> list[Supersession]:
        """Corrections, oldest first."""
        return self._read(outcomes.supersessions)
