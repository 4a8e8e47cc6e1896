"""Settings: the models of what is configured, and their loaders; configs of each DBMS: `runners.settings.dbms`."""

from runners.settings.benchmarks import Benchmark, Counted, Test, load_benchmark, settled_parts
from runners.settings.files import Setting, find, read_model, read_toml, validate
from runners.settings.plans import Backfill, Measure, Plan, adapted, load_plan
from runners.settings.profiles import Profile, Scale, load_profile
from runners.settings.servers import Server, load_server

__all__ = [
    "Backfill",
    "Benchmark",
    "Counted",
    "Measure",
    "Plan",
    "Profile",
    "Scale",
    "Server",
    "Setting",
    "Test",
    "adapted",
    "find",
    "load_benchmark",
    "load_plan",
    "load_profile",
    "load_server",
    "read_model",
    "read_toml",
    "settled_parts",
    "validate",
]
