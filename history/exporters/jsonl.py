"""`pointdrop.run/1`: everything that was measured, for another history. `history import` takes it back unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from history.interchange import Record, header_line, line_of_record
from history.model import LineKey
from history.store import Store


def lines(store: Store, wanted: dict[str, str | None], seen: Counter[str]) -> Iterator[str]:
    """The header, then each session that has a wanted run, its runs, their blocks. Also blocks that do not count.

    At the end the readings of the machine canary on the hosts of those sessions. `seen` counts the records.
    """
    yield header_line()
    for record in _records(store, wanted):
        seen["records"] += 1
        yield line_of_record(record)


def _records(store: Store, wanted: dict[str, str | None]) -> Iterator[Record]:
    written_sessions: set[str] = set()
    place = {name: wanted.get(name) for name in LineKey._fields}
    runs = store.runs(**place)
    # After the runs: others may append meanwhile, parents first.
    sessions = {session.id: session for session in store.sessions()}
    for run in runs:
        if run.session_id not in written_sessions:
            written_sessions.add(run.session_id)
            yield sessions[run.session_id]
        yield run
        yield from store.blocks(run.id)
    hosts = {sessions[name].host for name in written_sessions}
    everything = not any(place.values())
    yield from (reading for reading in store.readings() if everything or reading.host in hosts)
