"""Published results that ship with Pointdrop, so that replay works on a fresh machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from history.datasets import smalldatum
from history.errors import UnknownSeries
from history.importing import ImportReport, import_records
from history.interchange import Record
from history.store import Store

DATASETS: dict[str, Callable[[], Sequence[Record]]] = {"smalldatum": smalldatum.records}


def load(store: Store, name: str) -> ImportReport:
    """Put a dataset into a history; a second time adds nothing. UnknownSeries when there is none of that name."""
    if name not in DATASETS:
        raise UnknownSeries(f"there is no dataset {name}; take one of {', '.join(DATASETS)}")
    return import_records(store, f"dataset {name}", DATASETS[name]())


def dataset_of(session_id: str) -> str:
    """The dataset a session came with; empty for one that was measured, or imported otherwise.

    >>> dataset_of("smalldatum/2023-08-07/ser4/cpu-bound"), dataset_of("20261121T020000Z-nightly")
    ('smalldatum', '')
    """
    name, _, rest = session_id.partition("/")
    return name if rest and name in DATASETS else ""
