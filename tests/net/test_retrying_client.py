from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import (
    IllegalStateException,
    KafkaError,
    LeaderNotAvailableException,
    NetworkException,
    TimeoutException,
    TopicExistsException,
)
from aioproducer.net.broker_link import LinkState
from aioproducer.net.retrying_client import RetryingClient, RetryingConfig
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.compiled import interpreted_only


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=2) as cluster:
        yield cluster


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[RetryingClient]:
    config = RetryingConfig(
        bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")),
        retry_backoff_ms=1,
        retry_backoff_max_ms=2,
        request_timeout_ms=1000,
        default_api_timeout_ms=200,
    )
    client = RetryingClient(config)
    yield client
    await client.close()


async def test_retriable_errors_are_retried_and_others_are_not(client: RetryingClient) -> None:
    errors = iter([LeaderNotAvailableException("1"), NetworkException("2"), None, TopicExistsException("4")])

    async def attempt() -> str:
        error = next(errors)
        if error is not None:
            raise error
        return "done"

    assert await client.retry("it", attempt) == "done"
    with pytest.raises(TopicExistsException, match="4"):
        await client.retry("it", attempt)


async def test_the_last_error_is_raised_when_time_is_up(client: RetryingClient) -> None:
    async def attempt() -> None:
        raise LeaderNotAvailableException("no leader")

    await client.cluster()
    with pytest.raises(
        TimeoutException, match=r"it: not done within default\.api\.timeout\.ms=200: no leader"
    ) as caught:
        await client.retry("it", attempt)
    assert isinstance(caught.value.__cause__, LeaderNotAvailableException)


async def test_a_caller_that_is_cancelled_is_cancelled(client: RetryingClient) -> None:
    waiting = asyncio.ensure_future(client.retry("it", asyncio.Event().wait))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_crash_ends_what_is_being_waited_for(client: RetryingClient) -> None:
    waiting = asyncio.ensure_future(client.retry("it", asyncio.Event().wait))
    await asyncio.sleep(0)
    client._supervisor.crash(ZeroDivisionError("a bug"))
    with pytest.raises(KafkaError, match="ZeroDivisionError: a bug"):
        await waiting


async def test_closing_ends_what_is_being_waited_for(client: RetryingClient) -> None:
    waiting = asyncio.ensure_future(client.retry("it", asyncio.Event().wait))
    await asyncio.sleep(0)
    await client.close()
    with pytest.raises(IllegalStateException, match="closed"):
        await waiting


@interpreted_only
async def test_waiting_for_a_node_fails_when_it_leaves_the_cluster(
    client: RetryingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.cluster()
    kafka = client.client
    # Nothing else may wake the waiter: the bootstrap links have come to rest, and node 0 stays as it is.
    while any(link.state is not LinkState.IDLE for link in kafka.links.values()):
        await kafka.changes.next()
    monkeypatch.setattr(kafka.links.get(0), "want", lambda: None)
    waiting = asyncio.ensure_future(kafka.request(MetadataRequest(topics=[]), MetadataResponse, node_id=0))
    await asyncio.sleep(0)
    known = kafka.metadata.cluster
    kafka.metadata.cluster = dataclasses.replace(known, nodes={1: known.nodes[1]})
    kafka.nodes_changed()
    with pytest.raises(NetworkException, match="node 0 is not among the brokers"):
        await waiting
