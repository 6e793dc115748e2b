"""Requests to the coordinators of groups: which groups there are, and what they have committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from aioproducer.admin.calls.answers import gathered
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
_GROUPS_AT_ONCE = 1000
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
    groups: Mapping[str, Sequence[TopicPartition] | None],
    *,
    require_stable: bool,
) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
    """One attempt, with a request to each coordinator. Raises the error that one answers; the next attempt then looks
    for the coordinators of its groups again. Several groups at once need brokers of 3.0 or newer."""
    if len(groups) == 1:
        nodes = {group: await coordinators.find(GROUP, group) for group in groups}
    else:
        nodes = await coordinators.find_all(GROUP, list(groups))
    by_node: dict[int, list[str]] = defaultdict(list)
    for group, node in nodes.items():
        by_node[node].append(group)

    async def of_node(node: int, some: list[str]) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        try:
            answers = await _ask(client, node, {group: groups[group] for group in some}, require_stable)
            for group, answer in answers.items():
                _check(answer.error_code, f"the offsets of group {group!r}")
            return {group: dict(_committed(group, answer)) for group, answer in answers.items()}
        except KafkaError as error:
            if error.code is not ErrorCode.UNSTABLE_OFFSET_COMMIT:
                for group in some:
                    coordinators.forget(GROUP, group)
            raise

    portions = [
        (node, some[at : at + _GROUPS_AT_ONCE])
        for node, some in by_node.items()
        for at in range(0, len(some), _GROUPS_AT_ONCE)
    ]
    found: dict[str, dict[TopicPartition, OffsetAndMetadata | None]] = {}
    for part in await gathered(of_node(*portion) for portion in portions):
        found |= part
    return found


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
    client: KafkaClient, node: int, groups: Mapping[str, Sequence[TopicPartition] | None], require_stable: bool
) -> dict[str, OffsetFetchResponse | OffsetFetchResponseGroup]:
    wanted = {group: None if places is None else _by_topic(places) for group, places in groups.items()}
    try:
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group, topics=_topics(of_group)) for group, of_group in wanted.items()],
            require_stable=require_stable,
        )
        response = await client.request(request, OffsetFetchResponse, node_id=node, at_most=_LAST_WITH_NAMES)
        answers = {answer.group_id: answer for answer in response.groups}
        return {group: answers[group] for group in groups}
    except UnsupportedVersionException:  # a broker before 3.0
        ((group, of_group),) = wanted.items()
        of_one = None
        if of_group is not None:
            of_one = [OffsetFetchRequestTopic(name, indexes) for name, indexes in of_group.items()]
        request = OffsetFetchRequest(group, of_one, require_stable=require_stable)
        return {group: await client.request(request, OffsetFetchResponse, node_id=node, at_most=_LAST_WITH_ONE_GROUP)}


def _topics(wanted: dict[str, list[int]] | None) -> list[OffsetFetchRequestTopics] | None:
    if wanted is None:
        return None
    return [OffsetFetchRequestTopics(name, partition_indexes=indexes) for name, indexes in wanted.items()]


def _check(code: int, what: str) -> None:
    if code != ErrorCode.NONE:
        raise error_for(code, f"{what}: {error_class(code).__doc__}")
