"""The admin client's calls for offsets: of partitions, and what groups have committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from aioproducer.admin.calls.admin_requests import AdminRequests
from aioproducer.admin.calls.answers import gathered
from aioproducer.admin.calls.groups import committed_offsets, groups_of_node
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


class OffsetCalls:
    """Carries out the calls of KafkaAdmin that have these names."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, isolation_level: IsolationLevel
    ) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
        async def attempt(
            wanted: list[TopicPartition],
        ) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
            answers: dict[TopicPartition, ListOffsetsResultInfo | KafkaError] = {}
            by_leader: dict[int, list[PartitionInfo]] = defaultdict(list)
            for partition in wanted:
                try:
                    info = await self._requests.leader(partition)
                    by_leader[info.leader].append(info)
                except ApiException as error:
                    answers[partition] = error
            requests = [
                self._requests.ask(
                    offsets_request(of_leader, specs, isolation_level, self._requests.broker_timeout_ms),
                    ListOffsetsResponse,
                    node_id=leader,
                )
                for leader, of_leader in by_leader.items()
            ]
            for response in await gathered(requests):
                answers |= offsets_answered(response)
            return answers

        return await self._requests.repeat("listing offsets", list(specs), attempt, RetriableException)

    async def list_groups(self, *, without_members: bool) -> list[str]:
        return await self._requests.ask_every_node(
            "listing groups",
            lambda client, node_id: groups_of_node(client, node_id, without_members=without_members),
        )

    async def list_all_consumer_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, require_stable: bool
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]:
        if not groups:
            return {}
        wanted = {group: None if partitions is None else list(partitions) for group, partitions in groups.items()}
        first, *others = wanted
        more = f" and {len(others)} more" if others else ""
        return await self._requests.ask_coordinators(
            f"reading the offsets of group {first!r}{more}",
            lambda client, coordinators: committed_offsets(client, coordinators, wanted, require_stable=require_stable),
        )
