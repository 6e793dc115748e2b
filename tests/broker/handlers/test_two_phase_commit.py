"""InitProducerId 6 over the wire: two-phase commit (KIP-939), what allows it, and what is kept across a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioproducer.acls import AclBinding, AclOperation, ResourceType
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.authorization.authorizer import STANDARD
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.describe_transactions import DescribeTransactionsRequest
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.list_transactions import ListTransactionsRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.raw_clients.sasl import CONFIGS, log_in

from . import RawClient, make_batch

UNSTABLE = {"unstable.api.versions.enable": True}
ALLOWED = {"transaction.two.phase.commit.enable": True, **UNSTABLE}
VERSION = 6

Identity = tuple[int, int]


@asynccontextmanager
async def connected(cluster: EmbeddedCluster) -> AsyncIterator[RawClient]:
    client = await RawClient.connect(cluster.bootstrap_servers)
    try:
        yield client
    finally:
        await client.close()


async def init(client: RawClient, *, keep: bool = False, two_phases: bool = True) -> Any:
    request = InitProducerIdRequest("x", 60_000, enable2_pc=two_phases, keep_prepared_txn=keep)
    return await client.request(request, VERSION)


async def begun(cluster: EmbeddedCluster, client: RawClient) -> Identity:
    """A transaction with one record."""
    given = await init(client)
    assert given.error_code == ErrorCode.NONE
    identity = given.producer_id, given.producer_epoch
    batch = make_batch(b"a", producer_id=identity[0], producer_epoch=identity[1], base_sequence=0, transactional=True)
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, batch)])
    response = await client.request(ProduceRequest("x", -1, 1000, [data]), 13)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    return identity


async def described(client: RawClient) -> tuple[str, Identity, int]:
    (one,) = (await client.request(DescribeTransactionsRequest(["x"]), 0)).transaction_states
    listed = (
        await client.request(ListTransactionsRequest(producer_id_filters=[one.producer_id]), 2)
    ).transaction_states
    assert [(each.transactional_id, each.producer_id) for each in listed] == [("x", one.producer_id)]
    return one.transaction_state, (one.producer_id, one.producer_epoch), one.transaction_timeout_ms


@pytest.mark.parametrize("cluster", [{}, {"configs": UNSTABLE}, {"configs": ALLOWED}], indirect=True)
async def test_the_version_is_offered_if_unstable_ones_are(
    cluster: EmbeddedCluster, client: RawClient, request: pytest.FixtureRequest
) -> None:
    offered = {one.api_key: one.max_version for one in (await client.request(ApiVersionsRequest("a", "1"), 3)).api_keys}
    configs = request.node.callspec.params["cluster"].get("configs", {})
    assert offered[ApiKey.INIT_PRODUCER_ID] == (6 if configs else 5)


@pytest.mark.parametrize("cluster", [{"configs": UNSTABLE}], indirect=True)
async def test_it_must_be_allowed(cluster: EmbeddedCluster, client: RawClient) -> None:
    response = await init(client)
    assert response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert (response.producer_id, response.producer_epoch) == (-1, -1)
    response = await init(client, two_phases=False)
    assert (response.error_code, response.ongoing_txn_producer_id) == (ErrorCode.NONE, -1)


@pytest.mark.parametrize("cluster", [{"configs": ALLOWED}], indirect=True)
async def test_a_transaction_is_kept_and_ended_by_the_newer_producer(
    cluster: EmbeddedCluster, client: RawClient
) -> None:
    cluster.create_topic("t")
    identity = await begun(cluster, client)
    assert await described(client) == ("Ongoing", identity, 2**31 - 1)
    response = await init(client, keep=True)
    newer = response.producer_id, response.producer_epoch
    assert (response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch) == identity
    assert newer == (identity[0], identity[1] + 1)
    assert await described(client) == ("Ongoing", identity, 2**31 - 1), "as others know it, it has not changed"
    topics = [AddPartitionsToTxnTopic("t", [0])]
    (added,) = (
        await client.request(AddPartitionsToTxnRequest([], "x", *newer, topics), 3)
    ).results_by_topic_v3_and_below
    assert added.results_by_partition[0].partition_error_code == ErrorCode.INVALID_TXN_STATE
    fenced = await client.request(EndTxnRequest("x", *identity, committed=True), 5)
    assert fenced.error_code == ErrorCode.PRODUCER_FENCED
    ended = await client.request(EndTxnRequest("x", *newer, committed=True), 5)
    assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (ErrorCode.NONE, newer[0], newer[1] + 1)
    assert await described(client) == ("CompleteCommit", (newer[0], newer[1] + 1), 2**31 - 1)
    assert cluster.log("t").last_stable_offset == 2


@pytest.mark.parametrize("cluster", [{"configs": ALLOWED}], indirect=True)
async def test_only_transactions_of_two_phases_are_kept(cluster: EmbeddedCluster, client: RawClient) -> None:
    assert (await init(client, keep=True, two_phases=False)).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("restarts", [1, 2])
async def test_a_kept_transaction_survives_the_broker(tmp_path: Path, restarts: int) -> None:
    async with EmbeddedCluster(data_dir=tmp_path, configs=ALLOWED) as cluster, connected(cluster) as client:
        cluster.create_topic("t")
        identity = await begun(cluster, client)
        newest = await init(client, keep=True)
    for _ in range(restarts):
        async with EmbeddedCluster(data_dir=tmp_path, configs=ALLOWED) as cluster, connected(cluster) as client:
            assert await described(client) == ("Ongoing", identity, 2**31 - 1)
            newest = await init(client, keep=True)
            assert (newest.ongoing_txn_producer_id, newest.ongoing_txn_producer_epoch) == identity
    async with EmbeddedCluster(data_dir=tmp_path, configs=ALLOWED) as cluster, connected(cluster) as client:
        request = EndTxnRequest("x", newest.producer_id, newest.producer_epoch, committed=True)
        assert (await client.request(request, 5)).error_code == ErrorCode.NONE
        (marker,) = [batch for batch in cluster.log("t").batches() if batch.is_control]
        assert (marker.producer_id, marker.producer_epoch) == (identity[0], identity[1] + 1)
        assert not cluster.log("t").open_transactions


async def test_the_operation_is_one_of_its_own() -> None:
    """WRITE on the transactional id does not include TWO_PHASE_COMMIT."""
    guarded = {**CONFIGS, **ALLOWED, "authorizer.class.name": STANDARD, "super.users": "User:root"}
    async with EmbeddedCluster(configs=guarded) as cluster, connected(cluster) as client:
        await log_in(client)

        def allow(operation: AclOperation) -> None:
            kind = ResourceType.TRANSACTIONAL_ID
            cluster.create_acls(AclBinding(resource_type=kind, name="x", operation=operation, principal="User:alice"))

        allow(AclOperation.WRITE)
        assert (await init(client, two_phases=False)).error_code == ErrorCode.NONE
        assert (await init(client)).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        allow(AclOperation.TWO_PHASE_COMMIT)
        assert (await init(client)).error_code == ErrorCode.NONE
