from __future__ import annotations

from aioproducer.testing.simulation.trace import Trace


def traced(*events: tuple[object, ...], keep: bool = False, at: float = 0.0) -> Trace:
    trace = Trace(keep=keep)
    trace.clock = lambda: at
    for event in events:
        trace(*event)
    return trace


def test_equal_traces_have_equal_digests_and_others_do_not() -> None:
    digests = [
        traced().digest(),
        traced(("a", 1)).digest(),
        traced(("a", 2)).digest(),
        traced(("a", 1), at=1.0).digest(),
        traced(("a", 1), ("b",)).digest(),
        traced(("b",), ("a", 1)).digest(),
    ]
    assert len(set(digests)) == len(digests)
    assert traced(("a", 1), keep=True).digest() == traced(("a", 1)).digest()


def test_lines_are_kept_on_demand() -> None:
    assert traced(("end", 3, "t-0@5"), keep=True, at=1.5).lines == ["1.500000 end 3 t-0@5"]
    assert traced(("end", 3, "t-0@5")).lines == []
