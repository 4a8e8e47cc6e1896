"""Servers under test: initialise, start, wait, settle, stop, and nothing left behind.

>>> from runners.engines import engine_for, stop_leftovers
"""

from runners.engines.account import server_account
from runners.engines.base import Connection, Engine
from runners.engines.leftovers import stop_leftovers
from runners.engines.registry import engine_for
from runners.errors import EngineError
from runners.releases.installed import Installed
