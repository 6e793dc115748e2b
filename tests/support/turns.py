"""Turns of the event loop as short as they can be, and a count of them."""

from __future__ import annotations

import asyncio

import pytest

from aioproducer.timing import time_slice
from tests.support.compiled import COMPILED


@pytest.fixture
def shortest_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What works in time slices does one step in each."""
    if COMPILED:
        pytest.skip("compiled code has the length of a turn in it")
    monkeypatch.setattr(time_slice, "TIME_SLICE", 0.0)


class Turns:
    """Counts the turns of the loop from now on, until it is stopped."""

    def __init__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self.count += 1
        self._next = self._loop.call_soon(self._turn)

    def stop(self) -> None:
        self._next.cancel()
