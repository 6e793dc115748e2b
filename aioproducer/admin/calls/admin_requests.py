"""Sends the admin client's requests to the right brokers, and retries them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from aioproducer.admin.admin_config import AdminConfig
from aioproducer.admin.calls.answers import K, left_out
from aioproducer.errors import (
    IllegalArgumentException,
    KafkaError,
    NotControllerException,
    ThrottlingQuotaExceededException,
    TimeoutException,
    UnknownTopicOrPartitionException,
)
from aioproducer.net.client import KafkaClient
from aioproducer.net.coordinators import Coordinators
from aioproducer.net.retrying_client import RetryingClient
from aioproducer.protocol.schema import Request, Response
from aioproducer.types import PartitionInfo, TopicPartition

_PASSING_ERRORS_OF_CHANGES = (NotControllerException, ThrottlingQuotaExceededException)

R = TypeVar("R", bound=Response)
T = TypeVar("T")


class AdminRequests:
    """Sends requests to the brokers that must have them, and repeats the attempts that fail.

    ``client`` returns the running client, or raises IllegalStateException if there is none.
    """

    def __init__(self, config: AdminConfig, client: Callable[[], RetryingClient]) -> None:
        self._client = client
        self.broker_timeout_ms = config.request_timeout_ms // 2
        """How long a broker may wait for a change to take effect: it must answer within request.timeout.ms."""

    # One attempt

    async def ask(
        self, request: Request, response_class: type[R], *, node_id: int | None = None, at_most: int | None = None
    ) -> R:
        """Asks one node, or any. ``at_most`` bounds the version of the request."""
        return await self._client().client.request(request, response_class, node_id=node_id, at_most=at_most)

    async def ask_controller(self, request: Request, response_class: type[R], *, at_most: int | None = None) -> R:
        """Asks the controller; in KRaft mode, the broker that the cluster names as its controller."""
        cluster = await self._client().cluster()
        node_id = cluster.controller_id if cluster.controller_id in cluster.nodes else None
        return await self.ask(request, response_class, node_id=node_id, at_most=at_most)

    async def leader(self, partition: TopicPartition) -> PartitionInfo:
        """A partition with its leader, from the present metadata."""
        topic = await self._client().topic(partition.topic)
        return topic.led(partition.partition)

    # Attempts until one succeeds; ``what`` names the operation in messages

    async def retry(self, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeats ``attempt`` after every retriable error."""
        return await self._client().retry(what, attempt)

    async def ask_every_node(self, what: str, ask: Callable[[KafkaClient, int], Awaitable[list[str]]]) -> list[str]:
        """The names that the nodes answer, in order, each once."""
        client = self._client()

        async def attempt() -> list[str]:
            cluster = await client.cluster()
            found: set[str] = set()
            for node_id in cluster.nodes:
                found.update(await ask(client.client, node_id))
            return sorted(found)

        return await client.retry(what, attempt)

    async def ask_coordinators(self, what: str, ask: Callable[[KafkaClient, Coordinators], Awaitable[T]]) -> T:
        """Repeats ``ask``, which looks for the coordinators that it needs."""
        client = self._client()
        return await client.retry(what, lambda: ask(client.client, client.coordinators))

    async def change(
        self, what: str, names: list[K], attempt: Callable[[list[K]], Awaitable[dict[K, KafkaError | None]]]
    ) -> dict[K, KafkaError | None]:
        """Repeats ``attempt`` for those that a wrong controller or a quota refused."""
        return await self.repeat(what, names, attempt, _PASSING_ERRORS_OF_CHANGES)

    async def repeat(
        self,
        what: str,
        names: list[K],
        attempt: Callable[[list[K]], Awaitable[dict[K, T | KafkaError]]],
        passing: type[KafkaError] | tuple[type[KafkaError], ...],
    ) -> dict[K, T | KafkaError]:
        """Repeats ``attempt`` for those whose answer was one of the ``passing`` errors."""
        results: dict[K, T | KafkaError] = {}
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


def distinct(names: Iterable[K]) -> list[K]:
    """The names given as an argument. IllegalArgumentException if one of them is given twice."""
    given = list(names)
    twice = [str(name) for name, times in Counter(given).items() if times > 1]
    if twice:
        raise IllegalArgumentException(f"named twice: {', '.join(twice)}")
    return given
