"""Settings: the models of what is configured, and their loaders; configs of each DBMS: `runners.settings.dbms`."""

from runners.settings.benchmarks import Benchmark, Step, Test, load_benchmark
from runners.settings.plans import Measure, Plan, adapted, load_plan, narrowed
from runners.settings.profiles import InsertSize, Profile, Scale, load_profile
from runners.settings.servers import Server, load_server
