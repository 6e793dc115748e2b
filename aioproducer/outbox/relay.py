"""The relay as its users see it: it waits for its turn, relays, and begins anew after errors."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from random import Random
from typing import Any, Final, Unpack

from aioproducer.admin import AdminConfig, KafkaAdmin
from aioproducer.config_types import ProducerConfigs
from aioproducer.configs.producer_config import ProducerConfig, known_to, producer_config
from aioproducer.errors import (
    AuthenticationException,
    AuthorizationException,
    ConfigException,
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
)
from aioproducer.metrics import MetricsSnapshot
from aioproducer.net.addresses import parse_addresses
from aioproducer.outbox.database import Connect, Database, connected, database_errors, refusals
from aioproducer.outbox.errors import OutboxException, OutboxSchemaException
from aioproducer.outbox.outbox import Outbox
from aioproducer.outbox.relay_config import Begin, RelayConfig, check_begin
from aioproducer.outbox.relay_metrics import RelayMetrics
from aioproducer.outbox.session import Session
from aioproducer.outbox.transaction import Transactions
from aioproducer.producer.producer import KafkaProducer
from aioproducer.tasks.own_task import start_task
from aioproducer.timing.backoff import ExponentialBackoff
from aioproducer.timing.clock import Clock, SystemClock

log = logging.getLogger(__name__)

FIRST_WAIT_MS: Final = 100

_LASTING: Final = (
    OutboxException,
    ConfigException,
    IllegalArgumentException,
    IllegalStateException,
    AuthenticationException,
    AuthorizationException,
)
"""Errors that a new beginning would meet again."""


class OutboxRelay:
    """Relays the rows of an outbox table to Kafka: in commit order for each key, exactly once.

    ::

        relay = OutboxRelay("postgresql://localhost/shop", bootstrap_servers="localhost:9092")
        await relay.run()

    ``database``: the address of a PostgreSQL database, or a coroutine function that makes a connection of asyncpg. The
    relay needs connections of its own: no pool that shares them between sessions.

    ``name``: the ``transactional.id``, and the group that has the position for partition 0 of ``position_topic``, which
    is made if it does not exist. Any number of relays of one name may run: one has the lock in the database and relays,
    the others stand by. If two relay nevertheless, Kafka fences one of them.

    ``dead_letter_topic`` gets the records of rows that cannot be sent; without it such a row ends :meth:`run`. With
    ``clean_up`` relayed rows are deleted. ``most_rows`` and ``most_bytes`` bound a transaction. ``begin`` is how to get
    over MissingPositionException and PositionMismatchException, whose messages say which one to choose.

    Other arguments are configs of the producer. ``docs/outbox.md`` has the promises.
    """

    def __init__(
        self,
        database: Connect,
        outbox: Outbox | None = None,
        *,
        name: str = "aioproducer-outbox",
        position_topic: str = "aioproducer-outbox",
        dead_letter_topic: str | None = None,
        begin: Begin = "marker",
        clean_up: bool = True,
        most_rows: int = 10_000,
        most_bytes: int = 8_000_000,
        poll_interval: float = 0.5,
        clean_up_interval: float = 1.0,
        standby_interval: float = 1.0,
        refresh_interval: float = 3_600.0,
        longest_wait: float = 10.0,
        clock: Clock | None = None,
        **config: Unpack[ProducerConfigs],
    ) -> None:
        self._relay_config = RelayConfig(
            name=name,
            position_topic=position_topic,
            dead_letter_topic=dead_letter_topic,
            clean_up=clean_up,
            most_rows=most_rows,
            most_bytes=most_bytes,
            poll_interval=poll_interval,
            clean_up_interval=clean_up_interval,
            standby_interval=standby_interval,
            refresh_interval=refresh_interval,
            longest_wait=longest_wait,
        )
        self._producer_configs = _producer_configs(name, config)
        self._config = producer_config(self._producer_configs)
        parse_addresses(self._config.bootstrap_servers)
        self.outbox = Outbox() if outbox is None else outbox
        self._database = database
        self._begin = check_begin(begin)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._figures = RelayMetrics(name)
        self._producer: KafkaProducer[Any, Any] | None = None
        self._wake = asyncio.Event()
        self._stopped = False
        self._running = False

    @property
    def config(self) -> ProducerConfig:
        """The configs in force of its producers."""
        return self._config

    def stop(self) -> None:
        """Makes :meth:`run` return when the present transaction has ended."""
        self._stopped = True
        self._wake.set()

    def metrics(self) -> MetricsSnapshot:
        """The relay's metrics (group ``outbox-metrics``) and, while it relays, those of its producer."""
        own = self._figures.snapshot(self._clock.time_ms())
        if self._producer is None:
            return own
        of_producer = self._producer.metrics()
        return MetricsSnapshot({**own, **of_producer}, of_producer.distributions)

    async def run(self) -> None:
        """Relays until it is stopped or cancelled.

        It gets over every loss of the database and of Kafka. It raises what it cannot get over: an OutboxException,
        ConfigException, and what Kafka does not allow.
        """
        if self._running:
            raise IllegalStateException("the relay runs already")
        self._running = True
        backoff = ExponentialBackoff(FIRST_WAIT_MS, self._relay_config.longest_wait * 1000, Random())
        failures = 0
        try:
            passing: tuple[type[Exception], ...] = (KafkaError, *database_errors())
            while not self._stopped:
                commits = self._figures.commits
                try:
                    await self._session()
                except _LASTING:
                    raise
                except passing as error:
                    if isinstance(error, refusals()):
                        raise OutboxSchemaException(f"the database refuses: {error}") from error
                    failures = 1 if self._figures.commits > commits else failures + 1
                    wait = backoff.wait(failures)
                    log.warning(
                        "the relay %r begins anew in %.1f s: %s: %s",
                        self._relay_config.name,
                        wait,
                        type(error).__name__,
                        error,
                    )
                    self._figures.restarts += 1
                    await self._pause(wait)
        finally:
            self._running = False

    async def _session(self) -> None:
        config = self._relay_config
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(connected(self._database))
            database = Database(connection, self.outbox)
            identity = await database.check()
            if not await self._turn(database):
                return
            stack.callback(self._rest)
            cleaner = Database(await stack.enter_async_context(connected(self._database)), self.outbox)
            if not await cleaner.sees_lock(config.name, await database.process()):
                raise ConnectionError(
                    "the second connection does not see the lock of the first: it leads to another server or database"
                )
            producer: KafkaProducer[Any, Any] = KafkaProducer.from_config(self._producer_configs)
            admin = await stack.enter_async_context(
                KafkaAdmin.from_config(known_to(AdminConfig, self._producer_configs))
            )
            await producer.start()
            stack.push_async_callback(producer.close, 0)
            transactions = Transactions(
                producer, config.name, config.position_topic, self.outbox.name, config.dead_letter_topic
            )
            session = Session(config, database, identity, transactions, self._figures, self._wake)
            marker = await transactions.begin(admin)
            await session.begin(marker, self._begin)
            self._begin = "marker"  # from now on Kafka has the position
            await database.listen(self._wake.set)
            self._figures.active, self._producer = True, producer
            log.info("the relay %r of %s begins after row %d", config.name, self.outbox.name, session.committed.last)
            await _first_to_end(
                start_task(session.relay(lambda: self._stopped), f"aioproducer outbox {config.name}"),
                start_task(session.clean(cleaner), f"aioproducer outbox {config.name} clean-up"),
            )

    async def _turn(self, database: Database) -> bool:
        """Waits for the lock, as a standby; returns whether it has it."""
        name = self._relay_config.name
        said = False
        while not self._stopped:
            if await database.try_lock(name):
                return True
            if not said:
                log.info("another relay %r is active: this one stands by", name)
                said = True
            await self._pause(self._relay_config.standby_interval)
        return False

    def _rest(self) -> None:
        self._figures.active, self._producer = False, None

    async def _pause(self, seconds: float) -> None:
        """Waits, unless it is to stop."""
        self._wake.clear()
        if self._stopped:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    def __repr__(self) -> str:
        return f"<OutboxRelay {self._relay_config.name!r} of {self.outbox.name!r}: {self._figures.rows} rows relayed>"


def _producer_configs(name: str, given: Any) -> dict[str, Any]:
    configs = {key.replace("_", "."): value for key, value in given.items()}
    for key, why in (
        ("transactional.id", "it is the name of the relay"),
        ("metric.reporters", "the relay makes a producer anew after each error; report relay.metrics()"),
        ("interceptor.classes", "records are sent as the rows say"),
        ("key.serializer", "rows have bytes"),
        ("value.serializer", "rows have bytes"),
    ):
        if configs.get(key):
            raise ConfigException(f"{key} cannot be given to a relay: {why}", name=key)
    # One transaction follows the other at once. While the coordinator ends the last one, it answers that it is busy.
    return {"client.id": name, "linger.ms": 0, "retry.backoff.ms": 5, **configs, "transactional.id": name}


async def _first_to_end(*tasks: asyncio.Task[None]) -> None:
    """Runs tasks until one has ended, and raises its error; no task is left when this returns or raises."""
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()
