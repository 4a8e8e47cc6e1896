"""Tells webhooks what happened in and before a sync, and remembers what each has heard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import httpx

from alerts.changes import World
from alerts.settings import Webhook
from alerts.webhooks import NOTIFIED, TIMEOUT, deliver, due, request_of
from history.errors import BadSettings
from history.model import FindingEvent

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
    keys = sorted({*world.standings, *urls})
    with httpx.Client(timeout=TIMEOUT, follow_redirects=False) as client:
        for hook in hooks:
            for delivery in [one for key in keys for one in due(hook, key, events_of(key), world, urls, now)]:
                try:
                    problem = deliver(request_of(delivery, environment, now), client)
                except BadSettings as error:
                    problems.append(str(error))
                    break
                if problem:
                    # A receiver that is down would only slow down the night; the next sync tries again.
                    problems.append(f"webhook {hook.name}: {problem}; the next sync tries again.")
                    break
                said = {"hook": hook.name, "delivery": f"{hook.name}:{delivery.id}"}
                record(delivery.event.key, NOTIFIED, "pointdrop", said)
    return problems
