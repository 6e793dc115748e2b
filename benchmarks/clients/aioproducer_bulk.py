"""aioproducer's bulk calls: one awaitable for all records."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import Any

from aioproducer import KafkaProducer
from benchmarks.clients.aioproducer import Aioproducer
from benchmarks.clients.client import Missing
from benchmarks.works.works import STREAM, Work

TABLE_ROWS = 20_000
"""Of the table that is made beforehand; larger ones are made of several such, without a copy."""


class _Bulk(Aioproducer):
    ways = (STREAM,)
    call: str

    @classmethod
    def can(cls, work: Work) -> bool:
        """A call is for one topic."""
        return super().can(work) and work.topics == 1

    @classmethod
    def about(cls) -> str:
        if not hasattr(KafkaProducer, cls.call):
            raise Missing(f"KafkaProducer has no {cls.call} yet")
        return super().about()

    @abstractmethod
    async def send(self, records: int) -> Any:
        """The BulkResult of a number of records."""

    async def stream(self, records: int) -> Counter[str]:
        result = await self.send(records)
        return Counter(type(error).__name__ for _, error in result.errors) if result.failed else Counter()


class Many(_Bulk):
    """``send_many`` of a list."""

    call = "send_many"

    async def start(self) -> None:
        """The lists are made beforehand: two million references take 50 ms of the event loop."""
        await super().start()
        payload, records = self.payload, self.run.records
        self._values = _repeated(payload.values, records)
        self._keys = _repeated(payload.keys, records) if payload.keys else None
        self._headers = None if payload.headers is None else [payload.headers] * records

    async def send(self, records: int) -> Any:
        send_many, values, keys, headers = self.producer.send_many, self._values, self._keys, self._headers
        if records < len(values):  # the warm-up
            values, keys, headers = values[:records], keys and keys[:records], headers and headers[:records]
        return await send_many(self.topic, values, keys=keys, headers=headers)


class Table(_Bulk):
    """``send_table`` of one of pyarrow's tables, made beforehand as those who have tables have them."""

    call = "send_table"

    @classmethod
    def about(cls) -> str:
        import pyarrow

        return f"{super().about()}, pyarrow {pyarrow.__version__}"

    async def start(self) -> None:
        from pyarrow import array, binary, map_, string, table

        await super().start()
        payload = self.payload
        columns = {"value": array(_repeated(payload.values, TABLE_ROWS), binary())}
        if payload.headers is not None:
            columns["key"] = array(_repeated(payload.keys, TABLE_ROWS), binary())
            columns["headers"] = array([payload.headers] * TABLE_ROWS, map_(string(), binary()))
        self._table = table(columns)

    async def send(self, records: int) -> Any:
        from pyarrow import concat_tables

        producer: Any = self.producer
        table = concat_tables([self._table] * -(-records // TABLE_ROWS)).slice(0, records)
        more = {name: name for name in table.column_names}
        return await producer.send_table(self.topic, table, **more)


def _repeated(items: list[bytes], count: int) -> list[bytes]:
    """So many items, taken in turn."""
    return (items * -(-count // len(items)))[:count]
