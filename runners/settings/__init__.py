"""Settings: the models of what is configured, and their loaders; configs of each DBMS: `runners.settings.dbms`."""

from history.settings import Setting, find, read_model, read_toml, validate
from runners.settings.benchmarks import Benchmark, Counted, Step, Test, load_benchmark, settled_parts
from runners.settings.plans import Backfill, Measure, Plan, adapted, load_plan, narrowed
from runners.settings.profiles import InsertSize, Profile, Scale, load_profile
from runners.settings.servers import Server, load_server

__all__ = [
    "Backfill",
    "Benchmark",
    "Counted",
    "InsertSize",
    "Measure",
    "Plan",
    "Profile",
    "Scale",
    "Server",
    "Setting",
    "Step",
    "Test",
    "adapted",
    "find",
    "load_benchmark",
    "load_plan",
    "load_profile",
    "load_server",
    "narrowed",
    "read_model",
    "read_toml",
    "settled_parts",
    "validate",
]
