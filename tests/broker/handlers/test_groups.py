"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, ListGroups, DeleteGroups, in every version."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.delete_groups import DeleteGroupsRequest
from aioproducer.protocol.messages.describe_groups import DescribeGroupsRequest
from aioproducer.protocol.messages.heartbeat import HeartbeatRequest
from aioproducer.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from aioproducer.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from aioproducer.protocol.messages.list_groups import ListGroupsRequest
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aioproducer.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from aioproducer.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

from . import Connect, RawClient

TWO_NODES = pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)


def joining(member_id: str = "", instance_id: str | None = None, metadata: bytes = b"m") -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", metadata)]
    return JoinGroupRequest("g", 10000, 10000, member_id, instance_id, "consumer", protocols)


async def join(client: RawClient, version: int = 9, **more: Any) -> Any:
    """A member of its own, with both steps that newer versions want."""
    answer = await client.request(joining(**more), version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = await client.request(joining(answer.member_id, **more), version)
    return answer


async def enter(client: RawClient) -> Any:
    """Joins and assigns itself something."""
    joined = await join(client)
    assigned = [SyncGroupRequestAssignment(joined.member_id, b"mine")]
    request = SyncGroupRequest("g", joined.generation_id, joined.member_id, assignments=assigned)
    assert (await client.request(request, 4)).error_code == ErrorCode.NONE
    return joined


@pytest.mark.parametrize("version", range(10))
async def test_join(client: RawClient, version: int) -> None:
    answer = await join(client, version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("raw-")
    assert [(one.member_id, one.metadata) for one in answer.members] == [(answer.member_id, b"m")]
    assert answer.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(10))
async def test_join_refused(client: RawClient, version: int) -> None:
    answer = await client.request(joining("nosuch"), version)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "nosuch")
    assert answer.protocol_name == (None if version >= 7 else "")


async def test_join_waits_for_the_others(connect: Connect) -> None:
    first, second = await connect(), await connect()
    one = await enter(first)
    answer = await second.request(joining(metadata=b"n"), 9)
    await second.send(joining(answer.member_id, metadata=b"n"), 9)
    beat = HeartbeatRequest("g", one.generation_id, one.member_id)
    while (await first.request(beat, 4)).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    rejoined = await first.request(joining(one.member_id), 9)
    _, other = await second.receive(ApiKey.JOIN_GROUP, 9)
    assert rejoined.generation_id == other.generation_id == 2
    assert rejoined.leader == other.leader == one.member_id
    assert {member.member_id: member.metadata for member in rejoined.members} == {
        one.member_id: b"m",
        other.member_id: b"n",
    }
    assert other.members == []


@pytest.mark.parametrize("version", range(6))
async def test_sync(client: RawClient, version: int) -> None:
    joined = await join(client)
    assigned = [SyncGroupRequestAssignment(joined.member_id, b"mine")]
    request = SyncGroupRequest("g", joined.generation_id, joined.member_id, None, "consumer", "range", assigned)
    answer = await client.request(request, version)
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"mine")
    assert (answer.protocol_type, answer.protocol_name) == (("consumer", "range") if version >= 5 else (None, None))
    request.generation_id = 7
    assert (await client.request(request, version)).error_code == ErrorCode.ILLEGAL_GENERATION
    request.member_id = "nosuch"
    assert (await client.request(request, version)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    if version >= 5:
        other = SyncGroupRequest("g", joined.generation_id, joined.member_id, protocol_name="sticky")
        assert (await client.request(other, version)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(5))
async def test_heartbeat(client: RawClient, version: int) -> None:
    joined = await enter(client)
    request = HeartbeatRequest("g", joined.generation_id, joined.member_id)
    assert (await client.request(request, version)).error_code == ErrorCode.NONE
    request.generation_id = 7
    assert (await client.request(request, version)).error_code == ErrorCode.ILLEGAL_GENERATION
    request.member_id = "nosuch"
    assert (await client.request(request, version)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(6))
async def test_leave(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    joined = await enter(client)
    if version < 3:
        assert (await client.request(LeaveGroupRequest("g", joined.member_id), version)).error_code == ErrorCode.NONE
        again = await client.request(LeaveGroupRequest("g", joined.member_id), version)
        assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    else:
        wanted = [MemberIdentity(joined.member_id), MemberIdentity("nosuch")]
        answer = await client.request(LeaveGroupRequest("g", members=wanted), version)
        assert [(one.member_id, one.error_code) for one in answer.members] == [
            (joined.member_id, ErrorCode.NONE),
            ("nosuch", ErrorCode.UNKNOWN_MEMBER_ID),
        ]
    described = await client.request(DescribeGroupsRequest(["g"]), 5)
    assert described.groups[0].group_state == "Empty"


@pytest.mark.parametrize("version", range(7))
async def test_describe(client: RawClient, version: int) -> None:
    joined = await enter(client)
    (described, unknown) = (await client.request(DescribeGroupsRequest(["g", "nosuch"]), version)).groups
    assert (described.error_code, described.group_state, described.protocol_type, described.protocol_data) == (
        ErrorCode.NONE,
        "Stable",
        "consumer",
        "range",
    )
    (member,) = described.members
    assert (member.member_id, member.client_id) == (joined.member_id, "raw")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"mine")
    assert unknown.group_state == "Dead"
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)


@pytest.mark.parametrize("version", range(6))
async def test_list(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    await enter(client)
    cluster.create_topic("t")
    topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 5)])]
    await client.request(OffsetCommitRequest("simple", topics=topics), 8)

    async def listed(**filters: Any) -> dict[str, str]:
        answer = await client.request(ListGroupsRequest(**filters), version)
        assert answer.error_code == ErrorCode.NONE
        return {one.group_id: one.group_state for one in answer.groups}

    states = {"g": "Stable", "simple": "Empty"} if version >= 4 else {"g": "", "simple": ""}
    assert await listed() == states
    if version >= 4:
        assert await listed(states_filter=["stable"]) == {"g": "Stable"}
    if version >= 5:
        assert await listed(types_filter=["consumer"]) == {}
        assert await listed(types_filter=["Classic"]) == states


@pytest.mark.parametrize("version", range(3))
async def test_delete(client: RawClient, version: int) -> None:
    joined = await enter(client)

    async def delete() -> dict[str, ErrorCode]:
        answer = await client.request(DeleteGroupsRequest(["g", "nosuch"]), version)
        return {one.group_id: ErrorCode(one.error_code) for one in answer.results}

    assert await delete() == {"g": ErrorCode.NON_EMPTY_GROUP, "nosuch": ErrorCode.GROUP_ID_NOT_FOUND}
    await client.request(LeaveGroupRequest("g", members=[MemberIdentity(joined.member_id)]), 5)
    assert (await delete())["g"] is ErrorCode.NONE
    assert (await delete())["g"] is ErrorCode.GROUP_ID_NOT_FOUND


async def test_members_commit_in_their_generation(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    joined = await enter(client)

    async def commit(generation: int, member_id: str) -> ErrorCode:
        topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 5)])]
        request = OffsetCommitRequest("g", generation, member_id, topics=topics)
        return ErrorCode((await client.request(request, 8)).topics[0].partitions[0].error_code)

    assert await commit(joined.generation_id, joined.member_id) is ErrorCode.NONE
    assert await commit(7, joined.member_id) is ErrorCode.ILLEGAL_GENERATION
    assert await commit(-1, "") is ErrorCode.UNKNOWN_MEMBER_ID


@TWO_NODES
async def test_only_the_coordinator_answers(cluster: EmbeddedCluster, connect: Connect) -> None:
    coordinator = cluster._state.nodes.coordinator("g")
    assert coordinator is not None
    other = await connect(1 - coordinator)
    assert (await other.request(joining(), 9)).error_code == ErrorCode.NOT_COORDINATOR
    assert (await other.request(SyncGroupRequest("g", 1, "m"), 4)).error_code == ErrorCode.NOT_COORDINATOR
    assert (await other.request(HeartbeatRequest("g", 1, "m"), 4)).error_code == ErrorCode.NOT_COORDINATOR
    leaving = LeaveGroupRequest("g", members=[MemberIdentity("m")])
    assert (await other.request(leaving, 5)).error_code == ErrorCode.NOT_COORDINATOR
    (group,) = (await other.request(DescribeGroupsRequest(["g"]), 6)).groups
    assert group.error_code == ErrorCode.NOT_COORDINATOR
    (deleted,) = (await other.request(DeleteGroupsRequest(["g"]), 2)).results
    assert deleted.error_code == ErrorCode.NOT_COORDINATOR
    await enter(await connect(coordinator))
    assert (await other.request(ListGroupsRequest(), 5)).groups == []


async def test_offsets_are_deleted_but_those_of_what_members_consume(
    cluster: EmbeddedCluster, client: RawClient
) -> None:
    for name in "tu":
        cluster.create_topic(name)
    subscription = struct.pack(">hih1si", 3, 1, 1, b"t", -1)
    joined = await join(client, metadata=subscription)
    topics = [OffsetCommitRequestTopic(name, partitions=[OffsetCommitRequestPartition(0, 5)]) for name in "tu"]

    async def delete(*names: str, group: str = "g") -> Any:
        wanted = [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)]) for name in names]
        answer = await client.request(OffsetDeleteRequest(group, wanted), 0)
        codes = [ErrorCode(topic.partitions[0].error_code).name for topic in answer.topics]
        return codes or ErrorCode(answer.error_code).name

    assigned = [SyncGroupRequestAssignment(joined.member_id, b"mine")]
    await client.request(SyncGroupRequest("g", joined.generation_id, joined.member_id, assignments=assigned), 4)
    commit = OffsetCommitRequest("g", joined.generation_id, joined.member_id, topics=topics)
    await client.request(commit, 8)
    assert await delete("t", "u", "v") == ["GROUP_SUBSCRIBED_TO_TOPIC", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    offsets = cluster._groups.offsets
    assert set(offsets.committed("g")) == {("t", 0)}
    await client.request(LeaveGroupRequest("g", members=[MemberIdentity(joined.member_id)]), 5)
    assert await delete("t") == ["NONE"]
    assert offsets.committed("g") == {}
    assert await delete("t", group="nosuch") == "GROUP_ID_NOT_FOUND"


@pytest.mark.parametrize("metadata", [b"", b"m", struct.pack(">hih", 0, 5, 3), struct.pack(">hih1s", 0, 1, 1, b"\xff")])
async def test_a_malformed_subscription_keeps_all_offsets(
    cluster: EmbeddedCluster, client: RawClient, metadata: bytes
) -> None:
    await join(client, metadata=metadata)
    cluster.create_topic("t")
    wanted = [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])]
    answer = await client.request(OffsetDeleteRequest("g", wanted), 0)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


async def test_a_client_that_disconnected_before_it_got_its_id_delays_no_rebalance(
    cluster: EmbeddedCluster, client: RawClient, connect: Connect
) -> None:
    joined = await client.request(joining(), 3)
    ghost = await connect()
    await ghost.send(joining(), 3)
    groups = cluster._groups
    while len(groups.group("g").members) < 2:  # noqa: ASYNC110 - the broker has no event for this
        await asyncio.sleep(0)
    await ghost.close()
    while len(groups.group("g").members) > 1:  # noqa: ASYNC110
        await asyncio.sleep(0)
    again = await client.request(joining(joined.member_id), 3)
    assert (again.error_code, again.generation_id) == (ErrorCode.NONE, joined.generation_id + 1)


async def test_a_group_has_an_id(client: RawClient) -> None:
    """As in Kafka."""
    invalid = ErrorCode.INVALID_GROUP_ID
    assert (await client.request(HeartbeatRequest("", 1, "m"), 4)).error_code == invalid
    assert (await client.request(SyncGroupRequest("", 1, "m"), 4)).error_code == invalid
    assert (await client.request(LeaveGroupRequest("", members=[MemberIdentity("m")]), 5)).error_code == invalid
    assert (await client.request(LeaveGroupRequest("", "m"), 2)).error_code == invalid
