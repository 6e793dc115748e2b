from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioproducer import KafkaProducer, OffsetAndMetadata, TopicPartition
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import GroupAuthorizationException, TimeoutException, UnsupportedVersionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from aioproducer.testing.faults.fault_script import FaultScript
from tests.admin.clusters import QUICK
from tests.broker.raw_clients.raw_client import RawClient

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
COMMITTED = OffsetAndMetadata(7, "a note", 3)


async def commit(cluster: EmbeddedCluster) -> None:
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send_offsets_to_transaction({T0: COMMITTED}, "g")


@pytest.fixture
def faults() -> FaultScript:
    return FaultScript(nodes=2)


@pytest.fixture
async def cluster(faults: FaultScript) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(2, faults=faults) as cluster:
        cluster.create_topic("t", 2)
        await commit(cluster)
        yield cluster
    faults.verify()


@pytest.fixture
async def admin(cluster: EmbeddedCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
        yield admin


async def test_committed_and_missing_offsets_are_listed(admin: KafkaAdmin) -> None:
    assert await admin.list_consumer_group_offsets("g", [T0, T1]) == {T0: COMMITTED, T1: None}
    assert await admin.list_consumer_group_offsets("nobody", [T1], require_stable=True) == {T1: None}
    assert await admin.list_consumer_group_offsets("g") == {T0: COMMITTED}, "of all partitions"
    assert await admin.list_consumer_group_offsets("nobody") == {}


async def test_several_groups_are_asked_for_with_one_request_to_each_coordinator(
    admin: KafkaAdmin, cluster: EmbeddedCluster, faults: FaultScript
) -> None:
    cluster.move_coordinator("g", 0)
    cluster.move_coordinator("nobody", 1)
    cluster.move_coordinator("else", 1)
    wanted = {"g": [T0, T1], "nobody": [T1], "else": None}
    found = {"g": {T0: COMMITTED, T1: None}, "nobody": {T1: None}, "else": {}}
    assert await admin.list_all_consumer_group_offsets(wanted) == found
    assert await admin.list_all_consumer_group_offsets({}) == {}
    cluster.move_coordinator("g", 1)
    assert await admin.list_all_consumer_group_offsets(wanted) == found, "one has moved, and is found again"
    faults.on(ApiKey.OFFSET_FETCH).answer(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(GroupAuthorizationException):
        await admin.list_all_consumer_group_offsets(wanted)


@pytest.mark.parametrize("newest", [7, 8, 10])
async def test_stable_offsets_in_every_version_that_has_them(newest: int) -> None:
    async with EmbeddedCluster(2, newest_versions={ApiKey.OFFSET_FETCH: newest}) as cluster:
        cluster.create_topic("t", 2)
        await commit(cluster)
        async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
            assert await admin.list_consumer_group_offsets("g", [T0], require_stable=True) == {T0: COMMITTED}
            assert await admin.list_consumer_group_offsets("g") == {T0: COMMITTED}


async def test_stable_offsets_need_a_newer_broker() -> None:
    async with EmbeddedCluster(2, newest_versions={ApiKey.OFFSET_FETCH: 6}) as cluster:
        cluster.create_topic("t", 2)
        await commit(cluster)
        async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
            assert await admin.list_consumer_group_offsets("g", [T0]) == {T0: COMMITTED}
            with pytest.raises(UnsupportedVersionException):
                await admin.list_consumer_group_offsets("g", [T0], require_stable=True)


async def test_an_offset_of_a_transaction_under_way_is_waited_for(cluster: EmbeddedCluster) -> None:
    impatient = KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, default_api_timeout_ms=300, **QUICK)
    async with (
        impatient as admin,
        KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer,
    ):
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send_offsets_to_transaction({T0: 8}, "g")
            assert await admin.list_consumer_group_offsets("g", [T0]) == {T0: COMMITTED}
            with pytest.raises(TimeoutException, match=r"offsets of group 'g'.*UNSTABLE_OFFSET_COMMIT"):
                await admin.list_consumer_group_offsets("g", [T0], require_stable=True)
        assert await admin.list_consumer_group_offsets("g", [T0], require_stable=True) == {T0: OffsetAndMetadata(8)}


async def test_a_coordinator_that_has_moved_is_found_again(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    for node in (1, 0):
        cluster.move_coordinator("g", node)
        assert (await admin.list_consumer_group_offsets("g", [T0]))[T0] == COMMITTED


async def test_a_refusal_is_raised_with_the_name_of_the_group(admin: KafkaAdmin, faults: FaultScript) -> None:
    faults.on(ApiKey.OFFSET_FETCH).answer(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(GroupAuthorizationException, match="group 'g'"):
        await admin.list_consumer_group_offsets("g", [T0])


async def test_groups_of_every_node(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    for node in (0, 1):
        cluster.move_coordinator("g", node)
        assert await admin.list_groups() == ["g"]


@pytest.mark.parametrize("newest", [3, 5])
async def test_only_groups_without_members_if_brokers_can_filter(newest: int) -> None:
    async with EmbeddedCluster(newest_versions={ApiKey.LIST_GROUPS: newest}) as cluster:
        cluster.create_topic("t", 2)
        await commit(cluster)
        member = await RawClient.connect(cluster.bootstrap_servers)
        joining = JoinGroupRequest("m", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"")])
        assert (await member.request(joining, 3)).error_code == ErrorCode.NONE
        async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
            assert await admin.list_groups() == ["g", "m"]
            assert await admin.list_groups(without_members=True) == (["g"] if newest >= 4 else ["g", "m"])
        await member.close()


async def test_a_request_is_repeated_to_a_node_that_is_not_ready_to_list_its_groups(
    admin: KafkaAdmin, faults: FaultScript
) -> None:
    faults.on(ApiKey.LIST_GROUPS).answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert await admin.list_groups() == ["g"]
