from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import SaslAuthenticationException
from aioproducer.net.metadata.cluster_changes import AT_ONCE, ClusterChanges


async def waiting(changes: ClusterChanges, *node_ids: int | None) -> list[asyncio.Task[None]]:
    waits = [asyncio.ensure_future(changes.next(node_id)) for node_id in node_ids]
    await asyncio.sleep(0)
    return waits


async def test_all_present_waiters_are_woken_and_no_later_one() -> None:
    changes = ClusterChanges()
    first, second = await waiting(changes, None, 7)
    changes.announce()
    await asyncio.gather(first, second)
    (third,) = await waiting(changes, None)
    assert not third.done()
    third.cancel()


async def test_thousands_of_waiters_wake_in_turns_of_the_loop_in_their_order() -> None:
    changes = ClusterChanges()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await changes.next()
        woken.append(number)

    waits = [asyncio.ensure_future(wait(number)) for number in range(4 * AT_ONCE)]
    await asyncio.sleep(0)
    changes.announce()
    (late,) = await waiting(changes, None)
    assert woken == list(range(AT_ONCE))
    changes.announce()
    waits[AT_ONCE + 10].cancel()
    waits[-1].cancel()
    most = 0
    while not late.done():
        before = len(woken)
        await asyncio.sleep(0)
        most = max(most, len(woken) - before)
    assert most == AT_ONCE
    assert woken == [number for number in range(4 * AT_ONCE - 1) if number != AT_ONCE + 10]
    assert not changes._waiting
    assert not changes._waking


async def test_a_waiter_that_gives_up_leaves_nothing() -> None:
    changes = ClusterChanges()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await changes.next()
    assert not changes._waiting


async def test_a_refusal_is_raised_to_tasks_that_need_that_node_or_any() -> None:
    changes = ClusterChanges()
    any_node, that_one, another = await waiting(changes, None, 1, 2)
    changes.announce_refusal(1, SaslAuthenticationException("who?"))
    await another
    for wait in (any_node, that_one):
        with pytest.raises(SaslAuthenticationException, match="who"):
            await wait


async def test_an_old_refusal_is_no_news() -> None:
    changes = ClusterChanges()
    refusal = SaslAuthenticationException("who?")
    changes.announce_refusal(1, refusal)
    waits = await waiting(changes, None, 1)
    changes.announce_refusal(1, refusal)
    await asyncio.gather(*waits)
    waits = await waiting(changes, None, 1)
    changes.announce_refusal(1, SaslAuthenticationException("who now?"))
    for wait in waits:
        with pytest.raises(SaslAuthenticationException, match="who now"):
            await wait
