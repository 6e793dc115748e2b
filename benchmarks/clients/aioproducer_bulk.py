"""aioproducer's bulk calls: one awaitable for many records."""

from __future__ import annotations

import asyncio
import itertools
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any

from aioproducer import KafkaProducer
from benchmarks.clients.aioproducer import Aioproducer
from benchmarks.clients.client import Missing
from benchmarks.works import STREAM, Work

CHUNK = 20_000
"""Records of a call."""
UNDER_WAY = 4
"""Calls that are awaited at a time, so that the broker never waits for the next one."""


class _Bulk(Aioproducer):
    ways = (STREAM,)
    call: str

    @classmethod
    def about(cls) -> str:
        if not hasattr(KafkaProducer, cls.call):
            raise Missing(f"KafkaProducer has no {cls.call} yet")
        return super().about()

    @classmethod
    def can(cls, work: Work) -> bool:
        """A call is for one topic."""
        return super().can(work) and work.topics == 1

    @abstractmethod
    def chunks(self, records: int) -> Iterator[Any]:
        """What the calls take, of CHUNK records each; made before the clock starts where it can be."""

    @abstractmethod
    async def send(self, chunk: Any) -> Any:
        """Its BulkResult."""

    async def stream(self, records: int) -> Counter[str]:
        failures: Counter[str] = Counter()
        chunks = self.chunks(records)

        async def sender() -> None:
            for chunk in chunks:
                result = await self.send(chunk)
                for _, error in result.errors:
                    failures[type(error).__name__] += 1

        await asyncio.gather(*(sender() for _ in range(UNDER_WAY)))
        return failures


class Many(_Bulk):
    """``send_many`` of lists."""

    call = "send_many"

    def chunks(self, records: int) -> Iterator[Any]:
        given = self.payload.records(records)
        while chunk := list(itertools.islice(given, CHUNK)):
            _, keys, values = zip(*chunk, strict=True)
            yield values, keys if self.payload.keys else None

    async def send(self, chunk: Any) -> Any:
        values, keys = chunk
        bulk: Any = self.producer
        headers = None if self.payload.headers is None else [self.payload.headers] * len(values)
        return await bulk.send_many(self.topic, values, keys=keys, headers=headers)


class Table(_Bulk):
    """``send_table`` of pyarrow's tables, made beforehand as those who have tables have them."""

    call = "send_table"

    @classmethod
    def about(cls) -> str:
        import pyarrow

        return f"{super().about()}, pyarrow {pyarrow.__version__}"

    async def start(self) -> None:
        import pyarrow

        await super().start()
        given = list(self.payload.records(CHUNK))
        columns = {"value": [value for _, _, value in given]}
        if self.payload.keys:
            columns["key"] = [key for _, key, _ in given if key is not None]
        self._table = pyarrow.table(columns)

    def chunks(self, records: int) -> Iterator[Any]:
        for start in range(0, records, CHUNK):
            yield self._table.slice(0, min(CHUNK, records - start))

    async def send(self, chunk: Any) -> Any:
        bulk: Any = self.producer
        return await bulk.send_table(self.topic, chunk, value="value", key="key" if self.payload.keys else None)
