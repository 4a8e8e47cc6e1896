"""Faults a test can plan: what the server does wrong to which requests, and how often."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from typing import Literal

#: `before`: 502, nothing done. `after`: done, then 502. `drop_before`, `drop_after`: the connection ends without an
#: answer, nothing done or done. `429`, `retry_after` (403), `primary`, `secondary`: limits, nothing done.
Kind = Literal["before", "after", "drop_before", "drop_after", "429", "retry_after", "primary", "secondary"]

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
PRIMARY = "API rate limit exceeded for installation ID 1."


@dataclass
class Fault:
    """`kind` happens to the next `times` requests whose `METHOD /path` matches `pattern`."""

    kind: Kind
    pattern: str = ".*"
    times: int = 1
    reset_in: int = 0
    """Seconds until the primary limit ends."""


@dataclass
class Faults:
    """The planned faults; thread-safe."""

    planned: list[Fault] = field(default_factory=list)
    hit: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, fault: Fault) -> None:
        with self.lock:
            self.planned.append(fault)

    def clear(self) -> None:
        with self.lock:
            self.planned.clear()

    def next(self, method: str, path: str) -> Fault | None:
        """The fault for this request, counted."""
        with self.lock:
            for fault in self.planned:
                if fault.times > 0 and re.fullmatch(fault.pattern, f"{method} {path}"):
                    fault.times -= 1
                    self.hit.append(f"{fault.kind} {method} {path}")
                    return fault
        return None


def limit_answer(fault: Fault) -> tuple[int, dict[str, str], dict[str, str]]:
    """Status, headers and body of a limit."""
    docs = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"
    match fault.kind:
        case "429":
            return 429, {}, {"message": SECONDARY, "documentation_url": docs}
        case "retry_after":
            return 403, {"Retry-After": "0"}, {"message": SECONDARY, "documentation_url": docs}
        case "primary":
            headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + fault.reset_in)}
            return 403, headers, {"message": PRIMARY, "documentation_url": docs}
        case _:
            return 403, {"Retry-After": "0"}, {"message": SECONDARY, "documentation_url": docs}
