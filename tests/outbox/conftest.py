"""Real PostgreSQL, started when a test first wants it; every test has a database of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.outbox import Outbox
from aioproducer.testing.postgresql import Postgresql
from tests.outbox.servers import require_postgresql

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the database runs where real Kafka does."""
    for item in items:
        if "postgresql" in getattr(item, "fixturenames", ()):
            item.add_marker("conformance")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    require_postgresql()
    with Postgresql() as server:
        yield server


@pytest.fixture
async def dsn(postgresql: Postgresql) -> str:
    """The address of an empty database."""
    import asyncpg

    name = f"test{next(_numbers)}"
    connection = await asyncpg.connect(postgresql.dsn())
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return postgresql.dsn(name)


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Any]:
    """A connection of asyncpg to a database with the tables of ``Outbox()``, and a table of counters."""
    import asyncpg

    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(Outbox().schema())
        await connection.execute("CREATE TABLE counters (key text PRIMARY KEY, n int NOT NULL)")
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", 3)
        yield cluster
