"""When somebody else has a turn."""

from __future__ import annotations

from aioproducer.timing.turn import TURN, Turn
from tests.producer.parts import Loop


def test_it_is_over_half_a_millisecond_after_it_began() -> None:
    loop = Loop()
    turn = Turn(loop)
    assert not turn.over()
    loop.now += TURN / 2
    assert not turn.over()
    loop.now += TURN
    assert turn.over()
    turn.begin()
    assert not turn.over()
