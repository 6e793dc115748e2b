from __future__ import annotations

from aioproducer.producer.compression_ratio import CompressionRatioEstimator
from aioproducer.producer.sealer import Sealer
from aioproducer.records.compression import CompressionType

from .parts import Accumulation


def test_a_compressed_batch_tells_its_ratio_once_and_is_charged_what_is_left_of_it() -> None:
    ratios = CompressionRatioEstimator()
    here = Accumulation(memory=10**5, ratios=ratios)
    (queue,) = here.add_topic("t", 1)
    here.append(value=bytes(800))
    here.accumulator.close_batch(queue)
    batch = here.opened[0]
    before = batch.allocated
    sealer = Sealer(CompressionType.GZIP, None, here.accumulator)
    sealer.seal(batch)
    assert ratios.ratio("t") == 0.995
    assert batch.allocated == batch.cost() == before - batch.size() + len(batch.body)
    assert here.pool.available == here.pool.total - batch.allocated
    body = batch.body
    batch.header = b""
    sealer.seal(batch)
    assert batch.body is body
    assert ratios.ratio("t") == 0.995


def test_without_compression_there_is_nothing_to_learn() -> None:
    here = Accumulation(memory=10**5)
    (queue,) = here.add_topic("t", 1)
    here.append(value=bytes(800))
    here.accumulator.close_batch(queue)
    batch = here.opened[0]
    Sealer(CompressionType.NONE, None, here.accumulator).seal(batch)
    assert batch.allocated == batch.cost()
    assert len(batch.body) == batch.size()
