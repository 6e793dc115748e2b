"""A produce request as bytes, for connections that no client library stands behind."""

from __future__ import annotations

import time

from aioproducer.protocol.framing import encode_request
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter

VERSION = 9


def produce_frame(topic: str, value: bytes, *, acks: int = 1, batches: int = 1, records: int = 1) -> bytes:
    """A batch for each of the first partitions, with so many records of this value."""
    writer = RecordWriter()
    for number in range(records):
        writer.append(number, 0, None, value, None)
    body = writer.freeze()
    now = int(time.time() * 1000)
    batch = encode_batch_header(body, count=records, base_timestamp=now, max_timestamp=now)
    partitions = [PartitionProduceData(partition, [batch, body]) for partition in range(batches)]
    data = [TopicProduceData(topic, partition_data=partitions)]
    request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=data)
    return b"".join(encode_request(request, version=VERSION, correlation_id=1, client_id="benchmark"))
