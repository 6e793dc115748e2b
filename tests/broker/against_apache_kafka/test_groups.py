"""Groups and their offsets on the embedded broker and on Apache Kafka, request by request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.delete_groups import DeleteGroupsRequest
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
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
from aioproducer.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from aioproducer.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from aioproducer.protocol.primitives import ZERO_UUID
from tests.broker.raw_clients.raw_client import RawClient

from .kafka_comparison import GROUP, ComparedBroker, same

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

NO_ID = UUID(int=12345)


def name_of(code: int) -> str:
    return ErrorCode(code).name


class Group:
    """The requests to a group's coordinator."""

    def __init__(self, broker: ComparedBroker, group_id: str) -> None:
        self.broker = broker
        self.id = group_id

    async def commit(self, topic: str, offset: int, index: int = 0, version: int = 9, **more: Any) -> str:
        topic_id = more.pop("topic_id", ZERO_UUID)
        metadata = more.pop("metadata", "m")
        epoch = more.pop("epoch", 3)
        partition = OffsetCommitRequestPartition(index, offset, epoch, metadata)
        request = OffsetCommitRequest(self.id, topics=[OffsetCommitRequestTopic(topic, topic_id, [partition])], **more)

        def code(response: Any) -> int:
            return int(response.topics[0].partitions[0].error_code)

        return name_of(code(await self.broker.settled(request, version, code)))

    async def offsets(self, *topics: tuple[str, list[int]], version: int = 9, everything: bool = False) -> Any:
        if version < 8:
            named = None if everything else [OffsetFetchRequestTopic(*topic) for topic in topics]
            request = OffsetFetchRequest(self.id, named)
            answer = await self.broker.settled(request, version, lambda response: int(response.error_code))
            code, found = answer.error_code, answer.topics
        else:
            wanted = None if everything else [OffsetFetchRequestTopics(name, ZERO_UUID, of) for name, of in topics]
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.id, topics=wanted)])
            answer = await self.broker.settled(request, version, lambda response: int(response.groups[0].error_code))
            code, found = answer.groups[0].error_code, answer.groups[0].topics
        return name_of(code), sorted(
            (
                topic.name,
                [
                    (
                        one.partition_index,
                        one.committed_offset,
                        one.committed_leader_epoch,
                        one.metadata,
                        one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in found
        )

    async def described(self, version: int = 6) -> Any:
        request = DescribeGroupsRequest([self.id], include_authorized_operations=version >= 3)
        answer = await self.broker.settled(request, version, lambda response: int(response.groups[0].error_code))
        (found,) = answer.groups
        members = [
            (one.group_instance_id, one.client_id, one.client_host, one.member_metadata, one.member_assignment)
            for one in found.members
        ]
        agreed = found.group_state, found.protocol_type, found.protocol_data
        return (
            name_of(found.error_code),
            bool(found.error_message),
            agreed,
            found.authorized_operations,
            sorted(members, key=str),
        )

    async def listed(self, version: int = 5, **filters: Any) -> Any:
        answer = await self.broker.client.request(ListGroupsRequest(**filters), version)
        return name_of(answer.error_code), sorted(
            (one.group_id, one.protocol_type, one.group_state, one.group_type)
            for one in answer.groups
            if one.group_id == self.id
        )

    async def forget(self, *topics: tuple[str, list[int]]) -> Any:
        named = [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index) for index in of]) for name, of in topics
        ]
        answer = await self.broker.settled(
            OffsetDeleteRequest(self.id, named), 0, lambda response: int(response.error_code)
        )
        return name_of(answer.error_code), sorted(
            (topic.name, sorted((one.partition_index, name_of(one.error_code)) for one in topic.partitions))
            for topic in answer.topics
        )

    async def delete(self) -> str:
        answer = await self.broker.client.request(DeleteGroupsRequest([self.id]), 2)
        return name_of(answer.results[0].error_code)


async def found(broker: ComparedBroker, group_id: str) -> Group:
    await broker.find_coordinator(group_id, GROUP)
    group = Group(broker, group_id)
    await group.described()  # it has been read
    return group


async def test_offsets_without_members(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        topic_id = await broker.create("committed", 2)
        group = await found(broker, "offsets")
        answers: list[Any] = []
        answers += [(version, await group.offsets(("committed", [0]), version=version)) for version in range(1, 10)]
        for version in range(2, 9):
            answers.append((version, await group.offsets(version=version, everything=True)))
        commits: list[dict[str, Any]] = [
            {},
            {"metadata": None},
            {"metadata": "x" * 4096},
            {"metadata": "x" * 4097},
            {"offset": -1},
            {"offset": -77},
            {"offset": 2**63 - 1},
            {"epoch": -1},
            {"epoch": -7},
            {"index": 2},
            {"index": -1},
            {"topic": "not-there"},
            {"topic": ""},
            {"topic": "no/name"},
            {"generation_id_or_member_epoch": 0},
            {"generation_id_or_member_epoch": 5},
            {"generation_id_or_member_epoch": -2},
            {"member_id": "nobody"},
            {"member_id": "nobody", "generation_id_or_member_epoch": 5},
            {"group_instance_id": "nobody"},
            {"topic": "", "version": 10, "topic_id": topic_id},
            {"topic": "", "version": 10, "topic_id": topic_id, "index": 5},
            {"topic": "", "version": 10, "topic_id": NO_ID},
            {"topic": "", "version": 10},
            {"version": 4, "retention_time_ms": 1},
            {"version": 2, "retention_time_ms": 10**9},
        ]
        for more in commits:
            given = {"topic": "committed", "offset": 5, **more}
            code = await group.commit(**given)
            answers.append((more.keys() - {"topic_id"}, code))
            answers.append(await group.offsets(("committed", [0, 1, 2, -1])))
        answers += [
            (version, await group.offsets(("committed", [1, 0, 7]), ("not-there", [0]), version=version))
            for version in range(1, 10)
        ]
        answers.append(await group.offsets())
        answers += [(version, await group.offsets(version=version, everything=True)) for version in range(2, 10)]
        for version in range(7):
            answers.append((version, await group.described(version)))
        filters: list[dict[str, Any]] = [
            {},
            {"states_filter": ["Empty"]},
            {"states_filter": ["empty", "Stable"]},
            {"states_filter": ["Stable"]},
            {"states_filter": ["Nonsense"]},
            {"types_filter": ["classic"]},
            {"types_filter": ["Classic"]},
            {"types_filter": ["consumer"]},
            {"types_filter": ["nonsense"]},
        ]
        answers += [(one, await group.listed(**one)) for one in filters]
        answers += [await group.listed(version) for version in range(5)]
        answers.append(await group.forget(("committed", [1, 0, 7]), ("not-there", [0]), ("", [0])))
        answers.append(await group.offsets(("committed", [0])))
        answers.append(await group.described())
        answers.append(await group.commit("committed", 1))
        answers.append(await group.delete())
        answers.append(await group.delete())
        answers.append(await group.described())
        answers.append(await group.offsets(("committed", [0])))
        answers.append(await group.forget(("committed", [0])))
        nameless = Group(broker, "")
        answers.append(await nameless.commit("committed", 5))
        answers.append(await nameless.commit("committed", 5, generation_id_or_member_epoch=1))
        answers.append(await nameless.offsets(("committed", [0])))
        answers.append(await nameless.described())
        answers.append(await nameless.listed())
        answers.append(await nameless.forget(("committed", [0])))
        answers.append(await nameless.delete())
        return answers

    await same(pair, case)


async def test_several_groups_in_one_request(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        topic_id = await broker.create("several")
        one, other = await found(broker, "several-1"), await found(broker, "several-2")
        answers: list[Any] = [await one.commit("several", 1), await other.commit("several", 2)]
        for version in (8, 9, 10):
            topics = [OffsetFetchRequestTopics("several", topic_id, [0]), OffsetFetchRequestTopics("", NO_ID, [0])]
            groups = [OffsetFetchRequestGroup(name, topics=topics) for name in ("several-1", "several-2", "nobody", "")]
            everything = [OffsetFetchRequestGroup("several-1", topics=None)]
            for wanted in (groups, everything, []):
                answer = await broker.client.request(OffsetFetchRequest(groups=wanted), version)
                answers.append(
                    [
                        (
                            group.group_id,
                            group.error_code,
                            [
                                (topic.name, topic.topic_id == topic_id, topic.partitions)
                                for topic in sorted(
                                    group.topics, key=lambda topic: str(topic.name) + str(topic.topic_id != topic_id)
                                )
                            ],
                        )
                        for group in sorted(answer.groups, key=lambda group: str(group.group_id))
                    ]
                )
        return answers

    await same(pair, case)


async def test_offsets_of_a_topic_that_is_deleted(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    """They go with it: a topic of the same name begins without."""

    async def case(broker: ComparedBroker) -> Any:
        await broker.create("goes")
        await broker.create("stays")
        group = await found(broker, "offsets-of-a-deleted-topic")
        answers: list[Any] = [await group.commit("goes", 5), await group.commit("stays", 6)]
        deletion = DeleteTopicsRequest([DeleteTopicState("goes")], timeout_ms=5000)
        await broker.client.request(deletion, 6)
        left = [("stays", [(0, 6, 3, "m", 0)])]
        while (await group.offsets(everything=True))[1] != left:  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
        answers.append(await group.offsets(("goes", [0])))
        anew = CreateTopicsRequest([CreatableTopic("goes", 1, 1)])
        while (await broker.client.request(anew, 7)).topics[0].error_code:  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
        while (await broker.list_offset("goes", -1))[0] != "NONE":  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
        answers.append(await group.offsets(("goes", [0])))
        answers.append(await group.offsets(everything=True))
        return answers

    await same(pair, case)


class Member:
    """A client that wants to be in a group, with a connection of its own."""

    def __init__(self, client: RawClient, group_id: str, instance_id: str | None = None) -> None:
        self.client = client
        self.group_id = group_id
        self.instance_id = instance_id
        self.id = ""
        self.generation = -1
        self.protocols = [JoinGroupRequestProtocol("range", b"r"), JoinGroupRequestProtocol("sticky", b"s")]

    async def join(self, version: int = 9, **more: Any) -> Any:
        given: dict[str, Any] = {
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": self.id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": self.protocols,
        }
        answer = await self.client.request(JoinGroupRequest(self.group_id, **{**given, **more}), version)
        code = name_of(answer.error_code)
        if code in ("NONE", "MEMBER_ID_REQUIRED"):
            self.id, self.generation = answer.member_id, answer.generation_id
        return (
            code,
            answer.generation_id,
            answer.protocol_type,
            answer.protocol_name,
            answer.leader == answer.member_id,
            answer.skip_assignment,
            sorted((member.group_instance_id, member.metadata) for member in answer.members),
        )

    async def sync(self, *assigned: tuple[str, bytes], version: int = 5, **more: Any) -> Any:
        given: dict[str, Any] = {
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance_id,
        }
        handed = [SyncGroupRequestAssignment(*one) for one in assigned]
        request = SyncGroupRequest(
            self.group_id,
            **{**given, "protocol_type": "consumer", "protocol_name": "range", "assignments": handed, **more},
        )
        answer = await self.client.request(request, version)
        return name_of(answer.error_code), answer.protocol_type, answer.protocol_name, answer.assignment

    async def heartbeat(self, **more: Any) -> str:
        given: dict[str, Any] = {
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance_id,
        }
        return name_of((await self.client.request(HeartbeatRequest(self.group_id, **{**given, **more}), 4)).error_code)

    async def leave(self, *members: tuple[str, str | None]) -> Any:
        leaving = [MemberIdentity(*one) for one in members or [(self.id, self.instance_id)]]
        answer = await self.client.request(LeaveGroupRequest(self.group_id, members=leaving), 5)
        return name_of(answer.error_code), [(one.group_instance_id, name_of(one.error_code)) for one in answer.members]


async def with_members(
    broker: ComparedBroker, group_id: str, instances: list[str | None], case: Callable[..., Any]
) -> Any:
    """Each of the case's members has its own connection."""
    host, port = broker.client.writer.get_extra_info("peername")[:2]
    clients = [await RawClient.connect(f"{host}:{port}") for _ in instances]
    try:
        group = await found(broker, group_id)
        return await case(
            group, *(Member(client, group_id, one) for client, one in zip(clients, instances, strict=True))
        )
    finally:
        for client in clients:
            await client.close()


async def test_two_members(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def conversation(group: Group, first: Member, second: Member) -> Any:
        await group.broker.create("two")
        answers: list[Any] = [await first.join(), await first.join()]
        answers.append(await second.join())
        both = asyncio.create_task(second.join())
        while (beat := await first.heartbeat()) != "REBALANCE_IN_PROGRESS":
            pass
        answers.append(beat)
        answers.append(await group.described())
        answers.append(await group.commit("two", 1, member_id=first.id, generation_id_or_member_epoch=first.generation))
        answers.append(await group.commit("two", 1))
        answers.append(await first.sync())
        answers += [await first.join(), await both]
        answers.append(await group.described())
        answers.append(await group.commit("two", 1, member_id=first.id, generation_id_or_member_epoch=first.generation))
        answers.append(await group.delete())
        waiting = asyncio.create_task(second.sync())
        answers.append(await first.sync((first.id, b"one"), (second.id, b"two"), ("nobody", b"three")))
        answers.append(await waiting)
        answers.append(await group.described())
        answers.append(await group.forget(("two", [0])))
        for more in (
            {"member_id": first.id, "generation_id_or_member_epoch": first.generation},
            {"member_id": first.id, "generation_id_or_member_epoch": first.generation + 1},
            {"member_id": first.id},
            {"member_id": "nobody", "generation_id_or_member_epoch": first.generation},
            {},
            {"member_id": second.id, "generation_id_or_member_epoch": second.generation, "group_instance_id": "x"},
        ):
            answers.append(([*more], await group.commit("two", 1, **more)))
        answers.append(await second.join(protocols=[JoinGroupRequestProtocol("sticky", b"other")], member_id="nobody"))
        answers.append(await second.leave(("nobody", None), (second.id, None), (second.id, None)))
        while (beat := await first.heartbeat()) != "REBALANCE_IN_PROGRESS":
            pass
        answers += [beat, await second.heartbeat(), await first.join(), await group.described()]
        answers += [await first.leave(), await first.leave(), await group.described(), await group.listed()]
        answers += [await group.delete(), await group.described()]
        return answers

    await same(pair, lambda broker: with_members(broker, "two-members", [None, None], conversation))


async def test_static_members(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def conversation(group: Group, first: Member, second: Member, again: Member) -> Any:
        answers: list[Any] = [await first.join()]
        answers.append(await first.sync((first.id, b"one")))
        answers.append(await group.described())
        both = asyncio.create_task(second.join())
        while (beat := await first.heartbeat()) != "REBALANCE_IN_PROGRESS":
            pass
        answers += [beat, await first.join(), await both]
        answers.append(await first.sync((first.id, b"one"), (second.id, b"two")))
        answers.append(await second.sync())
        # The second starts anew: it gets what it had, and its former self is fenced.
        answers.append(await again.join())
        answers.append(await group.described())
        answers += [await again.sync(), await again.heartbeat(), await second.heartbeat()]
        answers += [await second.sync(), await second.join()]
        answers.append(await first.heartbeat())
        answers.append(
            await group.commit(
                "nowhere",
                1,
                member_id=second.id,
                generation_id_or_member_epoch=second.generation,
                group_instance_id="b",
            )
        )
        # So does the leader.
        first.id = ""
        answers += [await first.join(), await first.join(version=8, member_id="")]
        answers.append(await first.sync((first.id, b"one more"), (again.id, b"two more")))
        answers.append(await again.heartbeat())
        answers.append(await group.described())
        answers.append(await first.leave(("", "b"), ("", "nobody"), ("nobody", "a")))
        while (beat := await first.heartbeat()) != "REBALANCE_IN_PROGRESS":
            pass
        answers += [
            beat,
            await first.join(),
            await group.described(),
            await first.leave(("", "a")),
            await group.described(),
        ]
        return answers

    await same(pair, lambda broker: with_members(broker, "static-members", ["a", "b", "b"], conversation))


@pytest.mark.parametrize("version", range(2, 10))
async def test_joining_by_version(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    async def conversation(group: Group, member: Member) -> Any:
        answers: list[Any] = [await member.join(version)]
        if answers[0][0] == "MEMBER_ID_REQUIRED":
            answers.append(await member.leave(("nobody", None)))
            answers.append(await member.join(version))
        answers.append(await member.join(version, protocols=[JoinGroupRequestProtocol("range", b"new")]))
        requests: list[dict[str, Any]] = [
            {"session_timeout_ms": 5},
            {"session_timeout_ms": 10**8},
            {"protocols": []},
            {"protocol_type": ""},
            {"protocol_type": "connect"},
            {"protocols": [JoinGroupRequestProtocol("", b"")]},
            {"member_id": "nobody"},
        ]
        answers += [([*request], await member.join(version, **request)) for request in requests]
        answers.append(await member.sync((member.id, b"mine"), version=min(version, 5)))
        answers.append(await group.described())
        nameless = Member(member.client, "")
        answers.append(await nameless.join(version))
        answers.append(await member.leave())
        return answers

    await same(pair, lambda broker: with_members(broker, f"joined-by-{version}", [None], conversation))
