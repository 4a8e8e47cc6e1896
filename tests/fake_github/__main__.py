"""`python -m tests.fake_github --port N [--seed FILE]`: serve until interrupted; the first line is the address."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.fake_github.control import seed
from tests.fake_github.server import FakeGitHub


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fake_github", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seed", type=Path, help="JSON as POST /_fake/seed takes it")
    options = parser.parse_args()
    server = FakeGitHub(options.port)
    if options.seed:
        seed(server, json.loads(options.seed.read_text(encoding="utf-8")))
    print(server.url, flush=True)
    try:
        server.http.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        server.http.server_close()


if __name__ == "__main__":
    main()
