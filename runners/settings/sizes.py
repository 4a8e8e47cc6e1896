"""Which size of the Insert Benchmark a benchmark takes from a profile. Pure."""

from __future__ import annotations

from history.errors import BadSettings
from runners.settings.benchmarks import Benchmark
from runners.settings.profiles import InsertSize, Profile


def size_of(benchmark: Benchmark, profile: Profile) -> InsertSize | None:
    """The size; None for a benchmark that is not driven by steps. BadSettings when the profile has none for it."""
    if benchmark.driver != "insert":
        return None
    size = profile.insert.get(benchmark.size)
    if size is None:
        raise BadSettings(
            f"profile {profile.name} has no [{profile.name}.insert.{benchmark.size}], which benchmark {benchmark.name} "
            f"takes; use a profile of the time lane that has it"
        )
    missing = [
        test.name
        for test in benchmark.tests
        if test.step and test.step.does == "replace" and test.name not in size.replaced
    ]
    if missing:
        raise BadSettings(
            f"profile {profile.name}: insert.{benchmark.size}.replaced says nothing of {', '.join(missing)}"
        )
    return size
