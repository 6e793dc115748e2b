from __future__ import annotations

import pytest

from aioproducer.producer.accumulator.compression_ratio import CompressionRatioEstimator
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.exchange.sealer import Sealer
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch import read_batches
from tests.producer.simulations.standing_loop import NOW_MS, Accumulation

NONE, GZIP = CompressionType.NONE, CompressionType.GZIP


class Scene(Accumulation):
    """A batch that is closed, and what seals it."""

    def __init__(
        self, codec: CompressionType, records: int = 50, ratios: CompressionRatioEstimator | None = None
    ) -> None:
        super().__init__(memory=10**6, batch_size=10**5, ratios=ratios)
        (queue,) = self.add_topic("t", 1)
        for number in range(50):
            self.append(value=b"value %d" % number, timestamp_ms=NOW_MS + number, headers=[("h", b"v")])
        self.accumulator.close_batch(queue)
        (self.batch,) = self.opened
        self.sealer = Sealer(codec, None, self.accumulator)

    def seal(self) -> ProducerBatch:
        self.sealer.seal(self.batch)
        return self.batch


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_sealed_batch_can_be_read(codec: CompressionType) -> None:
    scene = Scene(codec)
    scene.batch.producer_id, scene.batch.producer_epoch, scene.batch.base_sequence = 2**40, 7, 2**31 - 1
    batch = scene.seal()
    (read,) = read_batches(batch.header + batch.body)
    read.verify()
    assert read.codec is codec
    assert (read.count, read.base_timestamp, read.max_timestamp) == (50, NOW_MS, NOW_MS + 49)
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (2**40, 7, 2**31 - 1)
    assert [record.value for record in read.records()] == [b"value %d" % number for number in range(50)]


def test_every_attempt_sends_the_very_same_bytes() -> None:
    scene = Scene(GZIP)
    batch = scene.seal()
    header, body = batch.header, batch.body
    scene.seal()
    assert batch.header is header
    assert batch.body is body


def test_uncompressed_records_are_not_copied() -> None:
    scene = Scene(NONE)
    records = scene.batch.records
    assert scene.seal().body is records


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_sealed_batch_keeps_only_its_encoded_body(codec: CompressionType) -> None:
    scene = Scene(codec)
    size = scene.batch.size()
    batch = scene.seal()
    assert batch.records == b""
    assert (batch.size(), batch.expected_size()) == (size, len(batch.body))


def test_a_batch_that_lost_its_sequence_gets_another_header_over_the_same_records() -> None:
    scene = Scene(GZIP)
    batch = scene.batch
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 1, 0, 100
    body = scene.seal().body
    batch.producer_epoch, batch.base_sequence, batch.header = 1, 0, b""
    assert scene.seal().body is body
    (read,) = read_batches(batch.header + batch.body)
    read.verify()
    assert (read.producer_epoch, read.base_sequence) == (1, 0)


def test_a_compressed_batch_tells_its_ratio_once_and_is_charged_what_is_left_of_it() -> None:
    ratios = CompressionRatioEstimator()
    scene = Scene(GZIP, ratios=ratios)
    before = scene.batch.allocated
    batch = scene.seal()
    assert ratios.ratio("t") == 0.995
    assert batch.allocated == batch.cost() == before - batch.size() + len(batch.body)
    assert scene.pool.available == scene.pool.total - batch.allocated
    body = batch.body
    batch.header = b""
    assert scene.seal().body is body
    assert ratios.ratio("t") == 0.995


def test_without_compression_there_is_nothing_to_learn() -> None:
    batch = Scene(NONE).seal()
    assert batch.allocated == batch.cost()
    assert len(batch.body) == batch.size()
