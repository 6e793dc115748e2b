from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import SaslAuthenticationException
from aioproducer.net.cluster_changes import News


async def waiting(news: News, *node_ids: int | None) -> list[asyncio.Task[None]]:
    waits = [asyncio.ensure_future(news.next(node_id)) for node_id in node_ids]
    await asyncio.sleep(0)
    return waits


async def test_all_who_wait_are_woken_and_nobody_who_comes_later() -> None:
    news = News()
    first, second = await waiting(news, None, 7)
    news.tell()
    await asyncio.gather(first, second)
    (third,) = await waiting(news, None)
    assert not third.done()
    third.cancel()


async def test_a_refusal_is_raised_to_who_needs_the_node_or_any() -> None:
    news = News()
    any_node, that_one, another = await waiting(news, None, 1, 2)
    news.tell_refusal(1, SaslAuthenticationException("who?"))
    await another
    for told in (any_node, that_one):
        with pytest.raises(SaslAuthenticationException, match="who"):
            await told


async def test_an_old_refusal_is_no_news() -> None:
    news = News()
    refusal = SaslAuthenticationException("who?")
    news.tell_refusal(1, refusal)
    waits = await waiting(news, None, 1)
    news.tell_refusal(1, refusal)
    await asyncio.gather(*waits)
    waits = await waiting(news, None, 1)
    news.tell_refusal(1, SaslAuthenticationException("who now?"))
    for told in waits:
        with pytest.raises(SaslAuthenticationException, match="who now"):
            await told
