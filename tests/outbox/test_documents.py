"""What docs/outbox.md shows is so: its Python and its SQL run."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.outbox import Outbox, OutboxRelay, PositionMismatchException
from aioproducer.testing.postgresql import Postgresql
from tests.outbox.servers import read_committed, relayed, running, until_sql

TEXT = (Path(__file__).parents[2] / "docs" / "outbox.md").read_text("utf-8")


def block(language: str, beginning: str) -> str:
    """The block that begins so."""
    (found,) = re.findall(rf"^```{language}\n({re.escape(beginning)}.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.mark.conformance
def test_every_block_is_tested_here() -> None:
    source = Path(__file__).read_text("utf-8")
    beginnings = [ast.literal_eval(found) for found in re.findall(r"block\((\"\w+\", .*?[\"'])\)", source)]
    for found in re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE):
        assert any(found[0] == language and found[1].startswith(words) for language, words in beginnings), found[1]


@pytest.mark.conformance
def test_the_table_is_the_schema() -> None:
    assert Outbox().schema().startswith(block("sql", 'CREATE TABLE "outbox"'))


async def test_the_migration(dsn: str) -> None:
    import asyncpg
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from sqlalchemy.ext.asyncio import create_async_engine

    names: dict[str, Any] = {}
    exec(block("python", "from alembic import op"), names)

    def migrate(connection: Any, step: str) -> None:
        with Operations.context(MigrationContext.configure(connection)):
            names[step]()

    connection = await asyncpg.connect(dsn)
    engine = create_async_engine(dsn.replace("postgresql", "postgresql+psycopg"))
    try:
        for step, there in (("upgrade", True), ("downgrade", False), ("upgrade", True)):
            async with engine.begin() as migrated:
                await migrated.run_sync(migrate, step)
            assert await connection.fetchval("SELECT to_regclass('outbox') IS NOT NULL") is there
    finally:
        await engine.dispose()
        await connection.close()


async def test_rows_of_a_service_are_relayed(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    await database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, state text)")
    await database.execute("INSERT INTO orders VALUES (1, 'new'), (2, 'new')")
    names: dict[str, Any] = {}
    exec(block("python", "from aioproducer.outbox import Outbox\n"), names)
    exec(block("python", "async def pay_with_sqlalchemy"), names)
    await names["pay"](database, 1)
    engine = create_async_engine(dsn.replace("postgresql", "postgresql+asyncpg"))
    try:
        await names["pay_with_sqlalchemy"](lambda: AsyncSession(engine), 2)
    finally:
        await engine.dispose()
    assert await database.fetchval("SELECT count(*) FROM orders WHERE state = 'paid'") == 2
    lag = await database.fetchrow(block("sql", "SELECT count(*) AS rows"))
    assert lag["rows"] == 2
    assert lag["age"].total_seconds() >= 0

    code = block("python", "import asyncio\n")
    code = code.replace("postgresql://localhost/shop", dsn).replace("localhost:9092", cluster.bootstrap_servers)
    exec(code.replace("...  # the service", "await service()"), names)
    names["service"] = lambda: until_sql(database, "SELECT count(*) = 0 FROM outbox")
    await names["serve"]()
    found = await read_committed(cluster.bootstrap_servers)
    assert sorted((record.key, record.value) for record in found) == [(b"1", b"paid"), (b"2", b"paid")]


async def test_rows_that_are_kept_and_partitions(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    """On a partitioned table the relay works as on any other."""
    await database.execute("DROP TABLE outbox")
    await database.execute("CREATE SEQUENCE outbox_ids")
    table = block("sql", 'CREATE TABLE "outbox"').replace(
        "GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "DEFAULT nextval('outbox_ids')"
    )
    table = re.sub(
        r"\n\) WITH \(.*?\);", ",\n    PRIMARY KEY (id, created_at)\n) PARTITION BY RANGE (created_at);", table
    )
    await database.execute(table + "ALTER SEQUENCE outbox_ids OWNED BY outbox.id")
    await database.execute("CREATE TABLE outbox_2026_11 PARTITION OF outbox DEFAULT")
    outbox = Outbox()
    await outbox.write_many(database, [{"topic": "orders", "value": b"%d" % n, "partition": 0} for n in range(10)])
    quick: dict[str, Any] = {"clean_up_interval": 0.02, "poll_interval": 0.05}
    relay = OutboxRelay(dsn, bootstrap_servers=cluster.bootstrap_servers, clean_up=False, most_rows=3, **quick)
    drop = block("sql", "BEGIN;\nLOCK TABLE").splitlines()
    question = " ".join(drop[2:4])
    async with running(relay):
        await relayed(relay, 10)
        await until_sql(database, "SELECT last_id = 10 FROM outbox_relays")
        assert await database.fetchval(question) is True
    delete = block("sql", "DELETE FROM outbox o")
    assert await database.execute(delete) == "DELETE 0", "they are not old enough"
    assert await database.execute(delete.replace("'7 days'", "'0'")) == "DELETE 10"
    await outbox.write(database, "orders", b"not relayed")
    assert await database.fetchval(question) is False
    assert await database.execute(delete.replace("'7 days'", "'0'")) == "DELETE 0"
    await database.execute("\n".join(drop))
    assert [record.value for record in await read_committed(cluster.bootstrap_servers)] == [
        b"%d" % n for n in range(10)
    ]


async def test_rows_that_were_restored(dsn: str, database: Any, cluster: EmbeddedCluster) -> None:
    await Outbox().write(database, "orders", b"restored")
    await database.execute("UPDATE outbox SET xid = (xid::text::bigint + 1000)::text::xid8")
    statement = block("sql", "UPDATE outbox SET xid")
    relay = OutboxRelay(dsn, bootstrap_servers=cluster.bootstrap_servers, begin="anew")
    with pytest.raises(PositionMismatchException) as ended:
        await relay.run()
    assert str(ended.value).replace('"', "").endswith(f": {statement.strip().rstrip(';')}")
    await database.execute(statement)
    async with running(relay):
        await relayed(relay, 1)


def test_the_example(postgresql: Postgresql) -> None:
    examples = Path(__file__).parents[2] / "examples"
    run = subprocess.run(
        [sys.executable, "-W", "error", str(examples / "outbox.py")],
        capture_output=True,
        text=True,
        timeout=50,
        env={
            "PYTHONPATH": os.pathsep.join([str(examples), *filter(None, sys.path)]),
            "OUTBOX_DATABASE": postgresql.dsn(),
        },
        check=False,
    )
    assert run.returncode == 0, run.stderr
    states = [f"order {order}: {state}" for order in range(4) for state in ("new", "paid", "shipped")]
    assert run.stdout.splitlines() == [
        *(line for line in states if line not in ("order 1: shipped", "order 3: shipped")),
        "10 rows relayed",
    ]
