"""The admin client's calls for offsets: of partitions, and what groups have committed."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

from aioproducer.admin.admin_calls import AdminCalls
from aioproducer.admin.groups import committed_offsets, groups_of_node
from aioproducer.admin.offsets import (
    IsolationLevel,
    ListOffsetsResultInfo,
    OffsetSpec,
    offsets_answered,
    offsets_request,
)
from aioproducer.errors import ApiException, KafkaError, RetriableException
from aioproducer.protocol.messages.list_offsets import ListOffsetsResponse
from aioproducer.types import OffsetAndMetadata, PartitionInfo, TopicPartition

T = TypeVar("T")


class OffsetCalls(AdminCalls):
    """To look up where partitions begin and end, and how far groups have come."""

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, isolation_level: IsolationLevel = "read_uncommitted"
    ) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
        """The offsets of partitions at their leaders, or errors in their place; each leader is asked once."""
        client = self._client()

        async def attempt(
            wanted: list[TopicPartition],
        ) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
            answers: dict[TopicPartition, ListOffsetsResultInfo | KafkaError] = {}
            by_leader: dict[int, list[PartitionInfo]] = defaultdict(list)
            for partition in wanted:
                try:
                    info = await self._leader(partition)
                    by_leader[info.leader].append(info)
                except ApiException as error:
                    answers[partition] = error
            requests = [
                client.client.request(
                    offsets_request(of_leader, specs, isolation_level, self._broker_timeout_ms),
                    ListOffsetsResponse,
                    node_id=leader,
                )
                for leader, of_leader in by_leader.items()
            ]
            for response in await _gathered(requests):
                answers |= offsets_answered(response)
            return answers

        return await self._repeat("listing offsets", list(specs), attempt, RetriableException)

    async def list_groups(self, *, without_members: bool = False) -> list[str]:
        """The ids of all groups that this client may see, in order.

        With ``without_members`` only of those without members, such as groups whose offsets a transaction commits;
        brokers before 2.6 tell the others, too.
        """
        client = self._client()

        async def attempt() -> list[str]:
            cluster = await client.cluster()
            found: set[str] = set()
            for node in cluster.nodes:
                found.update(await groups_of_node(client.client, node, without_members=without_members))
            return sorted(found)

        return await client.retry("listing groups", attempt)

    async def list_consumer_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, require_stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What a group has committed for these partitions; None where it has committed nothing.

        With ``require_stable`` the call waits until no open transaction has offsets to commit there (KIP-447).
        """
        wanted = list(partitions)
        client = self._client()
        return await client.retry(
            f"reading the offsets of group {group!r}",
            lambda: committed_offsets(client.client, client.coordinators, group, wanted, require_stable=require_stable),
        )

    async def _leader(self, partition: TopicPartition) -> PartitionInfo:
        """A partition with its leader, from the present metadata."""
        topic = await self._client().topic(partition.topic)
        return topic.led(partition.partition)


async def _gathered(requests: Iterable[Awaitable[T]]) -> list[T]:
    """All answers; when all have ended, raises the first error."""
    results = await asyncio.gather(*requests, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
