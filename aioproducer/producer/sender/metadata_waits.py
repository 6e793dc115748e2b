"""Waits for the metadata of a topic: of parked records, and of callers of ``partitions_for``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator

from aioproducer.errors import (
    AuthenticationException,
    KafkaError,
    TimeoutException,
    error_for,
    with_advice,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.client import KafkaClient
from aioproducer.net.metadata.cluster import TopicMetadata
from aioproducer.net.metadata.metadata import FINAL_ERRORS
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.producer.sender.obstacles import no_metadata
from aioproducer.types import PartitionInfo


class MetadataWaits:
    """Requests the metadata, and notifies the waiters. ``ended()`` returns why the producer has ended, if it has."""

    def __init__(
        self,
        client: KafkaClient,
        lot: ParkingLot,
        history: WaitHistory,
        max_block: float,
        *,
        ended: Callable[[], KafkaError | None],
    ) -> None:
        self._client = client
        self._lot = lot
        self._history = history
        self._max_block = max_block
        self._ended = ended
        self._loop = asyncio.get_running_loop()

    def parked(self, topic: str) -> None:
        """A record waits in the parking lot, if only for memory."""
        if topic in self._lot.metadata:
            self._client.use_topic(topic)
            self._client.request_update(topic)

    async def partitions_for(self, topic: str, least: int = 1) -> list[PartitionInfo]:
        """The topic's partitions, waiting at most max.block.ms for at least this many."""
        self._client.use_topic(topic)
        known = self._client.metadata.cluster.topics.get(topic)
        if known is None or len(known.partitions) < least:
            known = await self._metadata_of(topic, least)
        return list(known.partitions)

    async def _metadata_of(self, topic: str, least: int) -> TopicMetadata:
        began = self._loop.time()
        known: TopicMetadata | None = None
        try:
            async with asyncio.timeout(self._max_block):
                while (known := self._client.metadata.cluster.topics.get(topic)) is None or (
                    len(known.partitions) < least
                ):
                    if known is not None:
                        self._client.request_update(topic)
                    if (ended := self._ended()) is not None:
                        raise ended
                    code = self._client.metadata.cluster.errors.get(topic, ErrorCode.NONE)
                    if code in FINAL_ERRORS:
                        raise _no_topic(topic, code)
                    await self._client.changes.next()
        except TimeoutError:
            if known is None:
                raise self.too_long(topic, began) from None
            raise TimeoutException(
                f"partition {least - 1} of topic {topic!r} did not exist for max.block.ms "
                f"({(self._loop.time() - began) * 1000:.0f} ms); the topic has {len(known.partitions)}: add some, or "
                "send to another"
            ) from None
        return known

    def topic_arrived(self, topic: str) -> bool:
        """Moves the records that wait for the topic's metadata; whether there were any."""
        if topic not in self._lot.metadata:
            return False
        self._lot.metadata_arrived(topic)
        return True

    def metadata_arrived(self) -> Generator[None, None, None]:
        """Moves the records that waited for it, refuses those whose topics will never have any, and asks again for the
        others; pauses after each topic, for there may be thousands."""
        for topic in list(self._lot.metadata):
            cluster = self._client.metadata.cluster
            code = cluster.errors.get(topic, ErrorCode.NONE)
            if topic in cluster.topics:
                self._lot.metadata_arrived(topic)
            elif code in FINAL_ERRORS:
                self._lot.refuse_topic(topic, _no_topic(topic, code))
            if topic in self._lot.metadata:
                self._client.request_update(topic)
            yield

    def refused(self, error: AuthenticationException) -> None:
        """Fails the records that wait for metadata; the next record makes the client try again, as in Kafka."""
        for topic in list(self._lot.metadata):
            self._lot.refuse_topic(topic, error)

    def too_long(self, topic: str, since: float) -> TimeoutException:
        """The error for a wait for the topic since then."""
        return no_metadata(self._client, self._history, topic, since, self._loop.time())


def _no_topic(topic: str, code: ErrorCode) -> KafkaError:
    return error_for(code, f"the brokers give no metadata for topic {topic!r}: {with_advice('', code)}")
