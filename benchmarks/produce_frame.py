"""A produce request as bytes, for connections that no client library stands behind."""

from __future__ import annotations

from aioproducer.protocol.framing import encode_request
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.record_batch import encode_batch_header
from aioproducer.records.record_writer import RecordWriter

VERSION = 9


def produce_frame(topic: str, value: bytes) -> bytes:
    """One record for partition 0, with acks=1."""
    writer = RecordWriter()
    writer.append(0, 0, None, value, None)
    body = writer.freeze()
    batch = encode_batch_header(body, count=1, base_timestamp=0, max_timestamp=0)
    data = [TopicProduceData(topic, partition_data=[PartitionProduceData(0, [batch, body])])]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=data)
    return b"".join(encode_request(request, version=VERSION, correlation_id=1, client_id="busy"))
