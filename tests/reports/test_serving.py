"""`report serve`: only this machine, and pages that follow the history."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from http.client import HTTPResponse
from pathlib import Path
from typing import cast
from urllib.request import urlopen

import pytest

from history.model import FindingEvent
from history.store import Store
from reports.serving import ADDRESS, server
from reports.settings import ReportSettings

from .conftest import START


@pytest.fixture
def address(store: Store, settings: ReportSettings, tmp_path: Path) -> Iterator[str]:
    with server(str(store.url), tmp_path / "live", lambda: settings, port=0, say=lambda text: None) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://{ADDRESS}:{running.server_port}"
        running.shutdown()
        thread.join()


def get(url: str) -> tuple[str, HTTPResponse]:
    with cast(HTTPResponse, urlopen(url, timeout=60)) as answer:
        return answer.read().decode(), answer


def test_a_page_asked_for_after_the_history_changed_is_made_anew(store: Store, address: str) -> None:
    page = f"{address}/findings/postgres/17/17.5/regression.html"
    before, answer = get(page)
    assert "acknowledged" not in before
    assert answer.headers["Cache-Control"] == "no-store"
    key = "postgres/17/17.5/regression"
    store.append_event(FindingEvent(key=key, event="acknowledged", at=START + timedelta(days=9), actor="dba"))
    assert "acknowledged" in get(page)[0]


def test_it_listens_to_this_machine_only() -> None:
    assert ADDRESS == "127.0.0.1"
