from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.protocol.framing import encode_request
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from benchmarks.harness.produce_meter import Counts, ProduceMeter


def frame(request: ProduceRequest | MetadataRequest, version: int) -> bytes:
    return b"".join(encode_request(request, version=version, correlation_id=7, client_id="any"))


def produce(version: int, *sizes: int, transactional_id: str | None = None) -> bytes:
    """To two topics: the first has a batch of each size, the second one of a byte."""
    id_: dict[str, Any] = {"topic_id": UUID(int=7)} if version >= 13 else {"name": "orders"}
    topics = [
        TopicProduceData(**id_, partition_data=[PartitionProduceData(number, [bytes(size)]) for number, size in of])
        for of in (list(enumerate(sizes)), [(0, 1)])
    ]
    return frame(ProduceRequest(transactional_id, -1, 1000, topics), version)


def counted(data: bytes, piece: int, uncounted: int = 0) -> Counts:
    meter = ProduceMeter(Counts(uncounted=uncounted))
    for place in range(0, len(data), piece):
        meter.feed(memoryview(data)[place : place + piece])
    return meter.counts


@pytest.mark.parametrize("version", range(3, 15))
@pytest.mark.parametrize("transactional_id", [None, "unit-1"])
def test_every_version(version: int, transactional_id: str | None) -> None:
    data = produce(version, 100, 200, 70_000, transactional_id=transactional_id)
    assert counted(data, len(data)) == Counts(1, 4, 70_301)


@given(
    st.lists(st.tuples(st.sampled_from([3, 8, 9, 12, 13]), st.lists(st.integers(1, 300), max_size=4)), max_size=4),
    st.integers(1, 500),
)
def test_bytes_may_come_in_any_pieces(requests: list[tuple[int, list[int]]], piece: int) -> None:
    other = frame(MetadataRequest(topics=None), 9)
    data = other + b"".join(produce(version, *sizes) + other for version, sizes in requests)
    sizes = [size for _, of in requests for size in (*of, 1)]
    assert counted(data, piece) == Counts(len(requests), len(sizes), sum(sizes))


def test_requests_with_the_first_bytes_are_left_out() -> None:
    data = produce(13, 99) * 3
    found = counted(data, 1000, uncounted=150)
    assert (found.requests, found.batches, found.batch_bytes) == (1, 2, 100)
    found.reset()
    assert found == Counts()


def test_a_frame_that_ends_too_early_is_an_error() -> None:
    data = bytearray(produce(13, 99))
    data[:4] = (20).to_bytes(4, "big")
    with pytest.raises(ValueError, match=r"a frame ends .* too early"):
        counted(bytes(data), 1000)
