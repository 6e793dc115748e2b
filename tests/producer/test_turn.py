"""When somebody else has a turn."""

from __future__ import annotations

import time
from typing import Any

import pytest

from aioproducer.producer.turn import TURN, Turn
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


@pytest.mark.parametrize("module", ["uvloop", "uvloop.loop", "winloop"])
def test_a_clock_that_goes_on_by_milliseconds_is_not_asked(module: str) -> None:
    class Coarse(Loop):
        def time(self) -> Any:
            raise AssertionError("it is too coarse")

    Coarse.__module__ = module
    turn = Turn(Coarse())
    until = time.monotonic() + TURN
    while time.monotonic() < until:
        pass
    assert turn.over()
