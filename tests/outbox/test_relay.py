"""The relay between real PostgreSQL and an embedded cluster."""

from __future__ import annotations

import asyncio
import io
import itertools
from random import Random
from typing import Any

import pytest

from aioproducer import TopicPartition
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ConfigException, IllegalArgumentException, IllegalStateException
from aioproducer.outbox import (
    MissingPositionException,
    Outbox,
    OutboxRelay,
    OutboxSchemaException,
    PositionMismatchException,
    RowRefusedException,
)
from aioproducer.outbox import marker as marker_module
from aioproducer.testing.postgresql import Postgresql
from tests.outbox.servers import read_committed, relayed, require_postgresql, running, until, until_sql
from tests.outbox.writers import OUTBOX, Writers, assert_complete
from tests.support.leaks import no_leaks as no_leaks

NAME = "aioproducer-outbox"
POSITION = TopicPartition(NAME, 0)


def relay_of(dsn: Any, cluster: EmbeddedCluster, **more: Any) -> OutboxRelay:
    quick = {"poll_interval": 0.05, "standby_interval": 0.02, "clean_up_interval": 0.02, "longest_wait": 0.1}
    return OutboxRelay(dsn, bootstrap_servers=cluster.bootstrap_servers, **{**quick, **more})


async def values(cluster: EmbeddedCluster, **more: Any) -> list[bytes | None]:
    return [record.value for record in await read_committed(cluster.bootstrap_servers, **more)]


@pytest.mark.usefixtures("no_leaks")
async def test_rows_become_records_and_are_deleted(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    relay = relay_of(dsn, cluster)
    async with running(relay) as task:
        async with database.transaction():
            await OUTBOX.write(database, "orders", b"1", key=b"k", headers=[("a", b"\xff"), ("a", None)], partition=2)
            await OUTBOX.write(database, "orders", None, key="k", partition=2)
        try:
            async with database.transaction():
                await OUTBOX.write(database, "orders", b"never")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        await OUTBOX.write(database, "orders", "3", partition=2)
        await relayed(relay, 3)
        await until(lambda: relay.metrics()["row-cleaned-total"] == 3)
        assert await database.fetchval("SELECT count(*) FROM outbox") == 0
        assert relay.metrics()["active"] == 1
        relay.stop()
        await task
    found = await read_committed(cluster.bootstrap_servers)
    assert [(record.value, record.key) for record in found] == [(b"1", b"k"), (None, b"k"), (b"3", None)]
    assert list(found[0].headers) == [("a", b"\xff"), ("a", None)]
    metrics = relay.metrics()
    figures = ("row-relayed-total", "row-dead-total", "lag-rows", "lag-age", "active", "restart-total")
    assert [metrics[name] for name in figures] == [3, 0, 0, 0, 0, 0]


async def test_a_notification_wakes_the_relay(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    relay = relay_of(dsn, cluster, poll_interval=3600)
    async with running(relay):
        await until(lambda: relay.metrics()["active"] == 1)
        for number in range(3):
            await OUTBOX.write(database, "orders", b"x")
            await relayed(relay, number + 1)


async def test_without_notifications_it_looks(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    await database.execute("DROP TRIGGER outbox_notify ON outbox")
    relay = relay_of(dsn, cluster)
    async with running(relay):
        await OUTBOX.write(database, "orders", b"x")
        await relayed(relay, 1)


async def test_a_late_commit_is_neither_skipped_nor_waited_for(
    dsn: str, database: Any, cluster: EmbeddedCluster
) -> None:
    import asyncpg

    relay = relay_of(dsn, cluster)
    late = await asyncpg.connect(dsn)
    try:
        async with running(relay):
            transaction = late.transaction()
            await transaction.start()
            await OUTBOX.write(late, "orders", b"late", partition=0)
            for number in range(3):
                await OUTBOX.write(database, "orders", b"%d" % number, partition=0)
                await relayed(relay, number + 1)
            assert await values(cluster) == [b"0", b"1", b"2"]
            await transaction.commit()
            await relayed(relay, 4)
            await until(lambda: relay.metrics()["row-cleaned-total"] == 4)
    finally:
        await late.close()
    assert await values(cluster) == [b"0", b"1", b"2", b"late"]


async def test_order_is_that_of_row_locks_when_transaction_ids_say_otherwise(
    dsn: str, database: Any, cluster: EmbeddedCluster
) -> None:
    """The one that locks the counter second has the lower transaction id, and a third one is open all the time: by
    transaction ids, or by what lies below the oldest open one, the second would come first."""
    import asyncpg

    first, second, third = [await asyncpg.connect(dsn) for _ in range(3)]
    await database.execute("INSERT INTO counters VALUES ('a', 0)")
    relay = relay_of(dsn, cluster, most_rows=1, clean_up=False)
    try:
        async with running(relay):
            for connection in (second, third, first):
                await connection.execute("BEGIN")
                await connection.fetchval("SELECT pg_current_xact_id()")
            await first.execute("UPDATE counters SET n = 1 WHERE key = 'a'")
            waiting = asyncio.create_task(second.execute("UPDATE counters SET n = 2 WHERE key = 'a'"))
            await OUTBOX.write(first, "orders", b"1", key=b"a")
            await first.execute("COMMIT")
            await waiting
            await OUTBOX.write(second, "orders", b"2", key=b"a")
            await second.execute("COMMIT")
            await relayed(relay, 2)
            await third.execute("COMMIT")
    finally:
        for connection in (first, second, third):
            await connection.close()
    rows = await database.fetch("SELECT xid::text::bigint AS xid FROM outbox ORDER BY id")
    assert rows[0]["xid"] > rows[1]["xid"]
    assert await values(cluster) == [b"1", b"2"]


@pytest.mark.parametrize("most_rows", [1, 7, 10_000])
async def test_concurrent_writers_in_order_while_relays_come_and_go(
    dsn: str, database: Any, cluster: EmbeddedCluster, most_rows: int
) -> None:
    """Two relays at a time; one of them is cancelled again and again, in the middle of whatever it does."""
    random = Random(most_rows)

    async def come_and_go() -> None:
        while True:
            relay = relay_of(dsn, cluster, most_rows=most_rows)
            async with running(relay):
                await asyncio.sleep(random.random() * 0.3)

    coming = [asyncio.create_task(come_and_go()) for _ in range(2)]
    try:
        await Writers(dsn, keys=8, seed=most_rows).run(connections=12, transactions=15)
    finally:
        for task in coming:
            task.cancel()
        await asyncio.wait(coming)
    last = relay_of(dsn, cluster)
    async with running(last):
        await until(lambda: last.metrics()["active"] == 1)
        await OUTBOX.write(database, "orders", b"1", key=b"the end")
        await database.execute("INSERT INTO counters VALUES ('the end', 1)")
        await relayed(last, 1)
        await until_sql(database, "SELECT count(*) = 0 FROM outbox")
    found = await read_committed(cluster.bootstrap_servers)
    assert await assert_complete(database, [(record.key, record.value) for record in found]) > 100


async def test_a_backlog_goes_in_bounded_transactions(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    await OUTBOX.write_many(
        database, [{"topic": "orders", "value": b"%04d" % n + b"x" * 1000, "partition": 0} for n in range(300)]
    )
    relay = relay_of(dsn, cluster, most_rows=50, most_bytes=20_000)
    async with running(relay):
        await relayed(relay, 300)
    assert relay.metrics()["commit-total"] == 15  # twenty rows of 1,004 bytes reach 20,000
    assert [value[:4] for value in await values(cluster) if value] == [b"%04d" % n for n in range(300)]


async def test_a_backlog_whose_pages_end_by_their_bytes(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    """The database measures headers otherwise than Python does: a page was once taken for the last one for that."""
    await OUTBOX.write_many(
        database,
        (
            {"topic": "orders", "value": b"%d" % n, "key": b"k", "partition": 0, "headers": {"h": "größe" * (n % 30)}}
            for n in range(300)
        ),
    )
    relay = relay_of(dsn, cluster, most_bytes=1000)
    async with running(relay):
        await relayed(relay, 300)
        await until_sql(database, "SELECT count(*) = 0 FROM outbox")
    assert await values(cluster) == [b"%d" % n for n in range(300)]
    assert relay.metrics()["commit-total"] > 20


async def test_the_position_goes_on_over_a_backlog_that_was_interrupted(
    dsn: str, database: Any, cluster: EmbeddedCluster
) -> None:
    await OUTBOX.write_many(database, [{"topic": "orders", "value": b"%d" % n, "partition": 0} for n in range(2000)])
    for _ in range(4):
        relay = relay_of(dsn, cluster, most_rows=10, clean_up=False)
        async with running(relay):
            await relayed(relay, 20)
    await OUTBOX.write(database, "orders", b"2000", partition=0)
    relay = relay_of(dsn, cluster, most_rows=10, clean_up=False)
    async with running(relay):
        await until_sql(database, "SELECT position LIKE '2001:%' FROM outbox_relays")
    assert await values(cluster) == [b"%d" % n for n in range(2001)]


async def test_a_standby_takes_over(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    first, second = relay_of(dsn, cluster), relay_of(dsn, cluster)
    async with running(first):
        await until(lambda: first.metrics()["active"] == 1)
        async with running(second):
            await OUTBOX.write(database, "orders", b"1")
            await relayed(first, 1)
            assert second.metrics()["active"] == 0
            first.stop()
            await OUTBOX.write(database, "orders", b"2")
            await until(lambda: second.metrics()["active"] == 1)
            await until(lambda: first.metrics()["row-relayed-total"] + second.metrics()["row-relayed-total"] == 2)


async def test_a_relay_that_has_lost_its_lock_is_fenced(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    """As if its connection was cut off where only the database noticed: another one begins, and this one goes on."""
    first, second = relay_of(dsn, cluster), relay_of(dsn, cluster)
    async with running(first):
        await until(lambda: first.metrics()["active"] == 1)
        await database.execute("SELECT pg_advisory_unlock_all()")
        held = await database.fetch("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")
        async with running(second):
            for number in range(20):
                await database.execute("SELECT pg_terminate_backend($1)", held[0]["pid"]) if number == 5 else None
                await OUTBOX.write(database, "orders", b"%d" % number, partition=0)
            await until(lambda: first.metrics()["row-relayed-total"] + second.metrics()["row-relayed-total"] >= 20)
    assert await values(cluster) == [b"%d" % number for number in range(20)]


async def test_a_row_that_cannot_be_sent_ends_the_relay(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    await OUTBOX.write(database, "orders", b"1", partition=0)
    await OUTBOX.write(database, "orders", b"x" * 2_000_000, partition=0)
    await OUTBOX.write(database, "orders", b"3", partition=0)
    relay = relay_of(dsn, cluster)
    with pytest.raises(RowRefusedException, match="row 2 of outbox, for the topic orders, cannot be sent") as caught:
        await relay.run()
    assert caught.value.row_id == 2
    assert await values(cluster) == [b"1"]
    await database.execute("DELETE FROM outbox WHERE id = 2")
    relay = relay_of(dsn, cluster)
    async with running(relay):
        await relayed(relay, 1)
    assert await values(cluster) == [b"1", b"3"]


async def test_rows_that_cannot_be_sent_become_dead_letters(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    cluster.create_topic("dead")
    cluster.create_topic("small", configs={"max.message.bytes": "500"})
    await OUTBOX.write(database, "orders", b"1", partition=0)
    await OUTBOX.write(database, "orders", b"x" * 2_000_000, key=b"large", partition=0)
    await OUTBOX.write(database, "small", b"y" * 600, key=b"for small", headers={"own": "kept"})
    await database.execute("INSERT INTO outbox (topic, value, headers) VALUES ('orders', 'z', '[1]')")
    await OUTBOX.write(database, "small", b"fits")
    await OUTBOX.write(database, "orders", b"6", partition=0)
    relay = relay_of(dsn, cluster, dead_letter_topic="dead")
    async with running(relay):
        await relayed(relay, 6)
        assert relay.metrics()["row-dead-total"] == 3
    assert await values(cluster) == [b"1", b"6"]
    assert await values(cluster, topic="small", partitions=1) == [b"fits"]
    dead = await read_committed(cluster.bootstrap_servers, "dead", 1)
    assert [(record.key, record.value) for record in dead] == [
        (None, None),
        (b"for small", b"y" * 600),
        (None, b"z"),
    ]
    headers = [dict(record.headers) for record in dead]
    assert [found["aioproducer.dead.row"] for found in headers] == [b"outbox/2", b"outbox/3", b"outbox/4"]
    assert [found["aioproducer.dead.topic"] for found in headers] == [b"orders", b"small", b"orders"]
    assert headers[1]["own"] == b"kept"
    assert headers[0]["aioproducer.dead.left-out"] == b"key: bytes of 5 bytes, value: bytes of 2000000 bytes"


async def test_rows_whose_dead_letters_must_leave_out_more(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    """Of what refuses a row, the topic of dead letters may refuse the same: timestamps, keys and headers."""
    bounds = {"max.message.bytes": "2000", "message.timestamp.after.max.ms": "3600000"}
    for topic in ("dead", "bounded"):
        cluster.create_topic(topic, configs=bounds)
    await database.execute(
        "INSERT INTO outbox (topic, key, value, created_at) VALUES ('bounded', 'k', 'v', '9000-01-01')"
    )
    await OUTBOX.write(database, "bounded", None, key=b"k" * 3000)
    await OUTBOX.write(database, "bounded", b"v", headers={"a": "x" * 3000, "b": "y"})
    await database.execute(
        "INSERT INTO outbox (topic, headers) VALUES ('bounded', (repeat('[', 3000) || repeat(']', 3000))::jsonb)"
    )
    await database.execute(
        "INSERT INTO outbox (topic, headers) VALUES ('bounded', ('{\"a\":' || repeat('9', 5000) || '}')::jsonb)"
    )
    await OUTBOX.write(database, "bounded", b"after")
    relay = relay_of(dsn, cluster, dead_letter_topic="dead")
    async with running(relay):
        await relayed(relay, 6)
        assert relay.metrics()["row-dead-total"] == 5
    assert await values(cluster, topic="bounded", partitions=1) == [b"after"]
    dead = await read_committed(cluster.bootstrap_servers, "dead", 1)
    headers = [{name.removeprefix("aioproducer.dead."): data for name, data in record.headers} for record in dead]
    assert [(record.key, record.value) for record in dead[:3]] == [(b"k", b"v"), (None, None), (None, None)]
    assert headers[0]["timestamp"] == b"221845392000000"
    assert headers[1]["left-out"] == b"key: bytes of 3000 bytes"
    assert headers[2]["left-out"] == b"2 headers"
    assert [found["row"] for found in headers] == [b"outbox/%d" % row_id for row_id in range(1, 6)]
    assert [(found["error"], found["left-out"]) for found in headers[3:]] == [
        (b"SerializationException", b"headers")
    ] * 2


async def test_a_refused_row_that_has_had_too_many_dead_letters(
    dsn: str, database: Any, cluster: EmbeddedCluster
) -> None:
    cluster.create_topic("small", configs={"max.message.bytes": "500"})
    await OUTBOX.write(database, "small", b"y" * 600, headers={"aioproducer.dead.deaths": "5"})
    with pytest.raises(RowRefusedException, match="it has had too many: RecordTooLargeException") as caught:
        await relay_of(dsn, cluster, dead_letter_topic="dead").run()
    assert caught.value.row_id == 1


async def test_more_columns_do_no_harm(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    await database.execute("ALTER TABLE outbox ADD more text, ADD bytes text, ADD octets text")
    await OUTBOX.write(database, "orders", b"1", partition=0)
    relay = relay_of(dsn, cluster)
    async with running(relay):
        await relayed(relay, 1)
    assert await values(cluster) == [b"1"]


async def test_a_refused_row_for_the_topic_of_dead_letters(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    await database.execute("INSERT INTO outbox (topic, headers) VALUES ('dead', '[1]')")
    with pytest.raises(RowRefusedException, match="the topic of dead letters can have none of its own"):
        await relay_of(dsn, cluster, dead_letter_topic="dead").run()


async def test_a_topic_that_does_not_exist_yet_is_waited_for(dsn: str, database: Any) -> None:
    async with EmbeddedCluster(configs={"auto.create.topics.enable": False}) as cluster:
        await OUTBOX.write(database, "later", b"1")
        relay = relay_of(dsn, cluster, max_block_ms=300)
        async with running(relay):
            await until(lambda: relay.metrics()["restart-total"] >= 1)
            cluster.create_topic("later")
            await relayed(relay, 1)
        assert await values(cluster, topic="later", partitions=1) == [b"1"]


async def test_a_position_without_a_database_that_fits(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    await OUTBOX.write_many(database, [{"topic": "orders", "value": b"%d" % n, "partition": 0} for n in range(5)])
    relay = relay_of(dsn, cluster, clean_up=False)
    async with running(relay):
        await relayed(relay, 5)
        await until_sql(database, "SELECT position LIKE '5:%' FROM outbox_relays")
    async with EmbeddedCluster() as other:
        other.create_topic("orders", 3)
        await database.execute("ALTER SEQUENCE outbox_id_seq RESTART WITH 3")
        for where, begin in ((cluster, "marker"), (cluster, "adopt"), (other, "adopt")):
            with pytest.raises(
                PositionMismatchException, match="row 5 was relayed, but the database has drawn ids only"
            ):
                await relay_of(dsn, where, begin=begin).run()
        await database.execute("ALTER SEQUENCE outbox_id_seq RESTART WITH 6")
        with pytest.raises(MissingPositionException, match="the group 'aioproducer-outbox' has no position"):
            await relay_of(dsn, other).run()
        adopting = relay_of(dsn, other, begin="adopt", clean_up=False)
        async with running(adopting):
            await OUTBOX.write(database, "orders", b"5", partition=0)
            await relayed(adopting, 1)
        assert await values(other) == [b"5"]
        anew = relay_of(dsn, other, begin="anew", clean_up=False)
        async with running(anew):
            await relayed(anew, 6)
            await database.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
            await until(lambda: anew.metrics()["restart-total"] == 1 and anew.metrics()["active"] == 1)
            await OUTBOX.write(database, "orders", b"6", partition=0)
            await relayed(anew, 7)
        assert (await values(other))[1:] == [b"%d" % n for n in range(7)], "anew only once"


async def test_rows_of_a_server_with_higher_transaction_ids(postgresql: Any, database: Any, cluster: Any) -> None:
    """A table restored into a new server, as pg_dump does it: no row may be relayed in one window after the other."""
    import asyncpg

    columns = ["id", "xid", "created_at", "topic", "partition", "key", "value", "headers"]
    dump = io.BytesIO()
    with Postgresql() as new:
        restored = await asyncpg.connect(new.dsn())
        try:
            await restored.execute(OUTBOX.schema())
            ahead = await restored.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint") + 1_000
            while int(await database.fetchval("SELECT pg_current_xact_id()::text")) < ahead:
                pass
            await OUTBOX.write_many(database, [{"topic": "orders", "value": b"%d" % n} for n in range(5)])
            await database.copy_from_table("outbox", output=dump, columns=columns)
            dump.seek(0)
            await restored.copy_to_table("outbox", source=dump, columns=columns)
            await restored.execute("SELECT setval('outbox_id_seq', 5)")
            for begin in ("anew", "marker"):
                with pytest.raises(
                    PositionMismatchException, match="of a transaction that has not ended in this"
                ) as no:
                    await relay_of(new.dsn(), cluster, begin=begin).run()
            assert await values(cluster) == []
            await restored.execute(str(no.value).partition("of this database: ")[2])
            relay = relay_of(new.dsn(), cluster)
            async with running(relay):
                await OUTBOX.write(restored, "orders", b"new")
                await relayed(relay, 6)
                await until_sql(restored, "SELECT count(*) = 0 FROM outbox")
        finally:
            await restored.close()
    assert sorted(map(bytes, filter(None, await values(cluster)))) == [b"0", b"1", b"2", b"3", b"4", b"new"]


async def test_rows_of_another_database_while_it_relays(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    relay = relay_of(dsn, cluster)
    task = asyncio.create_task(relay.run())
    await OUTBOX.write(database, "orders", b"1", partition=0)
    await relayed(relay, 1)
    async with database.transaction():  # none of these is relayed, whatever its id
        await OUTBOX.write(database, "orders", b"2", partition=0)
        await database.execute("UPDATE outbox SET xid = (xid::text::bigint + 1000)::text::xid8 WHERE id = 2")
        await OUTBOX.write(database, "orders", b"3", partition=0)
    with pytest.raises(PositionMismatchException, match="row 2 of "):
        await task
    assert await values(cluster) == [b"1"]
    assert await database.fetchval("SELECT array_agg(id ORDER BY id) FROM outbox WHERE id > 1") == [2, 3]
    await database.execute("UPDATE outbox SET xid = pg_current_xact_id() WHERE id = 2")
    relay = relay_of(dsn, cluster)
    async with running(relay):
        await relayed(relay, 2)
    assert await values(cluster) == [b"1", b"2", b"3"]


async def test_a_second_connection_that_leads_elsewhere(
    dsn: str, database: Any, cluster: EmbeddedCluster, postgresql: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """An address with several servers: no row is deleted where this relay has no lock."""
    import asyncpg

    await database.execute("CREATE DATABASE elsewhere")
    there = await asyncpg.connect(postgresql.dsn("elsewhere"))
    addresses = itertools.cycle([dsn, postgresql.dsn("elsewhere")])
    try:
        await there.execute(OUTBOX.schema())
        for connection in (there, database):
            await OUTBOX.write(connection, "orders", b"1")
        relay = relay_of(lambda: asyncpg.connect(next(addresses)), cluster)
        async with running(relay):
            await until(lambda: relay.metrics()["restart-total"] >= 2)
        assert "it leads to another server or database" in caplog.text
        for connection in (there, database):
            assert await connection.fetchval("SELECT count(*) FROM outbox") == 1
    finally:
        await there.close()


@pytest.mark.conformance
async def test_two_phase_commit(cluster: EmbeddedCluster) -> None:
    """NOTIFY and PREPARE TRANSACTION exclude each other; without the trigger it is a late commit as any other."""
    import asyncpg

    require_postgresql()
    with Postgresql(settings={"max_prepared_transactions": 10}) as server:
        connection = await asyncpg.connect(server.dsn())
        try:
            await connection.execute(OUTBOX.schema())
            await connection.execute("BEGIN")
            await OUTBOX.write(connection, "orders", b"never")
            with pytest.raises(asyncpg.FeatureNotSupportedError, match="NOTIFY"):
                await connection.execute("PREPARE TRANSACTION 'a'")
            await connection.execute("DROP TRIGGER outbox_notify ON outbox")
            await connection.execute("BEGIN")
            await OUTBOX.write(connection, "orders", b"prepared", partition=0)
            await connection.execute("PREPARE TRANSACTION 'a'")
            relay = relay_of(server.dsn(), cluster)
            async with running(relay):
                await OUTBOX.write(connection, "orders", b"1", partition=0)
                await relayed(relay, 1)
                server.kill()
                connection.terminate()
                await asyncio.to_thread(server.start_again)
                connection = await asyncpg.connect(server.dsn())
                await OUTBOX.write(connection, "orders", b"2", partition=0)
                await relayed(relay, 2)
                await connection.execute("COMMIT PREPARED 'a'")
                await relayed(relay, 3)
                await until_sql(connection, "SELECT count(*) = 0 FROM outbox")
        finally:
            connection.terminate()
    assert await values(cluster) == [b"1", b"2", b"prepared"]


async def test_a_position_of_another_table(dsn: str, database: Any, cluster: EmbeddedCluster, postgresql: Any) -> None:
    import asyncpg

    relay = relay_of(dsn, cluster)
    async with running(relay):
        await OUTBOX.write(database, "orders", b"1", partition=0)
        await relayed(relay, 1)
    another = Outbox("another")
    await database.execute(another.schema())
    with pytest.raises(PositionMismatchException, match="belongs to table "):
        await relay_of(dsn, cluster, outbox=another).run()
    await database.execute("CREATE DATABASE another")
    connection = await asyncpg.connect(postgresql.dsn("another"))
    try:
        await connection.execute(OUTBOX.schema())
        with pytest.raises(PositionMismatchException, match="belongs to table "):
            await relay_of(postgresql.dsn("another"), cluster).run()
    finally:
        await connection.close()
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        committed = await admin.list_consumer_group_offsets(NAME, [POSITION])
    marker = committed[POSITION]
    assert marker is not None
    assert marker.offset == 1


async def test_the_position_is_committed_again_before_it_expires(
    dsn: str, database: Any, cluster: EmbeddedCluster
) -> None:
    relay = relay_of(dsn, cluster, refresh_interval=0.1)
    async with running(relay):
        await until(lambda: relay.metrics()["active"] == 1)
        before = relay.metrics()["txn-commit-time-ns-total"]
        await until(lambda: relay.metrics()["txn-commit-time-ns-total"] > before)
    assert relay.metrics()["commit-total"] == 0


async def test_what_the_relay_needs_of_the_table(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    for sql, words in [
        ("ALTER SEQUENCE outbox_id_seq CACHE 20", "has a sequence with CACHE 20;"),
        (
            "ALTER SEQUENCE outbox_id_seq CACHE 1 MINVALUE -9 INCREMENT -1 CYCLE",
            "has a sequence with INCREMENT -1 and CYCLE and MINVALUE -9; it must be an identity that counts up from 1",
        ),
        ("ALTER SEQUENCE outbox_id_seq MINVALUE 1 INCREMENT 1 CACHE 9", "has a sequence with CACHE 9 and CYCLE;"),
        ("ALTER TABLE outbox ALTER id DROP IDENTITY", "the column id of outbox has no sequence"),
        ("ALTER TABLE outbox ALTER value TYPE text USING ''", "the column value of outbox is text; it must be bytea"),
        ("ALTER TABLE outbox DROP key", "the column key of outbox is missing; it must be bytea"),
        ("DROP TABLE outbox", "there is no table outbox: make it with the SQL"),
    ]:
        await database.execute(sql)
        with pytest.raises(OutboxSchemaException, match=words):
            await relay_of(dsn, cluster).run()


async def test_a_database_that_refuses(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    with pytest.raises(OutboxSchemaException, match='database "nosuch" does not exist'):
        await relay_of(dsn.rpartition("/")[0] + "/nosuch", cluster).run()
    await database.execute("CREATE USER plain")
    as_plain = dsn.replace("postgres@", "plain@")
    with pytest.raises(OutboxSchemaException, match="permission denied for table outbox"):
        await relay_of(as_plain, cluster).run()
    await database.execute("GRANT SELECT, DELETE ON outbox TO plain")
    await database.execute("GRANT SELECT, INSERT, UPDATE ON outbox_relays TO plain")
    await database.execute("GRANT SELECT ON SEQUENCE outbox_id_seq TO plain")
    await database.execute("ALTER TABLE outbox ENABLE ROW LEVEL SECURITY")
    with pytest.raises(OutboxSchemaException, match="policies of row security hide rows of outbox from the relay"):
        await relay_of(as_plain, cluster).run()
    await database.execute("ALTER TABLE outbox DISABLE ROW LEVEL SECURITY")
    relay = relay_of(as_plain, cluster)
    async with running(relay):
        await OUTBOX.write(database, "orders", b"1", partition=0)
        await relayed(relay, 1)
        await until(lambda: relay.metrics()["row-cleaned-total"] == 1)


async def test_a_connection_of_the_users_own(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    import asyncpg

    relay = relay_of(lambda: asyncpg.connect(dsn), cluster)
    async with running(relay):
        await OUTBOX.write(database, "orders", b"1", partition=0)
        await relayed(relay, 1)
        with pytest.raises(IllegalStateException, match="the relay runs already"):
            await relay.run()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": ""}, "name is empty"),
        ({"position_topic": ""}, "position_topic is empty"),
        ({"begin": "never"}, "begin is 'never'; it must be one of marker, adopt, anew"),
        ({"most_rows": 0}, "most_rows is 0; it must be 1 or more"),
        ({"most_bytes": 0}, "most_bytes is 0"),
        ({"poll_interval": 0}, "poll_interval is 0; it must be more than 0 seconds"),
        ({"transactional_id": "mine"}, "transactional.id cannot be given to a relay: it is the name of the relay"),
        ({"value_serializer": str.encode}, "value.serializer cannot be given to a relay"),
        ({"no_such": 1}, "no.such"),
        ({"bootstrap_servers": "user:planted@localhost:9092"}, "an address with an @, which is not shown"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((IllegalArgumentException, ConfigException), match=words):
        OutboxRelay("postgresql://localhost/x", **{"bootstrap_servers": "localhost:9092", **arguments})


@pytest.mark.parametrize(
    "address",
    [
        "mysql://localhost/x",
        "postgresql://u:PLANTED#x@h/x",
        "postgresql://u:PLANTED/x@h/x",
        "postgresql://u:x?PLANTED@h",
    ],
)
async def test_a_wrong_address_of_the_database_is_not_shown(address: str) -> None:
    with pytest.raises(ConfigException, match="the address of the database is wrong, and is not shown") as raised:
        await OutboxRelay(address, bootstrap_servers="localhost:9092").run()
    assert "PLANTED" not in str(raised.value)


async def test_too_many_open_transactions_for_a_marker_are_waited_for(
    dsn: str,
    database: Any,
    cluster: EmbeddedCluster,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(marker_module, "MOST_BYTES", 10)
    relay = relay_of(dsn, cluster)
    async with running(relay):
        await OUTBOX.write(database, "orders", b"1", partition=0)
        await until(lambda: "too many for a marker; rows wait until there are fewer" in caplog.text)
        assert await values(cluster) == []
        monkeypatch.setattr(marker_module, "MOST_BYTES", 4096)
        await relayed(relay, 1)
    assert await values(cluster) == [b"1"]
