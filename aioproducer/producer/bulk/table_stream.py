"""Tables from an asynchronous stream, awaited as room allows."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

from aioproducer.producer.bulk.table_columns import TableColumns
from aioproducer.producer.bulk.table_rows import TableRows


class TableStream:
    """Reads each table as ``TableColumns`` does; row numbers continue from table to table.

    An error of the stream or of a table is kept in ``broken`` until the rows before it were read. ``columns`` are by
    role.
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
        """The next rows; None if there are no more, or if the next are ``broken``."""
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
