"""The detectors that are measured: ours in this process, each peer in a server of its own environment."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from detector.commits import Analysis, analyse

ROOT = Path(__file__).resolve().parents[2]
#: Environment of each peer, by name.
PEERS = {"otava": ".venv-otava", "mongodb": ".venv-mongodb", "asv": ".venv-otava", "ruptures": ".venv-otava"}
TITLES = {
    "otava": "Apache Otava 0.8",
    "mongodb": "MongoDB signal-processing-algorithms 2.1",
    "asv": "asv step detection 0.6",
    "ruptures": "ruptures PELT, l2, BIC",
}
OURS = "Pointdrop"
OURS_PROVISIONAL = "Pointdrop, provisional tier"


class Detector:
    """One detector; `find` gives indices, `seconds` what its last answer took."""

    title: str
    seconds: float = 0.0

    def find(self, values: list[float]) -> list[int]:
        raise TypeError(f"{type(self).__name__} does not say how it finds")

    def close(self) -> None:
        """Nothing to stop."""

    def __enter__(self) -> Detector:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Ours(Detector):
    """Our detector, `indices` choosing the tier."""

    def __init__(self, title: str, indices: Callable[[Analysis], list[int]]) -> None:
        self.title = title
        self._indices = indices
        self.find([1.0, 1.1] * 12 + [2.0, 2.1] * 12)  # compile before anything is timed

    def find(self, values: list[float]) -> list[int]:
        start = time.perf_counter()
        found = self._indices(analyse(values))
        self.seconds = time.perf_counter() - start
        return found


class Peer(Detector):
    """A peer behind `peer_server.py`."""

    def __init__(self, name: str) -> None:
        self.title = TITLES[name]
        python = ROOT / PEERS[name] / "bin" / "python"
        if not python.exists():
            sys.exit(f"benchmarks: {python} is missing; run `make bench`, which installs the peers")
        server = Path(__file__).with_name("peer_server.py")
        self._process = subprocess.Popen(
            [str(python), str(server), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def find(self, values: list[float]) -> list[int]:
        assert self._process.stdin and self._process.stdout
        print(json.dumps({"values": values}), file=self._process.stdin, flush=True)
        reply = json.loads(self._process.stdout.readline())
        self.seconds = reply["seconds"]
        return [int(index) for index in reply["indices"]]

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def confirmed(analysis: Analysis) -> list[int]:
    return analysis.indices()


def provisional(analysis: Analysis) -> list[int]:
    return analysis.indices(provisional=True)
