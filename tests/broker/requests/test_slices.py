"""All long work has one slice in a turn of the loop: owners take turns, urgent things come first, nothing starves."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from functools import partial

from aioproducer.broker.requests.slices import MOST_DEFERRED, SLICE, Slices
from tests.support.manual_clock import ManualClock


class Works:
    """Works of some steps each; a step takes ``seconds``. ``turns`` has the steps of each turn of the loop."""

    def __init__(self, seconds: float = SLICE) -> None:
        self.clock = ManualClock()
        self.slices = Slices(self.clock)
        self.seconds = seconds
        self.turns: list[str] = [""]

    def add(self, owner: Hashable, name: str, steps: int) -> None:
        self.slices.add(owner, partial(self._advance, owner, name, steps))

    def begin(self, name: str, seconds: float) -> bool:
        return self.slices.begin(partial(self._advance, name, name, 1), seconds)

    def _advance(self, owner: Hashable, name: str, steps: int, until: float) -> None:
        while steps:
            self.turns[-1] += name
            self.clock.advance(self.seconds)
            steps -= 1
            if steps and self.slices.now() >= until:
                self.add(owner, name, steps)
                break

    async def turn(self, count: int = 1) -> list[str]:
        for _ in range(count):
            self.turns.append("")
            await asyncio.sleep(0)
        return self.turns[-count:]


async def test_one_slice_in_a_turn_however_much_there_is() -> None:
    works = Works()
    for name in "abc":
        works.add(name, name, 2)
    assert await works.turn(7) == ["a", "b", "c", "a", "b", "c", ""]


async def test_an_owner_with_many_works_takes_turns_with_others() -> None:
    works = Works()
    for name in "abc":
        works.add("attacker", name, 2)
    works.add("other", "x", 3)
    assert "".join(await works.turn(10)) == "axbxcxabc"


async def test_short_works_share_a_slice() -> None:
    works = Works(SLICE / 4)
    for name in "abcdef":
        works.add(name, name, 1)
    assert await works.turn(2) == ["abcd", "ef"]


async def test_works_begin_at_once_until_half_of_the_slice_is_used_up() -> None:
    works = Works(SLICE / 4)
    assert [works.begin(name, SLICE / 4) for name in "abc"] == [True, True, False]
    assert works.turns == ["ab"]
    await works.turn()
    assert works.begin("d", SLICE / 4), "in the next turn there is time again"


async def test_works_that_begin_come_before_those_that_have_begun() -> None:
    works = Works()
    works.add("a", "a", 3)
    works.slices.add("b", partial(works._advance, "b", "b", 1), first=True)
    works.slices.add("c", partial(works._advance, "c", "c", 1), first=True)
    assert await works.turn(5) == ["ba", "ca", "a", "", ""], "both kinds go on in each turn"


async def test_urgent_things_come_first_but_not_for_ever() -> None:
    works = Works()
    urgent = True
    works.slices.urgent[lambda: urgent] = None
    works.add("a", "a", 3)
    assert "".join(await works.turn(MOST_DEFERRED)) == ""
    assert await works.turn() == ["a"]
    assert "".join(await works.turn(MOST_DEFERRED)) == ""
    urgent = False
    assert await works.turn(2) == ["a", "a"]


async def test_a_work_that_fails_does_not_stop_the_others() -> None:
    loop, errors = asyncio.get_running_loop(), list[str]()
    loop.set_exception_handler(lambda loop, context: errors.append(str(context["exception"])))
    works = Works()

    def fail(until: float) -> None:
        raise ValueError("bad")

    works.slices.add("a", fail)
    works.add("b", "b", 1)
    assert (await works.turn(2), errors, len(works.slices)) == (["", "b"], ["bad"], 0)
