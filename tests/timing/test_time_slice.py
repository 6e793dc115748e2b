"""The moment when a long task lets others run."""

from __future__ import annotations

from aioproducer.timing.time_slice import TIME_SLICE, TimeSlice
from tests.producer.simulations.standing_loop import Loop


def test_a_time_slice_is_over_half_a_millisecond_after_it_began() -> None:
    loop = Loop()
    turn = TimeSlice(loop)
    assert not turn.over()
    loop.now += TIME_SLICE / 2
    assert not turn.over()
    loop.now += TIME_SLICE
    assert turn.over()
    turn.begin()
    assert not turn.over()
