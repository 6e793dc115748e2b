"""The parts that the calls of the admin client share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from aioproducer.admin.answers import K, left_out
from aioproducer.errors import (
    IllegalArgumentException,
    KafkaError,
    NotControllerException,
    ThrottlingQuotaExceededException,
    TimeoutException,
    UnknownTopicOrPartitionException,
)
from aioproducer.net.client_lifecycle import ClientLifecycle
from aioproducer.net.retrying_client import RetryingConfig

_TRY_AGAIN = (NotControllerException, ThrottlingQuotaExceededException)

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class AdminConfig(RetryingConfig):
    """The configs of an admin client."""


class AdminCalls(ClientLifecycle[AdminConfig]):
    """A part of an admin client."""

    @property
    def _broker_timeout_ms(self) -> int:
        """How long the broker may wait for a change to take effect: it must answer within request.timeout.ms."""
        return self._config.request_timeout_ms // 2

    @staticmethod
    def _distinct(given: Iterable[T], name: Callable[[T], str]) -> list[T]:
        topics = list(given)
        names = [name(topic) for topic in topics]
        if len(set(names)) != len(names):
            raise IllegalArgumentException(f"one is named twice: {', '.join(names)}")
        return topics

    async def _controller(self) -> int | None:
        """The node to ask for changes: the controller, or in KRaft mode the broker that the cluster names as one."""
        cluster = await self._client().cluster()
        return cluster.controller_id if cluster.controller_id in cluster.nodes else None

    async def _change(
        self,
        what: str,
        names: list[K],
        attempt: Callable[[list[K]], Awaitable[dict[K, KafkaError | None]]],
    ) -> dict[K, KafkaError | None]:
        return await self._repeat(what, names, attempt, _TRY_AGAIN)

    async def _repeat(
        self,
        what: str,
        names: list[K],
        attempt: Callable[[list[K]], Awaitable[dict[K, V | KafkaError]]],
        passing: type[KafkaError] | tuple[type[KafkaError], ...],
    ) -> dict[K, V | KafkaError]:
        """Repeats ``attempt`` for those whose answer was one of the ``passing`` errors."""
        results: dict[K, V | KafkaError] = {}
        client = self._client()

        async def once() -> None:
            pending = [name for name in names if name not in results or isinstance(results[name], passing)]
            answers = await attempt(pending)
            for name in pending:
                results[name] = answers.get(name, left_out(name))
            again = [error for error in results.values() if isinstance(error, passing)]
            if again:
                client.client.request_update()
                raise again[0]

        if names:
            try:
                await client.retry(what, once)
            except (TimeoutException, UnknownTopicOrPartitionException):
                if not results:
                    raise
        return results
