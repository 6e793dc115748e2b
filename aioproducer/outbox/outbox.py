"""The outbox table as its writers see it: its schema, and rows written in the service's own transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, Final

from aioproducer.errors import IllegalArgumentException
from aioproducer.outbox.row import as_json

Headers = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]

COLUMNS: Final = ("topic", "partition", "key", "value", "headers")
"""What a writer gives; the others have defaults."""

_TYPES: Final = {"topic": "text", "partition": "integer", "key": "bytea", "value": "bytea", "headers": "jsonb"}

_SCHEMA: Final = """\
CREATE TABLE {table} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (created_at BETWEEN 'epoch' AND '9999-01-01'),
    topic text NOT NULL CHECK (topic ~ '^[a-zA-Z0-9._-]{{1,249}}$'),
    partition integer CHECK (partition >= 0),
    key bytea,
    value bytea,
    headers jsonb CHECK (jsonb_typeof(headers) IN ('object', 'array'))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
CREATE INDEX {xid_index} ON {table} (xid);
CREATE TABLE {relays} (
    name text PRIMARY KEY,
    position text NOT NULL,
    last_id bigint NOT NULL,
    settled_xid xid8 NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
"""

_NOTIFY: Final = """\
CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_notify({channel}, ''); RETURN NULL; END $$;
CREATE TRIGGER {trigger} AFTER INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {function}();
"""


class Outbox:
    """An outbox table of PostgreSQL 13 or newer, by its name, which may have a schema: ``app.outbox``.

    ::

        outbox = Outbox()
        async with connection.transaction():
            await connection.execute("UPDATE orders SET state = 'paid' WHERE id = $1", 42)
            await outbox.write(connection, "orders", b"paid", key=b"42")

    Write to the outbox after the statement that locks what the key stands for (``docs/outbox.md``, "Order").
    """

    def __init__(self, table: str = "outbox") -> None:
        parts = table.split(".")
        if not 1 <= len(parts) <= 2 or not all(0 < len(part.encode()) <= 50 for part in parts) or "\0" in table:
            raise IllegalArgumentException(
                f"{table!r} is no name of a table: write table or schema.table, each of 1 to 50 bytes"
            )
        self.name = table
        *schema, own = parts
        prefix = "".join(f"{quoted(part)}." for part in schema)
        self.sql_name = prefix + quoted(own)
        """The table's name in SQL, quoted."""
        self.relays_sql_name = prefix + quoted(f"{own}_relays")
        """The table of the relays that have begun, beside it."""
        self.channel = own
        """The channel of NOTIFY."""
        self._function = prefix + quoted(f"{own}_notify")

    def schema(self, *, notify: bool = True) -> str:
        """The SQL that makes the tables: run it as a migration.

        ``notify`` adds a trigger that wakes the relay at each commit. Without it the relay looks every
        ``poll_interval``, and transactions that write to the outbox can be prepared (``PREPARE TRANSACTION``); see
        ``docs/outbox.md``, "LISTEN and NOTIFY".
        """
        own = self.channel
        names = {
            "table": self.sql_name,
            "relays": self.relays_sql_name,
            "xid_index": quoted(f"{own}_xid"),
            "function": self._function,
            "trigger": quoted(f"{own}_notify"),
            "channel": "'" + own.replace("'", "''") + "'",
        }
        return _SCHEMA.format(**names) + (_NOTIFY.format(**names) if notify else "")

    async def write(
        self,
        connection: Any,
        topic: str,
        value: bytes | str | None = None,
        *,
        key: bytes | str | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
    ) -> None:
        """Inserts a row in the transaction that the connection is in; it is relayed when that has been committed.

        ``connection``: of asyncpg, an asynchronous one of psycopg 3, or SQLAlchemy's ``AsyncSession`` or
        ``AsyncConnection``. Text becomes UTF-8. Without a partition, the key decides, as with ``KafkaProducer.send``.
        Raises IllegalArgumentException, and the driver's own errors.
        """
        row = row_of(topic, value, key, headers, partition)
        match _driver_of(connection):
            case "asyncpg":
                await connection.execute(self._insert("${}"), *row)
            case "psycopg":
                await connection.execute(self._insert("%s"), row)
            case _:
                await connection.execute(self._sqlalchemy(), dict(zip(COLUMNS, row, strict=True)))

    async def write_many(self, connection: Any, records: Iterable[Mapping[str, Any]]) -> None:
        """Inserts rows in this order; each is a mapping with the arguments of :meth:`write`."""
        rows = [
            row_of(one["topic"], **{name: one.get(name) for name in ("value", "key", "headers", "partition")})
            for one in records
        ]
        if not rows:
            return
        match _driver_of(connection):
            case "asyncpg":
                await connection.executemany(self._insert("${}"), rows)
            case "psycopg":
                async with connection.cursor() as cursor:
                    await cursor.executemany(self._insert("%s"), rows)
            case _:
                named = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
                await connection.execute(self._sqlalchemy(), named)

    def _insert(self, place: str) -> str:
        """``place`` is a parameter in the driver's notation, with the number for ``{}``."""
        values = ", ".join(
            f"CAST(CAST({place.format(number)} AS text) AS jsonb)"
            if name == "headers"
            else f"CAST({place.format(number)} AS {_TYPES[name]})"
            for number, name in enumerate(COLUMNS, 1)
        )
        name = self.sql_name.replace("%", "%%") if place == "%s" else self.sql_name
        return f"INSERT INTO {name} ({', '.join(COLUMNS)}) VALUES ({values})"

    def _sqlalchemy(self) -> Any:
        from sqlalchemy import text

        values = ", ".join(f"CAST(:{name} AS {kind})" for name, kind in _TYPES.items())
        name = self.sql_name.replace(":", "\\:")
        return text(f"INSERT INTO {name} ({', '.join(COLUMNS)}) VALUES ({values})")

    def __repr__(self) -> str:
        return f"<Outbox {self.name!r}>"


def quoted(name: str) -> str:
    """An identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def row_of(
    topic: str,
    value: bytes | str | None = None,
    key: bytes | str | None = None,
    headers: Headers | None = None,
    partition: int | None = None,
) -> tuple[str, int | None, bytes | None, bytes | None, str | None]:
    """The values of ``COLUMNS``; IllegalArgumentException if they cannot become a row."""
    given: Any = topic
    if not isinstance(given, str) or not given:
        raise IllegalArgumentException(f"topic is {topic!r}; it must be a text that is not empty")
    given = partition
    if given is not None and (not isinstance(given, int) or given < 0):
        raise IllegalArgumentException(f"partition is {partition!r}; it must be an int from 0 on, or None")
    written = None if headers is None else json.dumps(as_json(headers), ensure_ascii=False)
    return topic, partition, _bytes("key", key), _bytes("value", value), written


def _bytes(name: str, data: object) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise IllegalArgumentException(f"{name} is of type {type(data).__name__}; it must be bytes, a text or None")


def _driver_of(connection: object) -> str:
    """The package that the connection's class comes from; IllegalArgumentException if its calls cannot be awaited."""
    for base in type(connection).__mro__:
        package = base.__module__.partition(".")[0]
        if package == "asyncpg":  # which has nothing else, and wraps the methods of a pool's connections
            return package
        if package in ("psycopg", "sqlalchemy") and iscoroutinefunction(getattr(connection, "execute", None)):
            return package
    raise IllegalArgumentException(
        f"a {type(connection).__module__}.{type(connection).__name__} is no asynchronous connection of asyncpg, "
        "psycopg or SQLAlchemy: use INSERT with your driver"
    )
