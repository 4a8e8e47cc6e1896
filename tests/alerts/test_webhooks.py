"""Webhooks: signed, repeated until taken, and nothing in them can be mistaken for markup."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tenacity import wait_none

from alerts import AlertSettings, sync, webhooks
from alerts.settings import Webhook
from alerts.trackers.files import FilesTracker
from alerts.webhooks import signature, slack_payload
from history.store import Store
from tests.builders import NIGHT, NOW, detect, finding

KEY = "postgres/17/17.5/regression"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver:
    """A web server that takes what it gets, or answers with `failing` codes first."""

    def __init__(self) -> None:
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.failing: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.failing.pop(0) if receiver.failing else 204
                if status < 300:
                    receiver.taken.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/hook"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(webhooks, "WAIT", wait_none())
    receiver = Receiver()
    thread = threading.Thread(target=receiver.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield receiver
    receiver.http.shutdown()
    receiver.http.server_close()


def settings_with(*hooks: Webhook) -> AlertSettings:
    return AlertSettings(webhooks=hooks)


SIGNED = Webhook(name="ops", kind="signed", url_env="HOOK_URL", secret_env="HOOK_SECRET")
SLACK = Webhook(name="chat", kind="slack", url_env="HOOK_URL")


def test_an_event_is_signed_and_told_once(receiver: Receiver, store: Store, tmp_path: Path) -> None:
    tracker, environment = FilesTracker(tmp_path / "i"), {"HOOK_URL": receiver.url, "HOOK_SECRET": SECRET}
    detect(store, finding())
    for _ in range(2):
        assert sync(store, tracker, settings_with(SIGNED), now=NOW, environment=environment).complete
    ((headers, body),) = receiver.taken
    expected = signature(SECRET, headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    assert headers["webhook-signature"] == expected
    content = json.loads(body)
    assert content["type"] == "pointdrop.filed" and set(content) == {"type", "timestamp", "data"}
    assert content["data"] == {
        "key": KEY,
        "event": "filed",
        "actor": "pointdrop",
        "title": tracker.issue(1).title,
        "url": tracker.issue(1).url,
        "kind": "regression",
        "dbms": "postgres",
        "line": "17",
        "previous": "17.4",
        "release": "17.5",
    }


@pytest.mark.parametrize("failing", [[500], [429, 503]])
def test_a_receiver_that_stumbles_is_asked_again(
    failing: list[int], receiver: Receiver, store: Store, tmp_path: Path
) -> None:
    receiver.failing = list(failing)
    detect(store, finding())
    report = sync(
        store, FilesTracker(tmp_path / "i"), settings_with(SLACK), now=NOW, environment={"HOOK_URL": receiver.url}
    )
    assert report.warnings == () and len(receiver.taken) == 1


def test_what_was_not_taken_is_tried_by_the_next_sync_with_the_same_id(
    receiver: Receiver, store: Store, tmp_path: Path
) -> None:
    receiver.failing = [500] * 3
    tracker, environment = FilesTracker(tmp_path / "i"), {"HOOK_URL": receiver.url, "HOOK_SECRET": SECRET}
    detect(store, finding())
    report = sync(store, tracker, settings_with(SIGNED), now=NOW, environment=environment)
    assert report.complete and report.warnings == ("webhook ops: it answers 500; the next sync tries again.",)
    assert sync(store, tracker, settings_with(SIGNED), now=NOW + NIGHT, environment=environment).warnings == ()
    assert len(receiver.taken) == 1
    sync(store, tracker, settings_with(SIGNED), now=NOW + 2 * NIGHT, environment=environment)
    assert len(receiver.taken) == 1


def test_old_events_are_not_told(receiver: Receiver, store: Store, tmp_path: Path) -> None:
    tracker = FilesTracker(tmp_path / "i")
    detect(store, finding())
    sync(store, tracker, settings_with(), now=NOW, environment={})
    sync(store, tracker, settings_with(SLACK), now=NOW + 9 * NIGHT, environment={"HOOK_URL": receiver.url})
    assert receiver.taken == []


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "HOOK_URL holds no http address"),
        ({"HOOK_URL": "file:///etc/passwd"}, "HOOK_URL holds no http address"),
        ({"HOOK_URL": "http://127.0.0.1:1/"}, "secret_env names no variable"),
        ({"HOOK_URL": "http://127.0.0.1:1/", "HOOK_SECRET": "whsec_%"}, "not base64"),
        ({"HOOK_URL": "http://127.0.0.1:1/", "HOOK_SECRET": "x"}, "does not answer"),
    ],
)
def test_a_webhook_that_cannot_be_used_is_a_warning(
    environment: dict[str, str], message: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "WAIT", wait_none())
    detect(store, finding())
    report = sync(store, FilesTracker(tmp_path / "i"), settings_with(SIGNED), now=NOW, environment=environment)
    assert report.complete and report.counts == {"file": 1} and message in report.warnings[0]
    assert "127.0.0.1" not in report.warnings[0]


def test_slack_sees_text_and_one_link() -> None:
    data = {
        "key": "k", "event": "recovered", "actor": "<!channel>", "title": "a <b> & `c` | *d*", "url": "https://x.example/1",
        "dbms": "mysql", "release": "8.0.30",
    }  # fmt: skip
    payload = slack_payload({"data": data})
    section, context = payload["blocks"]
    assert section["text"]["text"].startswith("*<https://x.example/1|a &lt;b&gt; &amp;  c ")
    assert section["text"]["text"].endswith(">* was given back by a later release")
    assert "<!channel>" not in json.dumps(payload) and "&lt;!channel&gt;" in context["elements"][0]["text"]
    assert section["text"]["text"].count("<") == 1


@pytest.mark.parametrize("address", ["https://host:port/x", "https://exa mple/\x07"])
def test_an_address_that_is_none_is_a_problem_and_no_crash(address: str, store: Store, tmp_path: Path) -> None:
    detect(store, finding())
    report = sync(store, FilesTracker(tmp_path / "i"), settings_with(SLACK), now=NOW, environment={"HOOK_URL": address})
    assert report.counts == {"file": 1} and "HOOK_URL" in report.warnings[0] and address not in report.warnings[0]


def test_a_line_end_after_an_address_does_not_count(receiver: Receiver, store: Store, tmp_path: Path) -> None:
    detect(store, finding())
    where = {"HOOK_URL": f"{receiver.url}\n"}
    assert not sync(store, FilesTracker(tmp_path / "i"), settings_with(SLACK), now=NOW, environment=where).warnings
    assert len(receiver.taken) == 1
