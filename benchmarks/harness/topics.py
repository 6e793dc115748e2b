"""Topics that exist for one run or for one case, and the broker's word on how many records are in them."""

from __future__ import annotations

import contextlib
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.errors import KafkaError, LeaderNotAvailableException, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST = -1
API_TIMEOUT_MS = 300_000
"""Thousands of partitions take a broker a while."""


class Topics:
    """``names``; ``name`` is the first one, or what all begin with."""

    def __init__(self, admin: KafkaAdmin, name: str, names: list[str], partitions: int) -> None:
        self.name = name
        self._partitions = partitions
        self._admin = admin
        self._names = names

    async def records(self) -> int:
        """The sum of all partitions' end offsets; waits until every partition has a leader that answers it."""
        return await self._admin._client().retry("asking for end offsets", self._try_records)

    async def _try_records(self) -> int:
        partitions: dict[int, dict[str, list[ListOffsetsPartition]]] = defaultdict(lambda: defaultdict(list))
        for name, description in (await self._admin.describe_topics(self._names)).items():
            if isinstance(description, KafkaError):
                raise description
            if len(description.partitions) != self._partitions or any(
                info.leader < 0 for info in description.partitions
            ):
                raise LeaderNotAvailableException(f"topic {name!r} is not whole yet")
            for info in description.partitions:
                wanted = ListOffsetsPartition(partition_index=info.partition, timestamp=LATEST)
                partitions[info.leader][name].append(wanted)
        return sum([await self._end_offsets(leader, of_leader) for leader, of_leader in partitions.items()])

    async def _end_offsets(self, leader: int, partitions: dict[str, list[ListOffsetsPartition]]) -> int:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(name=name, partitions=wanted) for name, wanted in partitions.items()],
        )
        response = await self._admin._client().client.request(request, ListOffsetsResponse, node_id=leader)
        answers = [answer for topic in response.topics for answer in topic.partitions]
        for answer in answers:
            if answer.error_code != ErrorCode.NONE:
                raise error_for(answer.error_code, f"node {leader} does not answer an end offset")
        if len(answers) != sum(map(len, partitions.values())):
            raise KafkaError(f"node {leader} answered end offsets of other partitions than requested")
        return sum(answer.offset for answer in answers)


@contextlib.asynccontextmanager
async def fresh_topics(
    bootstrap_servers: str, partitions: int, topics: int = 1, configs: Mapping[str, str] | None = None
) -> AsyncIterator[Topics]:
    """Makes topics with the broker's default replication, and deletes them."""
    name = f"aioproducer-benchmark-{uuid.uuid4().hex[:12]}"
    names = [name] if topics == 1 else [f"{name}-{number}" for number in range(topics)]
    async with KafkaAdmin(bootstrap_servers=bootstrap_servers, default_api_timeout_ms=API_TIMEOUT_MS) as admin:
        try:
            for error in (
                await admin.create_topics(NewTopic(name, partitions, configs=configs or {}) for name in names)
            ).values():
                if error is not None:
                    raise error
            made = Topics(admin, name, names, partitions)
            await made.records()  # they are ready: no client pays for elections
            yield made
        finally:
            await admin.delete_topics(names)
