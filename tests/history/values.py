"""Any record by chance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from history.model import (
    Block,
    CallCost,
    CanaryReading,
    EffectiveSetting,
    Fingerprint,
    FunctionCost,
    Measurement,
    Release,
    Run,
    Session,
    StatementPlan,
)

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30)
NAMES = TEXTS.filter(lambda text: 0 < len(text.encode()) <= 200)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
MEASUREMENTS = st.builds(
    Measurement,
    test=NAMES,
    group=TEXTS,
    metric=NAMES,
    value=NUMBERS,
    unit=TEXTS,
    better=st.sampled_from(["higher", "lower"]),
    operations=st.none() | st.integers(0, 2**63 - 1),
    warnings=st.lists(TEXTS, max_size=2).map(tuple),
)
FUNCTIONS = st.builds(
    FunctionCost, function=TEXTS, insn_per_op=NUMBERS, object=TEXTS, inclusive_per_op=st.none() | NUMBERS
)
CALLS = st.builds(
    CallCost, caller=TEXTS, callee=TEXTS, calls_per_op=NUMBERS, insn_per_op=NUMBERS, caller_object=TEXTS,
    callee_object=TEXTS,
)  # fmt: skip
PLANS = st.builds(StatementPlan, statement=TEXTS, digest=TEXTS, text=TEXTS)
SESSIONS = st.builds(
    Session,
    id=st.just("s"),
    host=NAMES,
    server=NAMES,
    plan=TEXTS,
    fingerprint=st.builds(Fingerprint, facts=st.dictionaries(TEXTS, TEXTS, max_size=3)),
    seed=st.integers(-(2**63), 2**63 - 1),
    started=MOMENTS,
    control=TEXTS,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
RUNS = st.builds(
    Run,
    id=st.just("r"),
    session_id=st.just("s"),
    release=st.builds(
        Release,
        dbms=NAMES,
        version=NAMES,
        line=NAMES,
        build=TEXTS,
        digest=TEXTS,
        released=st.none() | st.dates(),
        source=TEXTS,
    ),
    config=NAMES,
    benchmark=NAMES,
    profile=TEXTS,
    lane=st.sampled_from(["time", "instructions"]),
    options=TEXTS,
    bundle=st.dictionaries(TEXTS, JSON, max_size=3),
    toolchain=st.dictionaries(TEXTS, TEXTS, max_size=3),
)


TIMES = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
READINGS = st.builds(
    CanaryReading,
    host=NAMES,
    at=MOMENTS,
    session_id=TEXTS,
    phase=st.sampled_from(["before", "after"]),
    cpu_ms=TIMES,
    memory_ms=TIMES,
    sync_ms=TIMES,
    verdict=st.sampled_from(["learning", "usual", "differs"]),
    reasons=st.lists(TEXTS, max_size=3).map(tuple),
    quarantine=st.booleans(),
)


def _ordered(values: dict[str, object], took: timedelta) -> dict[str, object]:
    started = values["started"]
    assert isinstance(started, datetime)
    return values | {"ended": started + took}


BLOCKS = st.builds(
    lambda took, **values: Block.model_validate(_ordered(values, took)),
    took=st.timedeltas(timedelta(0), timedelta(days=2)),
    id=st.just("b"),
    run_id=st.just("r"),
    number=st.integers(0, 2**63 - 1),
    started=MOMENTS,
    status=st.sampled_from(["ok", "noisy", "failed"]),
    reason=TEXTS,
    measurements=st.lists(MEASUREMENTS, max_size=5, unique_by=lambda one: (one.test, one.metric)).map(
        lambda found: tuple(sorted(found, key=lambda one: (one.test, one.metric)))
    ),
    functions=st.dictionaries(TEXTS, st.lists(FUNCTIONS, max_size=2).map(tuple), max_size=2),
    calls=st.dictionaries(TEXTS, st.lists(CALLS, max_size=2).map(tuple), max_size=2),
    plans=st.dictionaries(TEXTS, st.lists(PLANS, max_size=2).map(tuple), max_size=2),
    samples=st.dictionaries(
        TEXTS, st.dictionaries(TEXTS, st.lists(NUMBERS, max_size=3).map(tuple), max_size=2), max_size=2
    ),
    phases=st.dictionaries(
        st.sampled_from(["block", "tests"]), st.dictionaries(TEXTS, NUMBERS.map(abs), max_size=2), max_size=2
    ),
    settings=st.dictionaries(
        TEXTS, st.builds(EffectiveSetting, value=TEXTS, default=st.none() | TEXTS, source=TEXTS), max_size=2
    ),
    warnings=st.lists(TEXTS, max_size=2).map(tuple),
)
