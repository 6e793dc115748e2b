from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.diagnosis.value_history import REMEMBERED, ValueHistory

times = st.floats(0, 1000)


@given(st.lists(st.tuples(times, st.integers(0, 3)), max_size=3 * REMEMBERED), times, times)
def test_a_timeline_tells_what_was(changes: list[tuple[float, int]], one: float, other: float) -> None:
    changes.sort(key=lambda change: change[0])
    start, end = sorted((one, other))
    timeline = ValueHistory(0)
    for now, value in changes:
        timeline.change(now, value)
    at = start
    for told, until in timeline.spans(start, end):
        assert at <= until <= end
        if told is not None and until > at:
            middle = (at + until) / 2
            assert told == next((v for now, v in reversed(changes) if now <= middle), 0)
        at = until
    assert at == end or start == end


def test_a_timeline_remembers_so_much_and_says_what_it_forgot() -> None:
    timeline = ValueHistory(-1)
    for now in range(100):
        timeline.change(float(now), now)
    spans = list(timeline.spans(0.0, 100.0))
    assert spans[0] == (None, 100.0 - REMEMBERED)
    assert spans[1:] == [(now, now + 1.0) for now in range(100 - REMEMBERED, 100)]
    assert list(timeline.spans(99.5, 99.75)) == [(99, 99.75)]
