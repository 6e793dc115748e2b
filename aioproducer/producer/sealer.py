"""Gives batches their final bytes, learns from that how well they compress, and charges them what they take now."""

from __future__ import annotations

from aioproducer.producer.produce_request import seal
from aioproducer.producer.producer_batch import ProducerBatch
from aioproducer.producer.record_accumulator import RecordAccumulator
from aioproducer.records.compression import CompressionType


class Sealer:
    """One producer's codec, and what it does to its batches."""

    def __init__(self, codec: CompressionType, level: int | None, accumulator: RecordAccumulator) -> None:
        self.codec = codec
        self._level = level
        self._accumulator = accumulator

    def seal(self, batch: ProducerBatch) -> None:
        """Compressed once, and with a header: every attempt sends the very same bytes."""
        is_new = not batch.body
        seal(batch, self.codec, self._level)
        ratios = self._accumulator.ratios
        if is_new and ratios is not None:
            ratios.observe(batch.result.topic, len(batch.body) / batch.written)
            self._accumulator.trim(batch)
