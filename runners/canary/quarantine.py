"""What a host took for the fixed work so far, and whether it is kept from measuring.

Below the state directory: `canary/readings.jsonl`, a line a reading, and `canary/quarantine.json` while the host is
sick. Readings of a sick host are not kept, so that it cannot become the usual; the history gets every one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from history.files import write_atomically
from history.model import CanaryReading, Phase
from runners.canary.verdicts import MOST_READINGS, Times, differences, verdict
from runners.canary.workload import work
from runners.cores import Cores
from runners.errors import HostBusy
from runners.host import host_name

#: A reading that differs is taken again so often, since anything may disturb one.
AGAIN = 2
#: Seconds between.
PAUSE_S = 10.0


class Quarantine(BaseModel):
    """Why a host may not measure."""

    model_config = ConfigDict(frozen=True)

    since: datetime
    when: str
    """`before the session X` or `after the session X`."""
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        why = "; ".join(self.reasons)
        return (
            f"this host is in quarantine since {self.since:%Y-%m-%d %H:%M} UTC, {self.when}: {why}. Mend it, or accept "
            "it as it is now: pointdrop doctor --clear"
        )


class CanaryCheck(NamedTuple):
    """What a check found."""

    readings: tuple[CanaryReading, ...] = ()
    """As taken; none while the host is in quarantine or somebody else measures."""
    quarantine: Quarantine | None = None


@dataclass(frozen=True)
class Canary:
    """The canary of the host whose state directory is `state`."""

    state: Path
    cores: Cores | None = None
    """Those of this host: while somebody else measures, there is nothing to be learnt."""
    read: Callable[[Path], Times] = work
    pause_s: float = PAUSE_S

    @property
    def _folder(self) -> Path:
        return self.state / "canary"

    def quarantine(self) -> Quarantine | None:
        """Why the host may not measure; None when it may. A file that cannot be read keeps it out, too."""
        path = self._folder / "quarantine.json"
        if not path.exists():
            return None
        try:
            return Quarantine.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            return Quarantine(since=datetime.now(UTC), when="unknown", reasons=(f"{path} cannot be read",))

    def check(self, phase: Phase, session_id: str) -> CanaryCheck:
        """Do the work and compare; a host that differs each time goes into quarantine."""
        if quarantine := self.quarantine():
            return CanaryCheck(quarantine=quarantine)
        if self.cores is None:
            return self._compare(phase, session_id)
        try:
            with self.cores.whole_host():
                return self._compare(phase, session_id)
        except HostBusy:
            return CanaryCheck()

    def _compare(self, phase: Phase, session_id: str) -> CanaryCheck:
        before, taken = self.usual(), []
        for left in range(AGAIN, -1, -1):
            at, now = datetime.now(UTC), self.read(self._folder)
            reasons = differences(now, before)
            sick = bool(reasons) and not left
            taken.append(
                CanaryReading(
                    host=host_name(),
                    at=at,
                    session_id=session_id,
                    phase=phase,
                    **now._asdict(),
                    verdict=verdict(reasons, before),
                    reasons=reasons,
                    quarantine=sick,
                )
            )
            if not reasons:
                self._remember(now)
                return CanaryCheck(tuple(taken))
            if left:
                time.sleep(self.pause_s)
        quarantine = Quarantine(since=at, when=f"{phase} the session {session_id}", reasons=reasons)
        self._write("quarantine.json", quarantine.model_dump_json())
        return CanaryCheck(tuple(taken), quarantine)

    def clear(self) -> bool:
        """End the quarantine and forget what was usual, since the machine may be another one now; whether it was in."""
        was = self.quarantine() is not None
        for name in ("quarantine.json", "readings.jsonl"):
            (self._folder / name).unlink(missing_ok=True)
        return was

    def usual(self) -> list[Times]:
        """What the host took while it was well. The oldest first; a line that was cut off by a crash is left out."""
        path, usual = self._folder / "readings.jsonl", []
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                values = json.loads(line)
                usual.append(Times(*(float(values[name]) for name in Times._fields)))
            except (ValueError, KeyError, TypeError):
                continue
        return usual

    def _remember(self, reading: Times) -> None:
        newest = [*self.usual(), reading][-MOST_READINGS:]
        self._write("readings.jsonl", "".join(f"{json.dumps(times._asdict())}\n" for times in newest))

    def _write(self, name: str, text: str) -> None:
        write_atomically(self._folder / name, text)
