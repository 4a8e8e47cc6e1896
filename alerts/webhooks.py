"""Webhooks out: other programs and chat rooms hear of the same events as the issues.

`signed` sends JSON with the headers of the Standard Webhooks specification (standardwebhooks.com): `webhook-id`,
`webhook-timestamp` and `webhook-signature: v1,BASE64(HMAC-SHA256(key, "ID.TIMESTAMP.BODY"))`. `slack` sends the payload
of Slack's incoming webhooks, which Mattermost, Rocket.Chat and Discord (`/slack`) take as well.

Delivery is at least once: what was not delivered is tried again by the next syncs, for RETRY_DAYS; `webhook-id` stays
the same, so that a receiver can drop what it has seen.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from alerts.changes import World
from alerts.settings import Webhook
from history.errors import BadSettings
from history.model import FindingEvent
from presentation.headline import dbms_name

#: An event that could not be delivered is tried again for so long.
RETRY_DAYS = 3
ATTEMPTS = 3
TIMEOUT = 10.0
#: Between attempts, in seconds.
WAIT = wait_exponential(multiplier=0.5, max=5)
NOTIFIED = "notified"

VERBS = {
    "filed": "filed",
    "updated": "has new evidence",
    "recovered": "was given back by a later release",
    "returned": "is back",
    "withdrawn": "is no longer found",
    "folded": "is the same change as another line's",
    "digested": "is in the digest",
    "acknowledged": "was acknowledged",
    "snoozed": "was snoozed",
    "not-a-bug": "was called no bug",
    "closed": "was closed",
    "reopened": "was re-opened",
    "held": "is held back until the machine was looked at",
}


class Delivery(NamedTuple):
    """One event for one webhook."""

    hook: Webhook
    event: FindingEvent
    payload: dict[str, Any]

    @property
    def id(self) -> str:
        """The same for every attempt."""
        text = f"{self.event.key}|{self.event.event}|{self.event.at.isoformat()}"
        return "msg_" + hashlib.sha256(text.encode()).hexdigest()[:32]


def due(
    hook: Webhook, key: str, events: Iterable[FindingEvent], world: World, urls: Mapping[str, str], now: datetime
) -> list[Delivery]:
    """Events of `key` this webhook has not heard of."""
    events = sorted(events, key=lambda event: event.at)
    delivered = {event.detail.get("delivery") for event in events if event.event == NOTIFIED}
    deliveries = []
    for event in events:
        if event.event in hook.events and event.at > now - timedelta(days=RETRY_DAYS):
            delivery = Delivery(hook, event, payload_of(key, event, world, urls.get(key, "")))
            if f"{hook.name}:{delivery.id}" not in delivered:
                deliveries.append(delivery)
    return deliveries


def payload_of(key: str, event: FindingEvent, world: World, url: str) -> dict[str, Any]:
    """What a webhook says of an event; keys are stable, values may be empty."""
    subject = next((candidate for candidate in world.subjects if candidate.key == key), None)
    issue, draft = world.issues.get(key), world.drafts.get(key)
    finding = subject.finding if subject else None
    return {
        "type": f"pointdrop.{event.event}",
        "timestamp": event.at.isoformat(),
        "data": {
            "key": key,
            "event": event.event,
            "actor": event.actor,
            "title": issue.title if issue else draft.title if draft else "",
            "url": issue.url if issue else url,
            "kind": finding.kind if finding else "",
            "dbms": finding.dbms if finding else "",
            "line": finding.line if finding else "",
            "previous": finding.previous if finding else "",
            "release": finding.release if finding else "",
        },
    }


def slack_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload for people in a chat room. Slack's three control characters are escaped, so nothing is a mention."""
    data = payload["data"]
    title = _slack(data["title"] or data["key"])
    linked = f"<{data['url']}|{title}>" if data["url"].startswith(("http://", "https://")) else title
    what = VERBS.get(data["event"], data["event"])
    context = " · ".join(
        _slack(part) for part in (dbms_name(data["dbms"]), data["release"], f"by {data['actor']}") if part
    )
    return {
        "text": f"{title} {what}",
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": f"*{linked}* {what}"}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": context}]},
        ],
    }


def _slack(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # `|` ends an address inside <...>, the others are formatting.
    return "".join(" " if char in "|`*_~\n\r" else char for char in escaped)


def signature(secret: str, delivery_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` of a body.

    >>> signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
    ...           b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = _key(secret)
    signed = hmac.new(key, f"{delivery_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def _key(secret: str) -> bytes:
    """`whsec_` and base64 as the specification has it; anything else is taken as it stands."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise BadSettings("a webhook's secret begins with whsec_ but is not base64 after it.") from None


def request_of(delivery: Delivery, environment: Mapping[str, str], now: datetime) -> httpx.Request:
    """The signed request. BadSettings names the variable that is missing."""
    hook = delivery.hook
    # A secret that was pasted often ends with a line end.
    url = environment.get(hook.url_env, "").strip()
    if not url.startswith(("https://", "http://")):
        raise BadSettings(f"webhook {hook.name}: {hook.url_env} holds no http address.")
    content = slack_payload(delivery.payload) if hook.kind == "slack" else delivery.payload
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"content-type": "application/json", "user-agent": "pointdrop"}
    if hook.kind == "signed":
        secret = environment.get(hook.secret_env, "") if hook.secret_env else ""
        if not secret:
            raise BadSettings(f"webhook {hook.name}: secret_env names no variable that is set; it cannot be signed.")
        moment = int(now.timestamp())
        headers |= {
            "webhook-id": delivery.id,
            "webhook-timestamp": str(moment),
            "webhook-signature": signature(secret, delivery.id, moment, body),
        }
    try:
        return httpx.Request("POST", url, content=body, headers=headers)
    except httpx.InvalidURL:
        raise BadSettings(f"webhook {hook.name}: {hook.url_env} holds an address that is none.") from None


def deliver(request: httpx.Request, client: httpx.Client) -> str:
    """Send, again after 5xx, 429 and network errors; empty when it was taken, else why not. Addresses are not told:
    they are secrets."""
    retrying = Retrying(
        retry=retry_if_exception(_worth_repeating), wait=WAIT, stop=stop_after_attempt(ATTEMPTS), reraise=True
    )
    try:
        retrying(lambda: client.send(request).raise_for_status())
    except httpx.HTTPStatusError as error:
        return f"it answers {error.response.status_code}"
    except httpx.RequestError as error:
        return f"it does not answer ({type(error).__name__})"
    return ""


def _worth_repeating(error: BaseException) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code == 429 or error.response.status_code >= 500
    return isinstance(error, httpx.TransportError)


Record = Callable[[str, str, str, dict[str, Any]], None]


def notify(
    hooks: Sequence[Webhook],
    world: World,
    urls: Mapping[str, str],
    events_of: Callable[[str], list[FindingEvent]],
    record: Record,
    environment: Mapping[str, str],
    now: datetime,
) -> list[str]:
    """Deliver what is due; a message for every webhook that did not take something. `urls` are of new issues."""
    problems: list[str] = []
    keys = sorted({*world.issue_states, *urls})
    with httpx.Client(timeout=TIMEOUT, follow_redirects=False) as client:
        for hook in hooks:
            for delivery in [delivery for key in keys for delivery in due(hook, key, events_of(key), world, urls, now)]:
                try:
                    problem = deliver(request_of(delivery, environment, now), client)
                except BadSettings as error:
                    problems.append(str(error))
                    break
                if problem:
                    # A receiver that is down would only slow down the night; the next sync tries again.
                    problems.append(f"webhook {hook.name}: {problem}; the next sync tries again.")
                    break
                detail = {"hook": hook.name, "delivery": f"{hook.name}:{delivery.id}"}
                record(delivery.event.key, NOTIFIED, "pointdrop", detail)
    return problems
