"""A client that waits for one answer at a time: for the admin client and the partition reader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from aioproducer.configs.client_config import ClientConfig
from aioproducer.configs.config_def import Type, at_least, key
from aioproducer.errors import (
    IllegalStateException,
    KafkaError,
    TimeoutException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
    error_for,
    with_advice,
)
from aioproducer.net.client import KafkaClient
from aioproducer.net.coordinators import Coordinators
from aioproducer.net.metadata.cluster import Cluster, TopicMetadata
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.backoff import ExponentialBackoff

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryingConfig(ClientConfig):
    """Configs with a time-out for all attempts together."""

    default_api_timeout_ms: int = key(
        Type.INT, 60000, at_least(0), "How long a call to the cluster may take, including retries."
    )


class RetryingClient:
    """A :class:`KafkaClient` whose calls are retried with back-off until default.api.timeout.ms is over.

    Must be made in a running loop. Its metadata requests create no topics.
    """

    def __init__(self, config: RetryingConfig) -> None:
        self._api_timeout_ms = config.default_api_timeout_ms
        random = Random()
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self._supervisor = Supervisor(self._crashed)
        self._scopes: set[asyncio.Timeout] = set()
        self._fatal: KafkaError | None = None
        self.client = KafkaClient(config, self._supervisor, random, creates_topics=False)
        self.coordinators = Coordinators(self.client)
        self.client.start()

    async def close(self) -> None:
        """Ends the tasks and closes the connections; calls that still wait raise IllegalStateException."""
        self._end(IllegalStateException("the client was closed"))
        await self._supervisor.stop()
        await self.client.close()

    async def cluster(self) -> Cluster:
        """The cluster, once metadata has arrived."""
        while self.client.metadata.version == 0:
            await self.client.changes.next()
        return self.client.metadata.cluster

    async def topic(self, name: str) -> TopicMetadata:
        """A topic's metadata, once it has arrived; raises the error if the brokers answer with one."""
        self.client.use_topic(name)
        while True:
            cluster = self.client.metadata.cluster
            if name in cluster.topics:
                return cluster.topics[name]
            if name in cluster.errors:
                code = cluster.errors[name]
                raise error_for(code, f"topic {name!r}: {with_advice('', code)}")
            await self.client.changes.next()

    async def retry(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Calls ``attempt`` until it succeeds, again after every retriable error; returns its result.

        When default.api.timeout.ms is over: TimeoutException with the last error as its cause, or that error itself if
        the topic does not exist. ``what`` names the operation in messages.
        """
        failures = 0
        last: KafkaError | None = None
        try:
            async with asyncio.timeout(self._api_timeout_ms / 1000) as scope:
                self._scopes.add(scope)
                if self._fatal is not None:
                    raise self._fatal.fresh()
                while True:
                    try:
                        return await attempt()
                    except KafkaError as error:
                        if not error.retriable:
                            raise
                        last = error
                    if last.refresh_metadata:
                        self.client.request_update()
                    failures += 1
                    await asyncio.sleep(self._backoff.wait(failures))
        except TimeoutError:
            if self._fatal is not None:
                raise self._fatal.fresh() from self._fatal.__cause__
            if isinstance(last, UnknownTopicOrPartitionException | UnknownTopicIdException):
                raise last.fresh() from None
            why = self.client.unreachable() or str(last or "no answer yet")
            raise TimeoutException(
                f"{what}: not done within default.api.timeout.ms={self._api_timeout_ms}: {why}"
            ) from last
        finally:
            self._scopes.discard(scope)

    def _crashed(self, error: BaseException) -> None:
        """A task that must not die has died: everything that waits for it must end."""
        failed = KafkaError(f"the client failed: {type(error).__name__}: {error}")
        failed.__cause__ = error
        self._end(failed)

    def _end(self, error: KafkaError) -> None:
        """No further answer will come: all waits end at once."""
        self._fatal = error
        now = asyncio.get_running_loop().time()
        for scope in self._scopes:
            scope.reschedule(now)
