"""ListTransactions, DescribeTransactions, DescribeProducers."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from aioproducer.protocol.messages.describe_transactions import DescribeTransactionsRequest
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.list_transactions import ListTransactionsRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from . import NOW_MS, Connect, RawClient, make_batch


async def begin(client: RawClient, transactional_id: str, partition: int = 0) -> tuple[int, int]:
    """Begins a transaction with one record in it."""
    producer = await client.request(InitProducerIdRequest(transactional_id, 60000), 5)
    batch = make_batch(
        b"a",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    data = TopicProduceData("t", partition_data=[PartitionProduceData(partition, batch)])
    response = await client.request(ProduceRequest(transactional_id, -1, 1000, [data]), 12)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return producer.producer_id, producer.producer_epoch


async def end(client: RawClient, transactional_id: str, identity: tuple[int, int], *, committed: bool) -> None:
    response = await client.request(EndTxnRequest(transactional_id, *identity, committed), 5)
    assert response.error_code == ErrorCode.NONE


async def listed(client: RawClient, version: int = 2, **filters: Any) -> dict[str, str]:
    response = await client.request(ListTransactionsRequest(**filters), version)
    assert response.error_code == ErrorCode.NONE
    return {one.transactional_id: one.transaction_state for one in response.transaction_states}


@pytest.mark.parametrize("version", range(3))
async def test_all_transactions_are_listed(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    cluster.create_topic("t")
    await begin(client, "under-way")
    await end(client, "done", await begin(client, "done"), committed=True)
    await client.request(InitProducerIdRequest("new", 60000), 5)
    assert await listed(client, version) == {"under-way": "Ongoing", "done": "CompleteCommit", "new": "Empty"}


async def test_transactions_are_listed_by_filters(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    under_way = await begin(client, "under-way")
    await end(client, "done", await begin(client, "done"), committed=True)
    await client.request(InitProducerIdRequest("new", 60000), 5)
    assert await listed(client, state_filters=["Ongoing", "Empty"]) == {"under-way": "Ongoing", "new": "Empty"}
    assert await listed(client, producer_id_filters=[under_way[0]]) == {"under-way": "Ongoing"}
    assert await listed(client, transactional_id_pattern="un.*") == {"under-way": "Ongoing"}
    assert await listed(client, transactional_id_pattern="un") == {}
    # As in Kafka, a producer that has begun no transaction counts as one with an endless one.
    assert await listed(client, duration_filter=3_600_000) == {"new": "Empty"}
    response = await client.request(ListTransactionsRequest(["PrepareAbort", "Nosuch"]), 2)
    assert (response.unknown_state_filters, response.transaction_states) == (["Nosuch"], [])
    response = await client.request(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
async def test_each_node_lists_the_transactions_that_it_coordinates(cluster: EmbeddedCluster, connect: Connect) -> None:
    clients = [await connect(0), await connect(1)]
    names = [f"x{number}" for number in range(10)]
    for name in names:
        for client in clients:
            await client.request(InitProducerIdRequest(name, 60000), 5)
    found = [list(await listed(client)) for client in clients]
    assert sorted(found[0] + found[1]) == sorted(names)
    assert all(found)
    for client, own, others in zip(clients, found, reversed(found), strict=True):
        response = await client.request(DescribeTransactionsRequest([own[0], others[0]]), 0)
        codes = [one.error_code for one in response.transaction_states]
        assert codes == [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR]


async def test_describe_transactions(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t", 2)
    identity = await begin(client, "x", 1)
    answers = (await client.request(DescribeTransactionsRequest(["x", "nosuch", ""]), 0)).transaction_states
    assert [one.error_code for one in answers] == [
        ErrorCode.NONE,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.INVALID_REQUEST,
    ]
    state = answers[0]
    assert (state.transaction_state, state.transaction_timeout_ms) == ("Ongoing", 60000)
    assert (state.producer_id, state.producer_epoch) == identity
    assert [(one.topic, one.partitions) for one in state.topics] == [("t", [1])]
    assert state.transaction_start_time_ms > NOW_MS
    await end(client, "x", identity, committed=False)
    (state,) = (await client.request(DescribeTransactionsRequest(["x"]), 0)).transaction_states
    assert (state.transaction_state, state.topics) == ("CompleteAbort", [])
    assert state.transaction_start_time_ms > NOW_MS


async def producers(client: RawClient, topic: str = "t", index: int = 0) -> Any:
    response = await client.request(DescribeProducersRequest([TopicRequest(topic, [index])]), 0)
    return response.topics[0].partitions[0]


async def test_describe_producers(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    assert (await producers(client)).active_producers == []
    await end(client, "done", await begin(client, "done"), committed=True)
    producer_id, producer_epoch = await begin(client, "x")
    done, state = (await producers(client)).active_producers
    assert (done.current_txn_start_offset, done.coordinator_epoch, done.last_sequence) == (-1, 0, -1)
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (producer_id, producer_epoch, 0)
    assert (state.last_timestamp, state.coordinator_epoch, state.current_txn_start_offset) == (NOW_MS, -1, 2)


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
async def test_only_the_leader_describes_producers(cluster: EmbeddedCluster, connect: Connect) -> None:
    cluster.create_topic("t", assignments=[[0, 1]])
    other = await connect(1)
    assert (await producers(other)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await producers(other, "u")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
