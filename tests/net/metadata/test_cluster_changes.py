from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import SaslAuthenticationException
from aioproducer.net.metadata.cluster_changes import ClusterChanges


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
