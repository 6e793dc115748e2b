"""Gives batches their final bytes, learns their compression ratio, and charges the memory they take then."""

from __future__ import annotations

from typing import Final

from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.compression import CompressionType, compress, decompress, millisecond_of_work
from aioproducer.records.record_batch_header import encode_batch_header

_UNCOMPRESSED: Final = CompressionType.NONE  # looking an enum member up is slow


def thread_bytes_of(codec: CompressionType, level: int | None, configured: int) -> int:
    """From this size on, in uncompressed bytes, a batch goes to a worker thread (compression.thread.bytes)."""
    if codec is CompressionType.NONE:
        return NO_LIMIT
    return millisecond_of_work(codec, level) if configured < 0 else configured


class Sealer:
    """One producer's codec, and the state of its compression."""

    def __init__(
        self,
        codec: CompressionType,
        level: int | None,
        accumulator: RecordAccumulator,
        *,
        transactional: bool = False,
        thread_bytes: int = NO_LIMIT,
    ) -> None:
        self._codec = codec
        self._level = level
        self._transactional = transactional
        self._accumulator = accumulator
        self.thread_bytes = thread_bytes
        """Batches with at least this many uncompressed bytes go to a worker thread."""

    def records_of(self, batch: ProducerBatch) -> bytes:
        """The uncompressed records of a closed batch; empty if they were freed. For any thread."""
        body = batch.body
        return decompress(self._codec, body, batch.size()) if body else batch.records

    def limit_after(self, batch: ProducerBatch, now: float) -> int:
        """The most bytes of uncompressed records for the parts of a batch that has turned out too large; its topic's
        later batches are as small."""
        topic, size = batch.result.topic, len(batch.body) + BATCH_OVERHEAD
        accumulator = self._accumulator
        accumulator.limits.refused(topic, size, now)
        if accumulator.ratios is not None:
            accumulator.ratios.reset(topic, len(batch.body) / batch.size())
        return accumulator.limit(topic, size)

    def compressed(self, batch: ProducerBatch) -> bytes:
        """The records of a closed batch in their final form; empty if they were freed. For any thread."""
        records = batch.records
        return compress(self._codec, records, self._level) if records and self._codec is not _UNCOMPRESSED else records

    def take(self, batch: ProducerBatch, body: bytes) -> None:
        """Sets the batch's records in their final form."""
        batch.body = body
        batch.records = b""
        ratios = self._accumulator.ratios
        if ratios is not None:
            ratios.observe(batch.result.topic, len(body) / batch.size())
        if batch.allocated != batch.cost():
            self._accumulator.trim(batch)

    def seal(self, batch: ProducerBatch) -> None:
        """Makes the batch's final bytes, once: every attempt sends the same ones."""
        if not batch.body:
            self.take(batch, self.compressed(batch))
        if not batch.header:
            batch.header = encode_batch_header(
                batch.body,
                count=batch.count,
                base_timestamp=batch.base_timestamp,
                max_timestamp=batch.max_timestamp,
                codec=self._codec,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
                transactional=self._transactional,
            )
