"""What the relay asks the database, through asyncpg."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Any, Final

from aioproducer.errors import ConfigException
from aioproducer.outbox.errors import OutboxSchemaException, PositionMismatchException
from aioproducer.outbox.outbox import Outbox
from aioproducer.outbox.position import Position, Progress, Snapshot
from aioproducer.outbox.row import Page, Row

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
# The second is left out once its ids are passed. Lengths do not unpack large values. One row more is found than a page
# may have, so that each row of the page knows whether another one follows.
_PAGE: Final = """
SELECT id, topic, partition, key, value, headers::text AS headers,
    (extract(epoch FROM created_at) * 1000)::bigint AS created_ms, more
FROM (
    SELECT *, sum(octets) OVER (ORDER BY id) AS bytes, lead(id) OVER (ORDER BY id) IS NOT NULL AS more
    FROM (
        SELECT id, topic, partition, key, value, headers, created_at,
            coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)
                + coalesce(pg_column_size(headers), 0) AS octets
        FROM (
            (SELECT * FROM {table}
             WHERE id > greatest($1::bigint, $2::bigint) {within}
             ORDER BY id LIMIT $5::bigint + 1)
            UNION ALL
            (SELECT * FROM {table}
             WHERE $2::bigint < $1::bigint AND id > $2::bigint AND id <= $1::bigint
                AND (xid >= $3::text::xid8 OR xid = ANY($4::text[]::xid8[])) {within}
             ORDER BY id LIMIT $5::bigint + 1)
        ) AS found
        ORDER BY id LIMIT $5::bigint + 1
    ) AS measured
) AS page
WHERE bytes - octets < $6
ORDER BY id LIMIT $5::bigint
"""

_WITHIN: Final = "AND id <= $7::bigint AND pg_visible_in_snapshot(xid, $8::text::pg_snapshot)"
"""Restricts a page to a window that is open already. The statement that opens one sees nothing else."""

# One statement, so that its snapshot is the one that the rows are seen with; its answer has no order. It looks for the
# greatest id from the last position on: behind that lie deleted rows, which the index keeps until the next vacuum.
_WINDOW: Final = """
SELECT pg_current_snapshot()::text AS snapshot, ({stray}) AS stray, (SELECT max(id) FROM {table} WHERE id > $1) AS id,
    NULL AS topic, NULL::int AS partition, NULL::bytea AS key, NULL::bytea AS value, NULL AS headers,
    NULL::bigint AS created_ms, NULL::boolean AS more
UNION ALL
SELECT NULL, NULL, page.* FROM ({page}) AS page
"""

# A row that no position can have. The statement sees it, so its transaction has ended; but the statement's snapshot
# says that the transaction with this xid has not. The row would be in each window until the database has used its xid.
_STRAY: Final = """
SELECT id FROM (
    (SELECT id FROM {table} WHERE xid >= (SELECT pg_snapshot_xmax(pg_current_snapshot())) ORDER BY xid DESC LIMIT 1)
    UNION ALL
    (SELECT id FROM {table} WHERE xid = ANY(ARRAY(SELECT pg_snapshot_xip(pg_current_snapshot()))) ORDER BY xid LIMIT 1)
    UNION ALL
    (SELECT id FROM {table} WHERE id < 1 ORDER BY id LIMIT 1)
) AS strays LIMIT 1
"""

_CLEAN: Final = """
DELETE FROM {table} WHERE xid < $2::text::xid8 AND id IN (
    SELECT id FROM {table} WHERE id > 0 AND id <= $1 AND xid < $2::text::xid8 LIMIT $3
)
"""

_LOCK: Final = "hashtextextended('aioproducer.outbox/' || $1, to_regclass($2)::oid::bigint)"


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
        except (ValueError, asyncpg.ClientConfigurationError):  # its message may have a part of the password
            raise ConfigException(
                "the address of the database is wrong, and is not shown because it may have a password: give "
                "postgresql://user:password@host:port/database, and write characters such as / # ? @ % in the password "
                "as %2F %23 %3F %40 %25"
            ) from None
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
        self._page = _PAGE.format(table=outbox.sql_name, within=_WITHIN)
        page = _PAGE.format(table=outbox.sql_name, within="")
        stray = _STRAY.format(table=outbox.sql_name)
        self._window = _WINDOW.format(table=outbox.sql_name, page=page, stray=stray)

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
        sequence = await self._connection.fetchval(
            "SELECT concat_ws(' and ', CASE WHEN seqcache > 1 THEN 'CACHE ' || seqcache END, "
            "CASE WHEN seqincrement < 1 THEN 'INCREMENT ' || seqincrement END, CASE WHEN seqcycle THEN 'CYCLE' END, "
            "CASE WHEN seqmin < 1 THEN 'MINVALUE ' || seqmin END) "
            "FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence($1, 'id')::regclass",
            table,
        )
        if sequence != "":
            there = "has no sequence" if sequence is None else f"has a sequence with {sequence}"
            raise OutboxSchemaException(
                f"the column id of {self._outbox.name} {there}; it must be an identity that counts up from 1 or more, "
                "with CACHE 1 and without CYCLE, or rows are not numbered in the order in which they are written"
            )
        if await self._connection.fetchval("SELECT row_security_active($1)", table):
            raise OutboxSchemaException(
                f"policies of row security hide rows of {self._outbox.name} from the relay; it must see all of them: "
                "use a user with BYPASSRLS, or the owner of the table"
            )
        await self._connection.execute("SET plan_cache_mode = force_custom_plan")
        return f"{cluster}.{database}.{oid}"

    async def try_lock(self, name: str) -> bool:
        """Takes the lock of the relay of this name, for as long as the connection lasts, unless another one has it."""
        held: bool = await self._connection.fetchval(
            f"SELECT pg_try_advisory_lock({_LOCK})", name, self._outbox.sql_name
        )
        return held

    async def process(self) -> int:
        """The process of the server that this connection is served by."""
        found: int = await self._connection.fetchval("SELECT pg_backend_pid()")
        return found

    async def sees_lock(self, name: str, process: int) -> bool:
        """Whether that process has the lock of the relay of this name in this database of this server."""
        there: bool = await self._connection.fetchval(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = $3::int "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            f"AND (classid::bigint << 32 | objid::bigint) = {_LOCK})",
            name,
            self._outbox.sql_name,
            process,
        )
        return there

    async def listen(self, wake: Callable[[], object]) -> None:
        """Calls ``wake`` when rows were committed, and when the connection is lost."""
        await self._connection.add_listener(self._outbox.channel, lambda *_: wake())
        self._connection.add_termination_listener(lambda *_: wake())

    async def window(self, since: Position, most_rows: int, most_bytes: int) -> tuple[Position, Page]:
        """The position, at or after ``since``, that has all rows of transactions that have ended by now, and the first
        page of what it has more. PositionMismatchException if no position can have a row of the table."""
        found = await self._connection.fetch(self._window, *_since(since), most_rows, most_bytes)
        ((snapshot, stray, last),) = [tuple(row)[:3] for row in found if row["snapshot"] is not None]
        if stray is not None:
            raise PositionMismatchException(_of_stray(self._outbox.sql_name, stray))
        page = _page(sorted((tuple(row)[2:] for row in found if row["snapshot"] is None), key=itemgetter(0)))
        return Position(since.last if last is None else last, Snapshot.parse(snapshot)), page

    async def page(self, progress: Progress, most_rows: int, most_bytes: int) -> Page:
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
        return _page([tuple(row) for row in found])

    async def drawn(self) -> int:
        """The last id that was drawn, at least: a database that has crashed leaves some out."""
        sequence = await self._connection.fetchval("SELECT pg_get_serial_sequence($1, 'id')", self._outbox.sql_name)
        last: int = await self._connection.fetchval(
            f"SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM {sequence}"
        )
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


def _page(found: Sequence[tuple[Any, ...]]) -> Page:
    """The columns of ``_PAGE``, in the order of ids."""
    return Page([Row(*columns[:-1]) for columns in found], bool(found) and found[-1][-1])


def _of_stray(table: str, row_id: int) -> str:
    if row_id < 1:
        return (
            f"the row {row_id} of {table} has an id below 1, where no position begins. Give such rows new ids: "
            f"UPDATE {table} SET id = DEFAULT, xid = pg_current_xact_id() WHERE id < 1"
        )
    return (
        f"the row {row_id} of {table} has the xid of a transaction that has not ended in this database: it was copied "
        "from another one. Nothing is relayed, because such a row would be found again and again. Give these rows the "
        f"id of a transaction of this database: UPDATE {table} SET xid = pg_current_xact_id() "
        "WHERE NOT pg_visible_in_snapshot(xid, pg_current_snapshot())"
    )


def _since(since: Position, after: int = 0) -> tuple[int, int, str, list[str]]:
    """The parameters for what a position has not, from the id after ``after`` on."""
    return since.last, after, str(since.snapshot.xmax), list(map(str, since.snapshot.xip))
