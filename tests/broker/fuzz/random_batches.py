"""Record batches with a right checksum and right or slightly wrong contents, so that a broker reads all of them."""

from __future__ import annotations

import time
from random import Random

from aioproducer.records.batch_layout import ATTRIBUTES_OFFSET, HEADER
from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter

from .learned_values import LearnedValues
from .mutations import mutated

_CRC = slice(17, 21)
_MINUTE_MS = 60_000
_SIZES = (0, 1, 7, 63, 64, 200, 5_000)


class RandomBatches:
    """Makes them; producer ids and epochs are often those that the broker gave out."""

    def __init__(self, random: Random, learned: LearnedValues) -> None:
        self._random = random
        self._learned = learned

    def batch(self) -> bytes:
        random = self._random
        count = random.choice((1, 1, 2, 3, 50))
        codec = random.choice(tuple(CompressionType)) if random.random() < 0.5 else CompressionType.NONE
        body = self._records(count)
        if random.random() < 0.2:
            body = mutated(random, body)
        body = compress(codec, body)
        if random.random() < 0.1:
            body = mutated(random, body)
        data = bytearray(self._header(body, count, codec) + body)
        if random.random() < 0.2:
            head = mutated(random, bytes(data[ATTRIBUTES_OFFSET : HEADER.size]))
            data[ATTRIBUTES_OFFSET : HEADER.size] = head[: HEADER.size - ATTRIBUTES_OFFSET]
            data[_CRC] = crc32c(bytes(data[ATTRIBUTES_OFFSET:])).to_bytes(4, "big")
        return mutated(random, bytes(data)) if random.random() < 0.1 else bytes(data)

    def _records(self, count: int) -> bytes:
        random, writer = self._random, RecordWriter()
        for index in range(count):
            key, value = (None if random.random() < 0.3 else bytes(random.choice(_SIZES)) for _ in range(2))
            header = ("h" * random.choice((0, 1, 70)), random.choice((None, b"", b"v")))
            headers = [header] * random.choice((0, 0, 1, 3))
            writer.append(index, random.choice((0, 1, -1, _MINUTE_MS)), key, value, headers or None)
        return writer.freeze()

    def _header(self, body: bytes, count: int, codec: CompressionType) -> bytes:
        random = self._random
        now = int(time.time() * 1000)
        is_idempotent = random.random() < 0.4
        return encode_batch_header(
            body,
            count=count if random.random() < 0.95 else random.choice((0, -1, count + 1, 2**31 - 1)),
            base_timestamp=now if random.random() < 0.9 else random.choice((0, -1, -(2**63), 2**63 - 1)),
            max_timestamp=now,
            codec=codec,
            producer_id=(self._learned.pick("producer_id") or 0) if is_idempotent else -1,
            producer_epoch=(self._learned.pick("producer_epoch") or 0) if is_idempotent else -1,
            base_sequence=random.choice((0, 0, 1, 2, 2**31 - 1)) if is_idempotent else -1,
            transactional=random.random() < 0.1,
            control=random.random() < 0.03,
            log_append_time=random.random() < 0.03,
            base_offset=0 if random.random() < 0.95 else random.choice((1, -1, 2**63 - 1)),
        )
