"""A plain reader of one partition: fetch, without groups or commits. For demos, tests and batch jobs.

::

    async with PartitionReader("localhost:9092", "orders", 0) as reader:
        async for record in reader.read_to_end():
            print(record.offset, record.key, record.value)

Reads everything that is there, including records of aborted and open transactions; with
``isolation_level="read_committed"`` only what is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

from aioproducer.config_types import ReaderConfigs
from aioproducer.configs.client_config import client_config
from aioproducer.configs.config_def import INT_MAX, Type, at_least, between, key, one_of
from aioproducer.configs.unsupported import BY_READERS
from aioproducer.errors import (
    CorruptRecordException,
    IllegalArgumentException,
    NetworkException,
    OffsetOutOfRangeException,
    error_for,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.addresses import Address
from aioproducer.net.client_lifecycle import ClientLifecycle
from aioproducer.net.metadata.cluster import NO_TOPIC_ID, Node
from aioproducer.net.retrying_client import RetryingConfig
from aioproducer.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from aioproducer.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from aioproducer.records.committed_batches import committed_batches
from aioproducer.records.record import Record
from aioproducer.records.record_batch import RecordBatch, read_batches
from aioproducer.types import PartitionInfo, TopicPartition

__all__ = ["PartitionReader", "ReaderConfig", "ReaderConfigs", "Record"]

_LATEST, _EARLIEST = -1, -2
"""Timestamps with a special meaning (``ListOffsetsRequest``)."""

_LAST_VERSION_WITH_NAMES = 12
_NO_SESSION = -1
_READ_COMMITTED = "read_committed"
_YIELD_AFTER = 0.005
"""After this many seconds of reading without a turn of the loop, the loop gets one."""


@dataclass(frozen=True, slots=True)
class ReaderConfig(RetryingConfig):
    """The configs of a reader: those of Kafka's consumer configs that have a meaning here."""

    fetch_min_bytes: int = key(Type.INT, 1, at_least(0), "The broker waits until it has this many bytes to give.")
    fetch_max_wait_ms: int = key(Type.INT, 500, at_least(0), "How long the broker waits for fetch.min.bytes.")
    max_partition_fetch_bytes: int = key(
        Type.INT, 1048576, between(0, INT_MAX), "Bytes asked for at a time; one batch comes even if it is larger."
    )
    isolation_level: str = key(
        Type.STRING,
        "read_uncommitted",
        one_of("read_uncommitted", _READ_COMMITTED),
        "Whether records are read whatever becomes of their transaction, or only when it is committed.",
    )


class PartitionReader(ClientLifecycle[ReaderConfig]):
    """Reads one partition in order, from ``start`` on: ``"earliest"``, ``"latest"`` or an offset.

    Iterating over the reader goes on for ever, waiting for new records at the end; ``read_to_end()`` stops at the end
    as it was when it began. Each continues where the last iteration stopped. The reader follows new leaders and retries
    passing errors for default.api.timeout.ms; then it raises TimeoutException or UnknownTopicOrPartitionException.
    OffsetOutOfRangeException means that the log does not have the offset (any more), CorruptRecordException that the
    bytes in it are broken: the CRC of every batch is checked.

    ``config`` takes the names of :class:`ReaderConfig`, in snake_case or dotted; ConfigException names a wrong one. At
    most one fetch (max.partition.fetch.bytes) is in memory. A reader belongs to the event loop it was started in.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        topic: str,
        partition: int,
        start: Literal["earliest", "latest"] | int = "earliest",
        **config: Unpack[ReaderConfigs],
    ) -> None:
        if not (start in ("earliest", "latest") or (isinstance(start, int) and start >= 0)):
            raise IllegalArgumentException(f"start is {start!r}; it must be 'earliest', 'latest' or an offset")
        if partition < 0:
            raise IllegalArgumentException(f"partition is {partition}; it must be at least 0")
        given = {"bootstrap_servers": bootstrap_servers, **config}
        super().__init__(client_config(ReaderConfig, given, owner="reader", unsupported=BY_READERS), "reader")
        self.topic_partition = TopicPartition(topic, partition)
        self._start: int | str = start
        self._position: int | None = start if isinstance(start, int) else None
        self._topic_id = NO_TOPIC_ID

    # Offsets

    @property
    def position(self) -> int | None:
        """The offset to be read next; None while the offset of 'earliest' or 'latest' is still unknown."""
        return self._position

    async def beginning_offset(self) -> int:
        """The first offset that is in the log."""
        return await self._list_offset("the beginning", _EARLIEST)

    async def end_offset(self) -> int:
        """The offset after the last record that may be read: the high watermark, or with read_committed the last
        stable offset, where the first open transaction begins."""
        return await self._list_offset("the end", _LATEST)

    async def offset_for_time(self, timestamp_ms: int) -> int | None:
        """The first offset whose record has this timestamp (ms since the epoch) or a later one; None if none has."""
        if timestamp_ms < 0:
            raise IllegalArgumentException(f"timestamp_ms is {timestamp_ms}; it must be at least 0")
        offset = await self._list_offset(f"the offset at {timestamp_ms}", timestamp_ms)
        return offset if offset >= 0 else None

    # Records

    def __aiter__(self) -> AsyncIterator[Record]:
        return self._read(to_end=False)

    def read_to_end(self) -> AsyncIterator[Record]:
        """The records from the present position to the end of the log, as it is when the first one is requested."""
        return self._read(to_end=True)

    async def _read(self, *, to_end: bool) -> AsyncIterator[Record]:
        loop = asyncio.get_running_loop()
        if self._position is None:
            self._position = await self._first_position()
        end = await self.end_offset() if to_end else None
        while end is None or self._position < end:
            wanted = self._position
            batches, after = await self._fetch(wanted)
            last_turn = loop.time()
            for batch in batches:
                for record in self._records(batch):
                    if record.offset < wanted:
                        continue
                    if end is not None and record.offset >= end:
                        return
                    self._position = record.offset + 1
                    yield record
                self._position = batch.last_offset + 1
                if loop.time() - last_turn > _YIELD_AFTER:
                    await asyncio.sleep(0)
                    last_turn = loop.time()
            self._position = after

    async def next_batches(self) -> list[RecordBatch]:
        """What is in the log from the present position on, as whole batches, one fetch of them, checked; the next call
        goes on behind them. None have come within fetch.max.wait.ms if there are none, or none of them was committed.

        The first may begin before the position. Control batches are among them.
        """
        if self._position is None:
            self._position = await self._first_position()
        batches, self._position = await self._fetch(self._position)
        return batches

    def _taken(self, answer: PartitionData, wanted: int) -> tuple[list[RecordBatch], int]:
        """The batches of an answer that have something from ``wanted`` on, checked, and the offset after them all; at
        least one before those that are not committed are left out, unless there is no data."""
        records = answer.records or b""
        data = b"".join(records) if isinstance(records, list | tuple) else records
        try:
            batches = [batch for batch in read_batches(data, allow_partial=True) if batch.last_offset >= wanted]
            for batch in batches:
                batch.verify()
            after = batches[-1].last_offset + 1 if batches else wanted
            if self._config.isolation_level == _READ_COMMITTED:
                aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
                committed = list(committed_batches(batches, aborted))
            else:
                committed = batches
        except CorruptRecordException as error:
            raise self._named(error) from error
        if data and not batches:
            raise CorruptRecordException(
                f"{self.topic_partition}: {len(data)} bytes came for offset {wanted}, and no whole batch that has it"
            )
        return committed, after

    def _records(self, batch: RecordBatch) -> Iterator[Record]:
        """The users' records of a batch; a control batch has none."""
        if batch.is_control:
            return
        try:
            yield from batch.records()
        except CorruptRecordException as error:
            raise self._named(error) from error

    def _named(self, error: CorruptRecordException) -> CorruptRecordException:
        return CorruptRecordException(f"{self.topic_partition}: {error}")

    # Requests

    @property
    def _isolation_level(self) -> int:
        """As requests name it."""
        return int(self._config.isolation_level == _READ_COMMITTED)

    async def _leader(self) -> PartitionInfo:
        """The partition with its leader, from the present metadata."""
        topic, partition = self.topic_partition
        known = await self._client().topic(topic)
        if self._topic_id not in (NO_TOPIC_ID, known.topic_id):
            raise OffsetOutOfRangeException(
                f"topic {topic!r} was deleted and created anew: offset {self._position} was one of its former log"
            )
        info = known.led(partition)
        self._topic_id = known.topic_id
        return info

    async def _first_position(self) -> int:
        return await (self.beginning_offset() if self._start == "earliest" else self.end_offset())

    async def _fetch(self, offset: int) -> tuple[list[RecordBatch], int]:
        """Batches from the one that holds ``offset`` on, and the offset after them."""
        answer = await self._client().retry(f"reading {self.topic_partition}", lambda: self._try_fetch(offset))
        return self._taken(answer, offset)

    async def _try_fetch(self, offset: int) -> PartitionData:
        config = self._config
        info = await self._leader()
        wanted = FetchPartition(
            partition=info.partition,
            current_leader_epoch=info.leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=config.max_partition_fetch_bytes,
        )
        request = FetchRequest(
            # The time that the request may take includes the wait.
            max_wait_ms=min(config.fetch_max_wait_ms, config.request_timeout_ms // 2),
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.max_partition_fetch_bytes,
            isolation_level=self._isolation_level,
            session_epoch=_NO_SESSION,
            topics=[FetchTopic(topic=info.topic, topic_id=self._topic_id, partitions=[wanted])],
        )
        response = await self._client().client.request(
            request,
            FetchResponse,
            node_id=info.leader,
            at_most=_LAST_VERSION_WITH_NAMES if self._topic_id == NO_TOPIC_ID else None,
        )
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, f"node {info.leader} refused to read {self.topic_partition}")
        answers = [data for topic in response.responses for data in topic.partitions]
        if len(answers) != 1 or answers[0].partition_index != info.partition:
            raise NetworkException(
                f"node {info.leader} was asked for {self.topic_partition} and answered something else"
            )
        answer = answers[0]
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            first, end = await self._try_list_offset(_EARLIEST), await self._try_list_offset(_LATEST)
            raise OffsetOutOfRangeException(
                f"offset {offset} is not in the log of {self.topic_partition}: it begins at {first} and ends at {end}"
            )
        if answer.error_code != ErrorCode.NONE:
            self._take_leader(answer, response)
            raise error_for(answer.error_code, f"node {info.leader} cannot read {self.topic_partition}")
        return answer

    def _take_leader(self, answer: PartitionData, response: FetchResponse) -> None:
        """A new leader that the answer itself names (KIP-951)."""
        leader = answer.current_leader
        if leader.leader_id < 0:
            return
        nodes = [Node(node.node_id, Address(node.host, node.port), node.rack) for node in response.node_endpoints]
        client = self._client().client
        if client.metadata.learn_leaders([(*self.topic_partition, leader.leader_id, leader.leader_epoch)], nodes):
            client.nodes_changed()

    async def _list_offset(self, what: str, timestamp: int) -> int:
        return await self._client().retry(
            f"looking for {what} of {self.topic_partition}", lambda: self._try_list_offset(timestamp)
        )

    async def _try_list_offset(self, timestamp: int) -> int:
        info = await self._leader()
        wanted = ListOffsetsPartition(
            partition_index=info.partition, current_leader_epoch=info.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation_level,
            topics=[ListOffsetsTopic(name=info.topic, partitions=[wanted])],
            timeout_ms=self._config.request_timeout_ms,
        )
        response = await self._client().client.request(request, ListOffsetsResponse, node_id=info.leader)
        answers = [answer for topic in response.topics for answer in topic.partitions]
        if len(answers) != 1 or answers[0].partition_index != info.partition:
            raise NetworkException(
                f"node {info.leader} was asked for {self.topic_partition} and answered something else"
            )
        if answers[0].error_code != ErrorCode.NONE:
            raise error_for(answers[0].error_code, f"node {info.leader} has no offset for {self.topic_partition}")
        return answers[0].offset
