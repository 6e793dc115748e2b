"""What the relay asks a real database."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.outbox import Outbox, PositionMismatchException
from aioproducer.outbox.database import Database
from aioproducer.outbox.position import Position, Progress
from aioproducer.outbox.row import Page
from aioproducer.testing.postgresql import Postgresql
from tests.outbox.servers import require_postgresql

OUTBOX = Outbox()


async def ids(database: Database, progress: Progress, most_rows: int = 100, most_bytes: int = 1_000_000) -> list[int]:
    return [row.id for row in (await database.page(progress, most_rows, most_bytes)).rows]


async def here(database: Database, since: Position) -> Position:
    """The position of the window that is opened now."""
    position, page = await database.window(since, 100, 1_000_000)
    assert [row.id for row in page.rows] == await ids(database, Progress(since).to(position)), "its first page"
    return position


async def test_windows_and_pages(dsn: str, database: Any) -> None:
    import asyncpg

    asked = Database(database, OUTBOX)
    late = await asyncpg.connect(dsn)
    try:
        await late.execute("BEGIN")
        await OUTBOX.write(late, "t", b"1")
        await OUTBOX.write(database, "t", b"2")
        await OUTBOX.write(late, "t", b"3")
        await OUTBOX.write(database, "t", b"4" * 10)
        first = Progress().to(await here(asked, Position()))
        assert first.until is not None
        assert (first.until.last, len(first.until.snapshot.xip)) == (4, 1)
        await OUTBOX.write(database, "t", b"5")
        await late.execute("COMMIT")
    finally:
        await late.close()
    assert await ids(asked, first) == [2, 4], "what was committed since is in the next window"
    assert await ids(asked, first, most_rows=1) == [2]
    assert await ids(asked, first, most_bytes=1) == [2], "at least one"
    assert await ids(asked, first, most_bytes=2) == [2, 4], "at most one too large"
    assert await ids(asked, first.past(2)) == [4]
    for most_rows, most_bytes, expected, more in (
        (1, 100, [1], True),
        (100, 1, [1], True),
        (100, 2, [1, 2], True),
        (5, 100, [1, 2, 3, 4, 5], False),
        (4, 100, [1, 2, 3, 4], True),
        (100, 14, [1, 2, 3, 4, 5], False),
        (100, 13, [1, 2, 3, 4], True),
    ):
        _, page = await asked.window(Position(), most_rows, most_bytes)
        assert ([row.id for row in page.rows], page.more) == (expected, more)
    assert await ids(asked, first.past(4)) == []
    second = first.ended().to(await here(asked, first.until))
    assert await ids(asked, second) == [1, 3, 5]
    assert await ids(asked, second, most_rows=2) == [1, 3]
    assert await ids(asked, second.past(1)) == [3, 5]
    third = second.ended().to(await here(asked, second.ended().since))
    assert await asked.page(third, 1, 1) == Page([], False)
    assert third.newest == 5


async def test_only_what_is_relayed_is_deleted(dsn: str, database: Any) -> None:
    import asyncpg

    asked = Database(database, OUTBOX)
    late = await asyncpg.connect(dsn)
    try:
        await OUTBOX.write(database, "t", b"1")
        await late.execute("BEGIN")
        await OUTBOX.write(late, "t", b"2")
        await OUTBOX.write(database, "t", b"3")
        position = await here(asked, Position())
        await OUTBOX.write(database, "t", b"4")
        await late.execute("COMMIT")
        assert await asked.clean(position) == 1, "rows after the oldest open transaction wait for a later position"
        assert await asked.clean(position) == 0
        assert [row["id"] for row in await database.fetch("SELECT id FROM outbox ORDER BY id")] == [2, 3, 4]
        assert await asked.clean(await here(asked, position)) == 3
    finally:
        await late.close()


async def test_the_lock_is_of_one_relay(dsn: str, database: Any) -> None:
    import asyncpg

    other = await asyncpg.connect(dsn)
    await database.execute("CREATE TABLE another (id int)")
    try:
        assert await Database(database, OUTBOX).try_lock("a")
        holder = await Database(database, OUTBOX).process()
        assert await Database(other, OUTBOX).sees_lock("a", holder)
        assert not await Database(other, OUTBOX).sees_lock("b", holder)
        assert not await Database(other, OUTBOX).sees_lock("a", holder + 1)
        assert not await Database(other, Outbox("another")).sees_lock("a", holder)
        assert not await Database(other, OUTBOX).try_lock("a")
        assert not await Database(other, Outbox("public.outbox")).try_lock("a")
        assert await Database(other, OUTBOX).try_lock("b")
        assert await Database(other, Outbox("another")).try_lock("a")
    finally:
        await other.close()


async def test_ids_that_were_drawn(database: Any) -> None:
    asked = Database(database, OUTBOX)
    assert await asked.drawn() == 0
    await OUTBOX.write(database, "t", b"1")
    assert await asked.drawn() == 1
    await database.execute("ALTER SEQUENCE outbox_id_seq RESTART WITH 5")
    assert await asked.drawn() == 4


async def test_rows_that_no_position_can_have(dsn: str, database: Any) -> None:
    """A transaction with the xid of the row has not ended here, or the id is below where positions begin."""
    import asyncpg

    asked = Database(database, OUTBOX)
    other = await asyncpg.connect(dsn)
    restamp = (
        "UPDATE outbox SET xid = pg_current_xact_id() WHERE NOT pg_visible_in_snapshot(xid, pg_current_snapshot())"
    )
    try:
        await OUTBOX.write(database, "t", b"1")
        await OUTBOX.write(database, "t", b"2")
        since = await here(asked, Position())
        # The one row was read already, the other one is new; one id will be assigned, the other one is assigned now.
        await database.execute("UPDATE outbox SET xid = (xid::text::bigint + 1000)::text::xid8 WHERE id = 2")
        with pytest.raises(PositionMismatchException, match='row 2 of "outbox" has the xid of a transaction that has'):
            await asked.window(since, 1, 1)
        assert await database.execute(restamp) == "UPDATE 1"
        assert [row.id for row in (await asked.window(since, 10, 100))[1].rows] == [2]
        await other.execute("BEGIN")
        xid = await other.fetchval("SELECT pg_current_xact_id()::text")
        await database.execute("INSERT INTO outbox (topic, xid) VALUES ('t', $1::text::xid8)", xid)
        assert (await database.fetchval("SELECT pg_current_snapshot()::text")).split(":")[2] == xid
        for position in (Position(), since):
            with pytest.raises(PositionMismatchException, match=r"row 3 .* UPDATE \"outbox\" SET xid"):
                await asked.window(position, 1, 1)
        assert await database.execute(restamp) == "UPDATE 1"
        assert await ids(asked, Progress().to(await here(asked, Position()))) == [1, 2, 3]
        await other.execute("ROLLBACK")
    finally:
        await other.close()
    await database.execute("INSERT INTO outbox (id, topic) OVERRIDING SYSTEM VALUE VALUES (0, 't'), (-7, 't')")
    with pytest.raises(PositionMismatchException, match=r"row -7 of \"outbox\" has an id below 1") as caught:
        await asked.window(since, 10, 100)
    await database.execute(str(caught.value).partition("new ids: ")[2])
    position = await here(asked, since)
    assert position.last == 5
    await database.execute("INSERT INTO outbox (id, xid, topic) OVERRIDING SYSTEM VALUE VALUES (0, '3', 't')")
    assert await asked.clean(position) == 5, "no position has a row with the id 0"


@pytest.mark.conformance
async def test_transaction_ids_that_a_crash_frees() -> None:
    """Nothing of a transaction that aborts is flushed. A server that is killed may therefore assign its id again, to a
    transaction that commits; the position must not take its rows for relayed ones."""
    import asyncpg

    require_postgresql()
    quiet: dict[str, str | int] = {"wal_writer_delay": 10_000, "bgwriter_delay": 10_000, "autovacuum": "off"}
    with Postgresql(settings=quiet) as server:
        connection = await asyncpg.connect(server.dsn())
        await connection.execute(OUTBOX.schema())
        try:
            for _ in range(10):  # something else may have flushed the log meanwhile
                await OUTBOX.write(connection, "t", b"before")
                for _ in range(50):
                    await connection.execute("BEGIN; SELECT pg_current_xact_id(); ROLLBACK")
                position = await here(Database(connection, OUTBOX), Position())
                server.kill()
                connection.terminate()
                server.start_again()
                connection = await asyncpg.connect(server.dsn())
                await OUTBOX.write(connection, "t", b"after")
                xid, row_id = await connection.fetchrow(
                    "SELECT xid::text::bigint, id FROM outbox ORDER BY id DESC LIMIT 1"
                )
                if position.snapshot.sees(xid):
                    break
            else:
                pytest.fail("the server has assigned no transaction id again: this shows nothing")
            database = Database(connection, OUTBOX)
            window = Progress(position).to(await here(database, position))
            assert await ids(database, window) == [row_id]
            assert await database.drawn() >= position.last
        finally:
            await connection.close()
