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

from history.errors import BadSettings
from history.model import FindingEvent
from history.store import Store
from pointdrop.jobs.room_settings import site_settings
from reports.errors import ReportError
from reports.serving import ADDRESS, server
from reports.settings import ReportSettings
from tests.builders import START


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


def test_a_history_that_cannot_be_read_leaves_the_last_pages(
    store: Store, settings: ReportSettings, tmp_path: Path
) -> None:
    said: list[str] = []
    broken = threading.Event()

    def now() -> ReportSettings:
        if broken.is_set():
            raise BadSettings("configs/annotations.toml is no TOML")
        return settings

    with server(str(store.url), tmp_path / "live", now, port=0, say=said.append) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        broken.set()
        store.append_event(FindingEvent(key="k/1/2/regression", event="filed", at=START))
        text, answer = get(f"http://{ADDRESS}:{running.server_port}/index.html")
        running.shutdown()
        thread.join()
    assert answer.status == 200 and "Which release got slower" in text
    assert any("not up to date: configs/annotations.toml is no TOML" in line for line in said)


def test_a_port_that_is_taken_is_a_sentence(store: Store, settings: ReportSettings, tmp_path: Path) -> None:
    arguments = (str(store.url), tmp_path / "live", lambda: settings)
    with (
        server(*arguments, port=0, say=print) as running,
        pytest.raises(ReportError, match=f"port {running.server_port} cannot be served.*--port"),
    ):
        server(*arguments, port=running.server_port, say=print)


def test_every_build_of_the_site_links_to_where_it_is_published(tmp_path: Path) -> None:
    (tmp_path / "alerts.toml").write_text('[links]\nsite = "https://perf.example.org/"\n', encoding="utf-8")
    assert site_settings(tmp_path).site_url == "https://perf.example.org/"
    assert site_settings(tmp_path, "https://other.example.org").site_url == "https://other.example.org"
