"""What the relay asks the database, through asyncpg."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from aioproducer.errors import ConfigException
from aioproducer.outbox.errors import OutboxSchemaException
from aioproducer.outbox.outbox import Outbox
from aioproducer.outbox.position import Position, Progress, Snapshot
from aioproducer.outbox.row import Row

log = logging.getLogger(__name__)

Connect = str | Callable[[], Awaitable[Any]]
"""The address of a database, or what makes a connection of asyncpg."""

OLDEST: Final = 130_000
"""PostgreSQL 13 has xid8 and pg_snapshot."""
COMMAND_TIMEOUT: Final = 60.0
"""Seconds until an answer. A database that has vanished without closing the connection is noticed after them."""
CLEANED_AT_ONCE: Final = 10_000

_NEEDED: Final = {
    "id": "bigint",
    "xid": "xid8",
    "created_at": "timestamp with time zone",
    "topic": "text",
    "partition": "integer",
    "key": "bytea",
    "value": "bytea",
    "headers": "jsonb",
}

# Two disjoint parts, each with an index of its own: ids after the last position, and transactions that were open then.
# The second is left out once its ids are passed. Lengths do not unpack large values.
_PAGE: Final = """
SELECT id, topic, partition, key, value, headers::text AS headers,
    (extract(epoch FROM created_at) * 1000)::bigint AS created_ms
FROM (
    SELECT *, sum(octets) OVER (ORDER BY id) AS bytes
    FROM (
        SELECT *, coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)
            + coalesce(pg_column_size(headers), 0) AS octets
        FROM (
            (SELECT * FROM {table}
             WHERE id > greatest($1::bigint, $2::bigint) {within}
             ORDER BY id LIMIT $5)
            UNION ALL
            (SELECT * FROM {table}
             WHERE $2::bigint < $1::bigint AND id > $2::bigint AND id <= $1::bigint
                AND (xid >= $3::text::xid8 OR xid = ANY($4::text[]::xid8[])) {within}
             ORDER BY id LIMIT $5)
        ) AS found
        ORDER BY id LIMIT $5
    ) AS measured
) AS page
WHERE bytes - octets < $6
"""

_WITHIN: Final = "AND id <= $7::bigint AND pg_visible_in_snapshot(xid, $8::text::pg_snapshot)"
"""Restricts a page to a window that is open already. The statement that opens one sees nothing else."""

# One statement, so that its snapshot is the one that the rows are seen with; its answer has no order. It looks for the
# greatest id from the last position on: behind that lie deleted rows, which the index keeps until the next vacuum.
_WINDOW: Final = """
SELECT pg_current_snapshot()::text AS snapshot, (SELECT max(id) FROM {table} WHERE id > $1) AS id,
    NULL AS topic, NULL::int AS partition, NULL::bytea AS key, NULL::bytea AS value, NULL AS headers,
    NULL::bigint AS created_ms
UNION ALL
SELECT NULL, page.* FROM ({page}) AS page
"""

_CLEAN: Final = """
DELETE FROM {table} WHERE id IN (
    SELECT id FROM {table} WHERE id <= $1 AND xid < $2::text::xid8 LIMIT $3
)
"""


def driver() -> Any:
    """asyncpg; ConfigException if it is not installed."""
    try:
        import asyncpg
    except ImportError as error:
        raise ConfigException("the relay needs asyncpg: install aioproducer[outbox]") from error
    return asyncpg


def database_errors() -> tuple[type[Exception], ...]:
    """What a database raises that cannot be reached, or that breaks off."""
    asyncpg = driver()
    # InternalClientError: how asyncpg meets the end of a connection between two statements.
    return (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError, EOFError)


def refusals() -> tuple[type[Exception], ...]:
    """What a database raises that would refuse the same again: who asks, what is asked, or where."""
    asyncpg = driver()
    return (
        asyncpg.InvalidAuthorizationSpecificationError,
        asyncpg.InvalidCatalogNameError,
        asyncpg.SyntaxOrAccessError,
    )


@asynccontextmanager
async def connected(connect: Connect) -> AsyncIterator[Any]:
    """A connection of asyncpg, closed at the end."""
    asyncpg = driver()
    if isinstance(connect, str):
        try:
            connection = await asyncpg.connect(connect, command_timeout=COMMAND_TIMEOUT)
        except (ValueError, asyncpg.ClientConfigurationError) as error:
            raise ConfigException(f"the address of the database is wrong: {error}") from None
    else:
        connection = await connect()
    try:
        yield connection
    finally:
        try:
            await connection.close(timeout=5)
        except BaseException as error:
            connection.terminate()
            if not isinstance(error, database_errors()):  # lost before, which is no error of the end
                raise


class Database:
    """The outbox table over one connection, which only this object uses."""

    def __init__(self, connection: Any, outbox: Outbox) -> None:
        self._connection = connection
        self._outbox = outbox
        self._page = _PAGE.format(table=outbox.sql_name, within=_WITHIN) + "ORDER BY id"
        page = _PAGE.format(table=outbox.sql_name, within="")
        self._window = _WINDOW.format(table=outbox.sql_name, page=page)

    async def check(self) -> str:
        """The identity of the table; OutboxSchemaException if it is not there or not as needed."""
        table = self._outbox.sql_name
        version, in_recovery, cluster, database, oid = await self._connection.fetchrow(
            "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), system_identifier, "
            "(SELECT oid FROM pg_database WHERE datname = current_database())::bigint, to_regclass($1)::oid::bigint "
            "FROM pg_control_system()",
            table,
        )
        if version < OLDEST:
            raise OutboxSchemaException(f"the database is PostgreSQL {version // 10_000}; the relay needs 13 or newer")
        if in_recovery:
            raise OutboxSchemaException("the database is a standby: the relay needs the primary")
        if oid is None:
            raise OutboxSchemaException(
                f"there is no table {self._outbox.name}: make it with the SQL of 'aioproducer outbox --print-schema'"
            )
        found = dict(
            await self._connection.fetch(
                "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
                "WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped",
                table,
            )
        )
        for name, kind in _NEEDED.items():
            if found.get(name) != kind:
                there = f"is {found[name]}" if name in found else "is missing"
                raise OutboxSchemaException(f"the column {name} of {self._outbox.name} {there}; it must be {kind}")
        if await self._connection.fetchval("SELECT to_regclass($1)", self._outbox.relays_sql_name) is None:
            raise OutboxSchemaException(
                f"there is no table {self._outbox.relays_sql_name}: make it with the SQL of "
                "'aioproducer outbox --print-schema'"
            )
        cache = await self._connection.fetchval(
            "SELECT seqcache FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence($1, 'id')::regclass", table
        )
        if cache != 1:
            there = "has no sequence" if cache is None else f"has a sequence with CACHE {cache}"
            raise OutboxSchemaException(
                f"the column id of {self._outbox.name} {there}; it must be an identity with CACHE 1, "
                "or rows are not numbered in the order in which they are written"
            )
        await self._connection.execute("SET plan_cache_mode = force_custom_plan")
        return f"{cluster}.{database}.{oid}"

    async def try_lock(self, name: str) -> bool:
        """Takes the lock of the relay of this name, for as long as the connection lasts, unless another one has it."""
        held: bool = await self._connection.fetchval(
            "SELECT pg_try_advisory_lock(hashtextextended('aioproducer.outbox/' || $1, to_regclass($2)::oid::bigint))",
            name,
            self._outbox.sql_name,
        )
        return held

    async def listen(self, wake: Callable[[], object]) -> None:
        """Calls ``wake`` when rows were committed, and when the connection is lost."""
        await self._connection.add_listener(self._outbox.channel, lambda *_: wake())
        self._connection.add_termination_listener(lambda *_: wake())

    async def window(self, since: Position, most_rows: int, most_bytes: int) -> tuple[Position, list[Row]]:
        """The position, at or after ``since``, that has all rows of transactions that have ended by now, and the first
        page of what it has more."""
        found = await self._connection.fetch(self._window, *_since(since), most_rows, most_bytes)
        ((snapshot, last),) = [(row["snapshot"], row["id"]) for row in found if row["snapshot"] is not None]
        rows = [Row(*row[1:]) for row in found if row["snapshot"] is None]
        return Position(since.last if last is None else last, Snapshot.parse(snapshot)), sorted(rows)

    async def page(self, progress: Progress, most_rows: int, most_bytes: int) -> list[Row]:
        """The next rows of the window, in the order of their ids: as many as that, at most one row larger."""
        until = progress.until
        assert until is not None
        found = await self._connection.fetch(
            self._page,
            *_since(progress.since, progress.after),
            most_rows,
            most_bytes,
            until.last,
            str(until.snapshot),
        )
        return [Row(*row) for row in found]

    async def drawn(self) -> int:
        """The last id that was drawn, at least: a database that has crashed leaves some out."""
        sequence = await self._connection.fetchval("SELECT pg_get_serial_sequence($1, 'id')", self._outbox.sql_name)
        last: int = await self._connection.fetchval(f"SELECT last_value FROM {sequence}")
        return last

    async def begun(self, name: str) -> str | None:
        """The position that the relay of this name last left in the database; None if it has never begun."""
        position: str | None = await self._connection.fetchval(
            f"SELECT position FROM {self._outbox.relays_sql_name} WHERE name = $1", name
        )
        return position

    async def leave(self, name: str, position: Position) -> None:
        """Leaves a copy of the position in the database, which is never ahead of Kafka's.

        Every row with ``id <= last_id AND xid < settled_xid`` is relayed.
        """
        await self._connection.execute(
            f"INSERT INTO {self._outbox.relays_sql_name} (name, position, last_id, settled_xid) "
            "VALUES ($1, $2, $3, $4::text::xid8) ON CONFLICT (name) DO UPDATE SET position = excluded.position, "
            "last_id = excluded.last_id, settled_xid = excluded.settled_xid, updated_at = now()",
            name,
            position.pack(),
            position.last,
            str(position.snapshot.xmin),
        )

    async def clean(self, position: Position) -> int:
        """Deletes some of the rows that every position from this one on has; returns how many."""
        done: str = await self._connection.execute(
            _CLEAN.format(table=self._outbox.sql_name), position.last, str(position.snapshot.xmin), CLEANED_AT_ONCE
        )
        return int(done.rpartition(" ")[2])


def _since(since: Position, after: int = 0) -> tuple[int, int, str, list[str]]:
    """The parameters for what a position has not, from the id after ``after`` on."""
    return since.last, after, str(since.snapshot.xmax), list(map(str, since.snapshot.xip))
