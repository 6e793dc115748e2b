from __future__ import annotations

import asyncio

import pytest

from aioproducer.errors import ConfigException, IllegalStateException
from aioproducer.net.client_lifecycle import ClientLifecycle
from aioproducer.net.retrying_client import RetryingConfig


def client_of(servers: str = "127.0.0.1:1") -> ClientLifecycle[RetryingConfig]:
    return ClientLifecycle(RetryingConfig(bootstrap_servers=(servers,)), "client")


async def test_it_is_of_use_from_its_start_to_its_end() -> None:
    client = client_of()
    with pytest.raises(IllegalStateException, match="the client is not started: use 'async with'"):
        client._client()
    async with client:
        client._client()
    with pytest.raises(IllegalStateException, match="not started"):
        client._client()


async def test_starting_twice_is_harmless_and_closing_leaves_nothing() -> None:
    before = asyncio.all_tasks()
    client = client_of()
    await client.close()
    await client.start()
    started = client._client()
    await client.start()
    assert client._client() is started
    assert asyncio.all_tasks() > before
    await client.close()
    await client.close()
    assert asyncio.all_tasks() == before


def test_addresses_are_looked_at_when_it_is_made() -> None:
    with pytest.raises(ConfigException, match=r"bootstrap\.servers has 'nowhere'"):
        client_of("nowhere")
