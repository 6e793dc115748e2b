"""Rows written through every driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from aioproducer.errors import IllegalArgumentException
from aioproducer.outbox import Outbox

OUTBOX = Outbox()
ROWS: list[Mapping[str, Any]] = [
    {"topic": "orders", "value": b"\x00\xff", "key": b"k", "headers": {"a": "b"}, "partition": 3},
    {"topic": "orders", "value": "größe"},
    {"topic": "orders", "key": bytearray(b"x"), "headers": [("a", b"\xff"), ("a", None)]},
]
WRITTEN = [
    ("orders", 3, b"k", b"\x00\xff", '{"a": "b"}'),
    ("orders", None, None, "größe".encode(), None),
    ("orders", None, b"x", None, '[["a", {"base64": "/w=="}], ["a", null]]'),
]


async def rows(database: Any, table: str = "outbox") -> list[tuple[Any, ...]]:
    found = await database.fetch(f"SELECT topic, partition, key, value, headers::text FROM {table} ORDER BY id")
    return [tuple(row) for row in found]


async def write_all(connection: Any, outbox: Outbox = OUTBOX) -> None:
    for row in ROWS:
        await outbox.write(connection, **row)
    await outbox.write_many(connection, ROWS)
    await outbox.write_many(connection, [])


async def test_asyncpg(dsn: str, database: Any) -> None:
    import asyncpg

    await write_all(database)
    assert await rows(database) == WRITTEN * 2
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        await OUTBOX.write(connection, **ROWS[0])
    assert len(await rows(database)) == 7


async def test_psycopg(dsn: str, database: Any) -> None:
    import psycopg

    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await write_all(connection)
        assert await rows(database) == [], "in the transaction of the connection"
    assert await rows(database) == WRITTEN * 2


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_sqlalchemy(dsn: str, database: Any, driver: str) -> None:
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    engine = create_async_engine(dsn.replace("postgresql", f"postgresql+{driver}"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            await write_all(session)
        async with engine.begin() as connection:
            await write_all(connection)
        async with AsyncSession(engine) as session:
            await write_all(session)
            await session.rollback()
    finally:
        await engine.dispose()
    assert await rows(database) == WRITTEN * 4


async def test_a_table_of_any_name_in_a_schema(dsn: str, database: Any) -> None:
    import psycopg
    from sqlalchemy.ext.asyncio import create_async_engine

    outbox = Outbox('an "app"\'s.the 100% :box')
    await database.execute("""CREATE SCHEMA "an ""app""'s" """)
    await database.execute(outbox.schema())
    await write_all(database, outbox)
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await write_all(connection, outbox)
    engine = create_async_engine(dsn.replace("postgresql", "postgresql+asyncpg"))
    try:
        async with engine.begin() as connection:
            await write_all(connection, outbox)
    finally:
        await engine.dispose()
    assert await rows(database, outbox.sql_name) == WRITTEN * 6


@pytest.mark.parametrize("table", ["", ".", "a.", ".a", "a.b.c", "x" * 51, "a\0b"])
def test_names_that_no_table_can_have(table: str) -> None:
    with pytest.raises(IllegalArgumentException, match="is no name of a table"):
        Outbox(table)


def test_the_schema_with_and_without_notifications() -> None:
    assert OUTBOX.schema().startswith('CREATE TABLE "outbox" (')
    assert "pg_notify('outbox', '')" in OUTBOX.schema()
    assert "NOTIFY" not in OUTBOX.schema(notify=False).upper()
    assert OUTBOX.schema().startswith(OUTBOX.schema(notify=False))
    assert repr(OUTBOX) == "<Outbox 'outbox'>"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"topic": ""}, "topic is ''; it must be a text that is not empty"),
        ({"topic": b"t"}, "topic is b't'"),
        ({"topic": "t", "partition": -1}, "partition is -1; it must be an int from 0 on"),
        ({"topic": "t", "value": 5}, "value is of type int; it must be bytes, a text or None"),
        ({"topic": "t", "key": object()}, "key is of type object"),
        ({"topic": "t", "headers": [("a", 1)]}, "is no header"),
    ],
)
async def test_what_no_row_can_have(row: dict[str, Any], words: str) -> None:
    with pytest.raises(IllegalArgumentException, match=words):
        await OUTBOX.write(None, **row)


async def test_a_connection_of_another_kind(dsn: str) -> None:
    import psycopg

    refused = "is no asynchronous connection of asyncpg, psycopg or SQLAlchemy"
    with pytest.raises(IllegalArgumentException, match=refused):
        await OUTBOX.write(object(), "t")
    with psycopg.connect(dsn) as connection, pytest.raises(IllegalArgumentException, match=refused):
        await OUTBOX.write(connection, "t")


async def test_the_database_refuses_topics_that_kafka_would_refuse(database: Any) -> None:
    import asyncpg

    with pytest.raises(asyncpg.CheckViolationError):
        await OUTBOX.write(database, "no topic")
