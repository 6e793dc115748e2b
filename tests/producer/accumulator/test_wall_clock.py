from __future__ import annotations

import time

from aioproducer.producer.accumulator.wall_clock import now_ms


def test_the_wall_clock_is_the_machines() -> None:
    before = time.time() * 1000
    now: int = now_ms()
    after = time.time() * 1000
    assert before - 1 <= now <= after + 1
    assert isinstance(now, int)
