from __future__ import annotations

import asyncio
import threading

import pytest

from aioproducer.errors import IllegalStateException
from aioproducer.producer import loop_affinity as home
from aioproducer.producer.loop_affinity import LoopAffinity, here


def test_before_it_is_entered_nobody_is_on_its_loop() -> None:
    with pytest.raises(IllegalStateException, match="not started"):
        LoopAffinity(lambda mark: None).check()


def test_it_is_the_loop_that_runs_when_it_is_entered() -> None:
    marks: list[object] = []
    one = LoopAffinity(marks.append)

    async def enter() -> None:
        one.enter()
        one.check()
        assert one.loop is asyncio.get_running_loop()
        assert marks == [here()]

    async def come_back() -> None:
        one.check()

    asyncio.run(enter())
    with pytest.raises(IllegalStateException, match="another event loop"):
        asyncio.run(come_back())
    with pytest.raises(IllegalStateException, match="another event loop"):
        one.check()


async def test_another_thread_is_elsewhere_to_each_record() -> None:
    marks: list[object] = []
    thread = threading.Thread(target=lambda: marks.append(here()))
    thread.start()
    thread.join()
    assert marks != [here()]


async def test_a_fork_is_not_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    marks: list[object] = []
    one, left = LoopAffinity(marks.append), LoopAffinity(marks.append)
    for each in (one, left):
        each.enter()
    left.leave()
    monkeypatch.setattr(home, "_BOUND", [each for each in home._BOUND if each in (one, left)])
    home._after_fork_in_child()
    assert marks == [here(), here(), one]
    assert here() != one
    with pytest.raises(IllegalStateException, match="was forked: make one after the fork"):
        one.check()
    left.check()
