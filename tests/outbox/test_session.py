"""A session on a real database, with a Kafka that only remembers: which rows are relayed, and which are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aioproducer.outbox import Outbox
from aioproducer.outbox import marker as marker_module
from aioproducer.outbox.database import Database
from aioproducer.outbox.marker import Marker
from aioproducer.outbox.position import Position, Progress, Snapshot
from aioproducer.outbox.relay_config import RelayConfig
from aioproducer.outbox.relay_metrics import RelayMetrics
from aioproducer.outbox.row import Row
from aioproducer.outbox.session import Session

OUTBOX = Outbox()

TEXTS = st.sampled_from(["", "a", "ä€😀", "x" * 50, "€" * 300, "😀" * 2_000])  # of one to four bytes a character
HEADERS = st.none() | st.dictionaries(TEXTS, st.none() | TEXTS | st.just(b"\xff" * 90), max_size=3)
BYTES = st.none() | st.sampled_from([0, 1, 10, 1_000, 20_000]).map(lambda size: b"v" * size)
ROWS = st.lists(st.fixed_dictionaries({"value": BYTES, "key": BYTES, "headers": HEADERS}), max_size=12)


class Kafka:
    """Commits everything, and may fail or be told to stop after any transaction."""

    def __init__(self) -> None:
        self.relayed: list[int] = []
        self.marker: Marker | None = None
        self.left = 0
        """Transactions until it fails."""

    async def mark(self, marker: Marker) -> None:
        self.marker = marker

    async def commit(self, rows: Sequence[Row], marker_at: Callable[[Row], Marker]) -> int:
        if self.left == 0:
            raise ConnectionError
        self.left -= 1
        self.relayed += [row.id for row in rows]
        self.marker = Marker.read(marker_at(rows[-1]).as_offset(), "n")
        return 0


def config_of(*, most_rows: int = 100, most_bytes: int = 1_000_000) -> RelayConfig:
    times = dict.fromkeys(
        ("poll_interval", "clean_up_interval", "standby_interval", "refresh_interval", "longest_wait"), 1.0
    )
    return RelayConfig(
        name="n",
        position_topic="p",
        dead_letter_topic=None,
        clean_up=True,
        most_rows=most_rows,
        most_bytes=most_bytes,
        **times,
    )


def session_of(config: RelayConfig, database: Database, kafka: Kafka) -> Session:
    return Session(config, database, "t", kafka, RelayMetrics("n"), asyncio.Event())  # type: ignore[arg-type]


async def relay_all(database: Database, kafka: Kafka, config: RelayConfig, random: Random) -> Session:
    """Relays until a window is empty, with a new session, from the marker, after a few transactions."""
    while True:
        session = session_of(config, database, kafka)
        await session.begin(kafka.marker, "marker")
        kafka.left = random.choice([1, 2, 3, 1_000])
        try:
            while await session._window(lambda: False):
                pass
            return session
        except ConnectionError:
            pass


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    late=ROWS,
    rounds=st.lists(ROWS, min_size=1, max_size=3),
    most_rows=st.sampled_from([1, 2, 3, 11, 12, 13, 10_000]),
    most_bytes=st.sampled_from([1, 2, 50, 1_000, 2_020, 41_000, 8_000_000]),
    seed=st.integers(0, 1_000),
)
def test_whatever_the_sizes_every_row_is_relayed_once_and_no_other_is_deleted(
    dsn: str,
    late: list[dict[str, Any]],
    rounds: list[list[dict[str, Any]]],
    most_rows: int,
    most_bytes: int,
    seed: int,
) -> None:
    config = config_of(most_rows=most_rows, most_bytes=most_bytes)

    async def run() -> None:
        import asyncpg

        connection, other = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
        try:
            await connection.execute("DROP TABLE IF EXISTS outbox, outbox_relays")
            await connection.execute(OUTBOX.schema(notify=False))
            database, kafka, random = Database(connection, OUTBOX), Kafka(), Random(seed)
            await other.execute("BEGIN")
            for number, rows in enumerate(rounds):
                await OUTBOX.write_many(other, ({"topic": "t", **row} for row in late))
                await OUTBOX.write_many(connection, ({"topic": "t", **row} for row in rows))
                if number == len(rounds) - 1:
                    await other.execute("COMMIT")
                written = {row["id"] for row in await connection.fetch("SELECT id FROM outbox")}
                session = await relay_all(database, kafka, config, random)
                assert len(kafka.relayed) == len(set(kafka.relayed))
                assert written <= set(kafka.relayed)
                await database.clean(session.committed)
                there = {row["id"] for row in await connection.fetch("SELECT id FROM outbox")}
                assert written - there <= set(kafka.relayed), "what was not relayed is not deleted"
            assert len(kafka.relayed) == sum(map(len, rounds)) + len(rounds) * len(late)
            assert there == set()
        finally:
            await connection.close()
            await other.close()

    asyncio.run(run())


async def test_the_copy_of_the_position_follows_late_rows(dsn: str, database: Any) -> None:
    """It says which rows are relayed and settled, also if no id above the last one comes. Then it stays."""
    import asyncpg

    late, cleaning, holding = [await asyncpg.connect(dsn) for _ in range(3)]
    kafka = Kafka()
    kafka.left = 100
    config = replace(config_of(), clean_up=False, clean_up_interval=0.01)
    session = session_of(config, Database(database, OUTBOX), kafka)
    settled = "SELECT count(*) FROM outbox, outbox_relays WHERE id <= last_id AND xid < settled_xid"
    await session.begin(None, "marker")
    task = asyncio.create_task(session.clean(Database(cleaning, OUTBOX)))

    async def becomes(question: str, answer: object) -> None:
        async with asyncio.timeout(30):
            while await database.fetchval(question) != answer:
                assert not await session._window(lambda: False)
                await asyncio.sleep(0.01)

    try:
        await late.execute("BEGIN")
        await OUTBOX.write(late, "t", b"late")
        await OUTBOX.write(database, "t", b"last")
        assert await session._window(lambda: False)
        await becomes("SELECT last_id FROM outbox_relays", 2)
        assert await database.fetchval(settled) == 0
        await holding.execute("BEGIN")
        await holding.execute("SELECT pg_current_xact_id()")
        await late.execute("COMMIT")
        assert await session._window(lambda: False)
        assert kafka.relayed == [2, 1]
        await becomes(settled, 2)
        left = Position.unpack(await database.fetchval("SELECT position FROM outbox_relays"))
        assert left.has(1, int(await database.fetchval("SELECT xid::text FROM outbox WHERE id = 1")))
        await holding.execute("COMMIT")
        await becomes(
            "SELECT settled_xid >= (SELECT max(xid::text::bigint) FROM outbox)::text::xid8 FROM outbox_relays", True
        )
        before = await database.fetchval("SELECT xmin::text FROM outbox_relays")
        for _ in range(10):
            await database.execute("SELECT pg_current_xact_id()")
            assert not await session._window(lambda: False)
            await asyncio.sleep(0.03)
        assert await database.fetchval("SELECT xmin::text FROM outbox_relays") == before
    finally:
        task.cancel()
        await asyncio.wait([task])
        for connection in (late, cleaning, holding):
            await connection.close()


async def test_rows_that_vanish_between_two_pages(database: Any) -> None:
    """A page says that a row follows, and someone deletes it before it is read: the next window begins."""
    asked, kafka = Database(database, OUTBOX), Kafka()
    await OUTBOX.write_many(database, ({"topic": "t", "value": b"%d" % n} for n in range(4)))
    session = session_of(config_of(most_rows=2), asked, kafka)
    await session.begin(None, "marker")
    kafka.left = 1
    with pytest.raises(ConnectionError):
        await session._window(lambda: False)
    await database.execute("DELETE FROM outbox WHERE id > 2")
    again = session_of(config_of(most_rows=2), asked, kafka)
    await again.begin(kafka.marker, "marker")
    assert not await again._window(lambda: False)
    await OUTBOX.write(database, "t", b"new")
    kafka.left = 1
    assert await again._window(lambda: False)
    assert kafka.relayed == [1, 2, 5]


def test_a_window_fits_with_the_longest_of_its_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker grows with the id of the row that was last relayed; a broker would refuse it in the middle."""
    window = Progress().to(Position(10**9, Snapshot(5, 9, (6,))))
    session = session_of(config_of(), None, Kafka())  # type: ignore[arg-type]
    shortest, longest = (len(Marker("t", window.past(at)).as_offset().metadata) for at in (0, 10**9))
    monkeypatch.setattr(marker_module, "MOST_BYTES", shortest)
    assert not session._fits(window)
    monkeypatch.setattr(marker_module, "MOST_BYTES", longest)
    assert session._fits(window)
