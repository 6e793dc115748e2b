"""From drained batches to a ProduceRequest, and from its response back to the batches."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from aioproducer.producer.drain import Drained
from aioproducer.producer.producer_batch import ProducerBatch
from aioproducer.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.record_batch_header import encode_batch_header

FIRST_VERSION_WITH_TOPIC_IDS = 13


def seal(batch: ProducerBatch, codec: CompressionType, level: int | None, *, transactional: bool = False) -> None:
    """Makes the batch's final bytes, once: every attempt sends the very same ones."""
    if not batch.body:
        batch.body = batch.records if codec is CompressionType.NONE else compress(codec, batch.records, level)
        batch.records = b""
    if not batch.header:
        batch.header = encode_batch_header(
            batch.body,
            count=batch.count,
            base_timestamp=batch.base_timestamp,
            max_timestamp=batch.max_timestamp,
            codec=codec,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=transactional,
        )


def build_request(
    drained: Sequence[Drained],
    topic_ids: dict[str, UUID],
    *,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """One request with all the batches; their bytes go in as they are, header and body apart, and are never copied."""
    topics: dict[str, TopicProduceData] = {}
    for queue, batch in drained:
        topic = topics.get(queue.topic)
        if topic is None:
            topic = TopicProduceData(name=queue.topic, topic_id=topic_ids[queue.topic])
            topics[queue.topic] = topic
        topic.partition_data.append(PartitionProduceData(index=queue.partition, records=(batch.header, batch.body)))
    return ProduceRequest(transactional_id, acks, timeout_ms, list(topics.values()))


def match_response(
    drained: Sequence[Drained], topic_ids: dict[str, UUID], response: ProduceResponse, *, by_id: bool
) -> list[PartitionProduceResponse | None]:
    """The answer to each drained batch, None where there is none; of a partition answered twice the first counts."""
    # Not by UUIDs: to hash one takes a call of Python.
    answers: dict[str | int, dict[int, PartitionProduceResponse]] = {}
    for topic in response.responses:
        partitions = answers.setdefault(topic.topic_id.int if by_id else topic.name, {})
        for partition in topic.partition_responses:
            partitions.setdefault(partition.index, partition)
    found = {name: answers.get(topic_id.int if by_id else name, {}) for name, topic_id in topic_ids.items()}
    return [found[queue.topic].get(queue.partition) for queue, _ in drained]
