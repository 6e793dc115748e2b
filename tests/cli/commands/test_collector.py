"""The times of full garbage collections in a broker's process."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from aioproducer.cli.commands import collector
from aioproducer.cli.commands.collector import IDLE, TOO_MANY, WORTH_IT, collecting, is_due


@pytest.mark.parametrize(
    ("objects", "busy", "due"),
    [
        (WORTH_IT - 1, 0.0, False),
        (WORTH_IT, 0.0, True),
        (WORTH_IT, IDLE, True),
        (TOO_MANY - 1, IDLE + 0.01, False),
        (TOO_MANY, 1.0, True),
    ],
)
def test_an_idle_process_collects_what_is_worth_it_and_a_busy_one_what_is_too_much(
    objects: int, busy: float, due: bool
) -> None:
    assert is_due(objects, busy) is due


class Node:
    other: Any = None


def old_cycle() -> weakref.ref[Node]:
    """Garbage that no young collection finds."""
    one, other = Node(), Node()
    one.other, other.other = other, one
    gc.collect(1)
    return weakref.ref(one)


async def test_garbage_is_found_when_that_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "INTERVAL", 0.0)
    due = False
    monkeypatch.setattr(collector, "is_due", lambda *_: due)
    with collecting():
        garbage = old_cycle()
        for _ in range(10):
            await asyncio.sleep(0)
        assert garbage() is not None
        due = True
        while garbage() is not None:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_the_settings_of_the_collector_are_restored() -> None:
    thresholds = gc.get_threshold()
    with collecting():
        assert gc.get_threshold()[:2] == thresholds[:2]
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[2] > 1_000_000
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0
