"""Requests are what ``codec`` would write of the same batches, byte for byte; answers find their batches."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.exchange.produce_request import match_answers, request_start, write_request
from aioproducer.producer.scheduling.drain import Drained
from aioproducer.protocol.codec import encode
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.produce_answer import PartitionAnswer
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from tests.producer.simulations.standing_loop import Loop, make_batch

IDS = {"a": uuid4(), "b": uuid4()}


def drained(topic: str, partition: int, records: int = 3) -> Drained:
    batch = make_batch(Loop(), topic=topic, partition=partition, records=records)
    batch.freeze()
    batch.header, batch.body = bytes(BATCH_OVERHEAD), batch.records
    return Drained(PartitionQueue(topic, partition, None), batch)


# The request

LOW, HIGH = ProduceRequest.VALID_VERSIONS
VERSIONS = range(LOW, HIGH + 1)
SIZES = st.sampled_from([1, 66, 67, 16_321, 16_322, 20_000, 2_100_000])
"""Bytes of a batch's body; with its header they are on either side of where a varint takes a byte more."""


def ready(topic: str, partition: int, size: int) -> Drained:
    """A batch that is sealed, of so many bytes beside its header."""
    batch = make_batch(Loop(), topic=topic, partition=partition)
    batch.header, batch.body = bytes(BATCH_OVERHEAD), bytes(size)
    return Drained(PartitionQueue(topic, partition, None), batch)


def names(topics: dict[str, UUID], version: int) -> dict[str, bytes]:
    return {name: topic_id.bytes if version >= 13 else name.encode() for name, topic_id in topics.items()}


def written(
    batches: list[Drained], topics: dict[str, UUID], version: int, transactional_id: str | None = None, acks: int = -1
) -> list[bytes | memoryview]:
    start = request_start(transactional_id, acks, 30_000, version)
    return write_request(start, batches, names(topics, version), version)


def by_codec(
    batches: list[Drained], topics: dict[str, UUID], version: int, transactional_id: str | None = None, acks: int = -1
) -> bytes:
    data: dict[str, TopicProduceData] = {}
    for one in batches:
        name = one.queue.topic
        topic = data.setdefault(name, TopicProduceData(name, topics[name]))
        topic.partition_data.append(PartitionProduceData(one.queue.partition, (one.batch.header, one.batch.body)))
    return b"".join(encode(ProduceRequest(transactional_id, acks, 30_000, list(data.values())), version))


@given(
    st.dictionaries(st.text(min_size=1, max_size=5) | st.just("n" * 249), st.uuids(), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 2**31 - 1]), SIZES), min_size=1, max_size=5),
    st.sampled_from(VERSIONS),
    st.none() | st.text(min_size=1, max_size=5) | st.just("i" * 300),
    st.sampled_from([-1, 0, 1]),
)
def test_a_request_is_written_as_codec_writes_it(
    topics: dict[str, UUID], chosen: list[tuple[int, int, int]], version: int, transactional_id: str | None, acks: int
) -> None:
    known = list(topics)
    batches = [ready(known[topic % len(known)], partition, size) for topic, partition, size in chosen]
    topics = {one.queue.topic: topics[one.queue.topic] for one in batches}
    request = b"".join(written(batches, topics, version, transactional_id, acks))
    assert request == by_codec(batches, topics, version, transactional_id, acks)


@pytest.mark.parametrize("version", VERSIONS)
def test_many_topics_and_partitions(version: int) -> None:
    topics = {f"t{number}": UUID(int=number + 1) for number in range(150)}
    batches = [ready(topic, partition, 9) for partition in range(2) for topic in topics]
    batches += [ready("t0", partition, 9) for partition in range(2, 200)]
    assert b"".join(written(batches, topics, version)) == by_codec(batches, topics, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_has_each_topic_once_and_the_bytes_as_they_are(version: int) -> None:
    batches = [drained("a", 0), drained("b", 5), drained("a", 2)]
    parts = written(batches, IDS, version)
    assert b"".join(parts) == by_codec(batches, IDS, version)
    in_order = [batches[0], batches[2], batches[1]]
    assert [id(part) for place, part in enumerate(parts) if place % 3] == [
        id(part) for one in in_order for part in (one.batch.header, one.batch.body)
    ]


# The answer


def answers(*topics: tuple[str, list[int]], version: int) -> list[PartitionAnswer]:
    """Each partition is answered with its place in the answer as its offset."""
    told = [(names(IDS, version)[name], partition) for name, partitions in topics for partition in partitions]
    return [PartitionAnswer(name, partition, 0, place, -1) for place, (name, partition) in enumerate(told)]


def offsets(batches: list[Drained], told: list[PartitionAnswer], version: int) -> list[int | None]:
    found = match_answers(batches, names(IDS, version), told)
    return [None if answer is None else answer.base_offset for answer in found]


@pytest.mark.parametrize("version", [12, 13])
def test_every_batch_finds_its_answer_in_any_order(version: int) -> None:
    batches = [drained("a", 0), drained("b", 5), drained("a", 2)]
    assert offsets(batches, answers(("a", [0, 2]), ("b", [5]), version=version), version) == [0, 2, 1]
    assert offsets(batches, answers(("b", [5]), ("a", [2, 0]), version=version), version) == [2, 0, 1]
    assert offsets(batches, answers(("a", [2]), ("b", [5]), ("a", [0]), version=version), version) == [2, 1, 0]
    assert offsets(batches[:1], answers(("a", [0]), version=version), version) == [0]


@pytest.mark.parametrize("version", [12, 13])
def test_a_partition_left_out_of_an_answer_is_known_and_one_not_asked_for_is_passed_over(version: int) -> None:
    batches = [drained("a", 0), drained("b", 5)]
    assert offsets(batches, answers(("b", [0, 5]), ("a", [1]), version=version), version) == [None, 1]
    assert offsets(batches, answers(version=version), version) == [None, None]
    for other in (("a", [1]), ("b", [0]), ("a", [])):
        assert offsets(batches[:1], answers(other, version=version), version) == [None]


@pytest.mark.parametrize("version", [12, 13])
def test_of_two_answers_the_first_counts(version: int) -> None:
    assert offsets([drained("a", 0)], answers(("a", [0, 0]), ("a", [0]), version=version), version) == [0]
