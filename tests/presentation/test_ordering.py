"""The order of tests."""

from __future__ import annotations

from presentation.ordering import by_catalogue, step_order


def test_insert_benchmark_steps_run_in_their_order() -> None:
    names = ["qp1000", "qr500", "l.i2", "qp100", "l.x", "qr1000", "l.i1", "qr100", "qp500", "l.i0"]
    assert sorted(names, key=step_order) == [
        "l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
    ]  # fmt: skip
    assert sorted(["a", "b", "c"], key=by_catalogue({"c": 0, "b": 1})) == ["c", "b", "a"]
