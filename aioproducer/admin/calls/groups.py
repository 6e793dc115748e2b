"""Requests to the coordinators of groups: which groups there are, and what they have committed."""

from __future__ import annotations

from collections.abc import Iterable

from aioproducer.errors import KafkaError, UnsupportedVersionException, error_class, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.client import KafkaClient
from aioproducer.net.coordinators import GROUP, Coordinators
from aioproducer.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from aioproducer.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from aioproducer.types import OffsetAndMetadata, TopicPartition

_LAST_WITH_ONE_GROUP = 7
_LAST_WITH_NAMES = 9
_WITHOUT_MEMBERS = "Empty"
"""The state of a group that has offsets but no members."""


async def groups_of_node(client: KafkaClient, node: int, *, without_members: bool) -> list[str]:
    """The ids of the groups that a node coordinates. Raises the error that it answers."""
    request = ListGroupsRequest(states_filter=[_WITHOUT_MEMBERS] if without_members else [])
    try:
        response = await client.request(request, ListGroupsResponse, node_id=node)
    except UnsupportedVersionException:  # a broker before 2.6
        response = await client.request(ListGroupsRequest(), ListGroupsResponse, node_id=node)
    _check(response.error_code, f"the groups of node {node}")
    return [group.group_id for group in response.groups]


async def committed_offsets(
    client: KafkaClient,
    coordinators: Coordinators,
    group: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    require_stable: bool,
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """One attempt. Raises the coordinator's error; the next attempt then looks for the coordinator again."""
    wanted = None if partitions is None else _by_topic(partitions)
    node = await coordinators.find(GROUP, group)
    try:
        answer = await _ask(client, node, group, wanted, require_stable)
        _check(answer.error_code, f"the offsets of group {group!r}")
        return dict(_committed(group, answer))
    except KafkaError as error:
        if error.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
            coordinators.forget(GROUP, group)
        raise


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _committed(
    group: str, answer: OffsetFetchResponse | OffsetFetchResponseGroup
) -> Iterable[tuple[TopicPartition, OffsetAndMetadata | None]]:
    for topic in answer.topics:
        for one in topic.partitions:
            partition = TopicPartition(topic.name, one.partition_index)
            _check(one.error_code, f"the offset of group {group!r} in {partition}")
            offset = OffsetAndMetadata(one.committed_offset, one.metadata or "", one.committed_leader_epoch)
            yield partition, offset if offset.offset >= 0 else None


async def _ask(
    client: KafkaClient, node: int, group: str, wanted: dict[str, list[int]] | None, require_stable: bool
) -> OffsetFetchResponse | OffsetFetchResponseGroup:
    try:
        topics = None
        if wanted is not None:
            topics = [OffsetFetchRequestTopics(name, partition_indexes=indexes) for name, indexes in wanted.items()]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group, topics=topics)], require_stable=require_stable
        )
        response = await client.request(request, OffsetFetchResponse, node_id=node, at_most=_LAST_WITH_NAMES)
        (answer,) = response.groups
        return answer
    except UnsupportedVersionException:  # a broker before 3.0
        of_one = None
        if wanted is not None:
            of_one = [OffsetFetchRequestTopic(name, indexes) for name, indexes in wanted.items()]
        request = OffsetFetchRequest(group, of_one, require_stable=require_stable)
        return await client.request(request, OffsetFetchResponse, node_id=node, at_most=_LAST_WITH_ONE_GROUP)


def _check(code: int, what: str) -> None:
    if code != ErrorCode.NONE:
        raise error_for(code, f"{what}: {error_class(code).__doc__}")
