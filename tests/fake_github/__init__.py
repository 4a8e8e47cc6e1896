"""A small stateful GitHub on 127.0.0.1, for tests.

`with FakeGitHub() as github:` serves in a thread; `python -m tests.fake_github --port N` serves as a process, seeded
and looked at through `/_fake` (see `tests.fake_github.control`). Every request and response is checked against GitHub's
own description; what does not fit is in `github.violations`, which a test asserts to be empty.
"""

from tests.fake_github.faults import Fault
from tests.fake_github.server import FakeGitHub
from tests.fake_github.state import Identity, Repo

__all__ = ["FakeGitHub", "Fault", "Identity", "Repo"]
