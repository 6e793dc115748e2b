from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from aioproducer.producer.drain import Drained
from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.produce_request import build_request, match_response, seal
from aioproducer.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch import read_batches

from .parts import NOW_MS, Loop, make_batch

IDS = {"a": uuid4(), "b": uuid4()}


def drained(topic: str, partition: int, records: int = 3) -> Drained:
    batch = make_batch(Loop(), topic=topic, partition=partition, records=records)
    batch.freeze()
    seal(batch, CompressionType.NONE, None)
    return Drained(PartitionQueue(topic, partition, None), batch)


# Sealing


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_a_sealed_batch_can_be_read(codec: CompressionType) -> None:
    batch = make_batch(Loop())
    for number in range(50):
        _ = batch.append(NOW_MS + number, b"key", b"value %d" % number, [("h", b"v")])
    batch.freeze()
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 2**40, 7, 2**31 - 1
    seal(batch, codec, None)
    (read,) = read_batches(batch.header + batch.body)
    read.verify()
    assert read.codec is codec
    assert (read.count, read.base_timestamp, read.max_timestamp) == (50, NOW_MS, NOW_MS + 49)
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (2**40, 7, 2**31 - 1)
    assert [record.value for record in read.records()] == [b"value %d" % number for number in range(50)]


def test_every_attempt_sends_the_very_same_bytes() -> None:
    batch = make_batch(Loop(), records=50)
    batch.freeze()
    seal(batch, CompressionType.GZIP, 1)
    header, body = batch.header, batch.body
    seal(batch, CompressionType.GZIP, 9)
    assert batch.header is header
    assert batch.body is body


def test_uncompressed_records_are_not_copied() -> None:
    batch = make_batch(Loop(), records=5)
    batch.freeze()
    records = batch.records
    seal(batch, CompressionType.NONE, None)
    assert batch.body is records


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_what_is_sent_is_all_that_is_kept(codec: CompressionType) -> None:
    batch = make_batch(Loop(), records=50)
    batch.freeze()
    size = batch.size()
    seal(batch, codec, None)
    assert batch.records == b""
    assert (batch.size(), batch.expected_size()) == (size, len(batch.body))


def test_a_batch_that_lost_its_sequence_gets_another_header_over_the_same_records() -> None:
    batch = make_batch(Loop(), records=5)
    batch.freeze()
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 1, 0, 100
    seal(batch, CompressionType.GZIP, None)
    body = batch.body
    batch.producer_epoch, batch.base_sequence, batch.header = 1, 0, b""
    seal(batch, CompressionType.GZIP, None)
    assert batch.body is body
    (read,) = read_batches(batch.header + batch.body)
    read.verify()
    assert (read.producer_epoch, read.base_sequence) == (1, 0)


# The request


def test_a_request_has_each_topic_once_and_the_bytes_as_they_are() -> None:
    batches = [drained("a", 0), drained("b", 5), drained("a", 2)]
    request = build_request(batches, IDS, acks=-1, timeout_ms=1234)
    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 1234, None)
    assert [(topic.name, topic.topic_id) for topic in request.topic_data] == [("a", IDS["a"]), ("b", IDS["b"])]
    found = {(topic.name, data.index): data.records for topic in request.topic_data for data in topic.partition_data}
    assert list(found) == [("a", 0), ("a", 2), ("b", 5)]
    for queue, batch in batches:
        records = found[queue.topic, queue.partition]
        assert isinstance(records, tuple)
        header, body = records
        assert header is batch.header
        assert body is batch.body


# The response


def answers(*topics: tuple[str, list[int]], by_id: bool = False) -> ProduceResponse:
    """Each partition is answered with its place in the response as its offset."""
    count = 0
    response = ProduceResponse(responses=[])
    for name, partitions in topics:
        topic = TopicProduceResponse(partition_responses=[])
        if by_id:
            topic.topic_id = IDS[name]
        else:
            topic.name = name
        for partition in partitions:
            topic.partition_responses.append(PartitionProduceResponse(index=partition, base_offset=count))
            count += 1
        response.responses.append(topic)
    return response


def offsets(batches: list[Drained], response: ProduceResponse, by_id: bool) -> list[int | None]:
    found = match_response(batches, IDS, response, by_id=by_id)
    return [None if answer is None else answer.base_offset for answer in found]


@pytest.mark.parametrize("by_id", [False, True])
def test_every_batch_finds_its_answer_in_any_order(by_id: bool) -> None:
    batches = [drained("a", 0), drained("b", 5), drained("a", 2)]
    assert offsets(batches, answers(("a", [0, 2]), ("b", [5]), by_id=by_id), by_id) == [0, 2, 1]
    assert offsets(batches, answers(("b", [5]), ("a", [2, 0]), by_id=by_id), by_id) == [2, 0, 1]
    assert offsets(batches, answers(("a", [2]), ("b", [5]), ("a", [0]), by_id=by_id), by_id) == [2, 1, 0]


@pytest.mark.parametrize("by_id", [False, True])
def test_what_was_left_out_is_known_and_what_was_not_asked_is_passed_over(by_id: bool) -> None:
    batches = [drained("a", 0), drained("b", 5)]
    assert offsets(batches, answers(("b", [0, 5]), ("a", [1]), by_id=by_id), by_id) == [None, 1]
    assert offsets(batches, answers(by_id=by_id), by_id) == [None, None]


@pytest.mark.parametrize("by_id", [False, True])
def test_of_two_answers_the_first_counts(by_id: bool) -> None:
    assert offsets([drained("a", 0)], answers(("a", [0, 0]), ("a", [0]), by_id=by_id), by_id) == [0]


def test_names_say_nothing_where_ids_are_used() -> None:
    response = answers(("a", [0]))
    response.responses[0].topic_id = UUID(int=0)
    assert offsets([drained("a", 0)], response, True) == [None]
