"""Tables that come one after another, awaited as there is room for their rows."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

from aioproducer.producer.bulk.table_columns import TableColumns
from aioproducer.producer.bulk.table_rows import TableRows


class TableStream:
    """Reads each as ``TableColumns`` does; rows are numbered through all of them.

    What the stream raises, and what is wrong with one of its tables, is kept in ``broken`` until the rows before it
    were read. ``columns`` by what they are for.
    """

    def __init__(self, tables: AsyncIterable[Any], **columns: str | None) -> None:
        self._tables = aiter(tables)
        self._names = columns
        self._table: TableColumns | None = None
        self.count = 0
        """Rows read so far."""
        self.broken: Exception | None = None
        self._ahead = 4

    async def read(self) -> TableRows | None:
        """The next rows; None if there are no more, or what comes next is ``broken``."""
        while self.broken is None:
            try:
                table = self._table
                if table is None:
                    given = await anext(self._tables)
                    table = TableColumns(given, self.count, self._ahead, **self._names)
                    self._table = table
            except StopAsyncIteration:
                break
            except Exception as error:
                self.broken = error
                break
            rows = table.read()
            self.count, self.broken, self._ahead = table.count, table.broken, table.ahead
            if rows is not None:
                return rows
            self._table = None
        return None
