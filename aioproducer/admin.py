"""Topics: list, create, describe, delete. Kafka's admin client, as far as a producer's surroundings need it.

::

    async with KafkaAdmin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic(NewTopic("orders", partitions=6))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from aioproducer.config import ClientConfig, client_config
from aioproducer.config_def import Type, at_least, key, read_properties
from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    NotControllerException,
    ThrottlingQuotaExceededException,
    TimeoutException,
    error_class,
    error_for,
)
from aioproducer.net.addresses import parse_addresses
from aioproducer.net.retrying_client import RetryingClient
from aioproducer.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from aioproducer.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from aioproducer.types import PartitionInfo

__all__ = ["AdminConfig", "KafkaAdmin", "NewTopic", "TopicDescription"]

_LAST_VERSION_BY_NAME = 5
"""DeleteTopics: from version 6 on names stand beside ids, in a form of their own; all brokers still speak 5."""

_TRY_AGAIN = (NotControllerException, ThrottlingQuotaExceededException)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AdminConfig(ClientConfig):
    """The configs of an admin client."""

    default_api_timeout_ms: int = key(
        Type.INT, 60000, at_least(0), "How long anything that is asked of the cluster may take, retries included."
    )


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created; -1 partitions or replicas mean the broker's default (KIP-464)."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    """Topic configs in Kafka's names: ``{"retention.ms": "3600000"}``."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as the brokers describe it; ``topic_id`` is zero where they are too old to have one."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionInfo, ...]
    is_internal: bool

    @property
    def replication_factor(self) -> int:
        """Replicas of the partition that has fewest."""
        return min((len(partition.replicas) for partition in self.partitions), default=0)


class KafkaAdmin:
    """Asks a cluster about its topics, and changes which there are.

    Each call for one topic raises what went wrong with it (TopicExistsException, UnknownTopicOrPartitionException,
    InvalidReplicationFactorException, …). The calls for several return what became of each, the error in its place, so
    that one that failed hides none of the others; they raise only what concerns all: TimeoutException after
    default.api.timeout.ms. Whether a change that timed out was made is not known.

    ``config`` are the names of :class:`AdminConfig`, in snake_case or dotted; ConfigException names a wrong one.
    Belongs to the event loop it was started in.
    """

    def __init__(self, **config: Any) -> None:
        self._config = client_config(AdminConfig, config, owner="admin")
        parse_addresses(self._config.bootstrap_servers)
        self._retrying: RetryingClient | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, object] | str) -> Self:
        """An admin client from Kafka's dotted names, as a mapping or as the text of a ``.properties`` file."""
        return cls(**(read_properties(config) if isinstance(config, str) else config))

    async def start(self) -> None:
        """Binds to the running loop and looks for the cluster. Starting twice is harmless."""
        if self._retrying is None:
            self._retrying = RetryingClient(self._config, self._config.default_api_timeout_ms)

    async def close(self) -> None:
        """Ends the client's tasks and connections; whoever still waits for an answer gets IllegalStateException."""
        if self._retrying is not None:
            await self._retrying.close()
            self._retrying = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # One topic

    async def create_topic(self, topic: NewTopic) -> None:
        """Creates a topic. That it is there is known to the controller first, to every broker a moment later."""
        _only(await self.create_topics([topic]))

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic with all its records."""
        _only(await self.delete_topics([name]))

    async def describe_topic(self, name: str) -> TopicDescription:
        """A topic's partitions, leaders and replicas."""
        return _only(await self.describe_topics([name]))

    # Several

    async def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, KafkaError | None]:
        """Creates topics; None for each that was created, or else its error, by name."""
        wanted = {topic.name: topic for topic in self._distinct(topics, lambda topic: topic.name)}

        async def attempt(names: list[str]) -> dict[str, KafkaError | None]:
            request = CreateTopicsRequest(
                topics=[_creatable(wanted[name]) for name in names], timeout_ms=self._broker_timeout_ms
            )
            node_id = await self._controller()
            response = await self._client().client.request(request, CreateTopicsResponse, node_id=node_id)
            return {topic.name: _result(topic.error_code, topic.error_message, topic.name) for topic in response.topics}

        return await self._change("creating topics", list(wanted), attempt)

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Deletes topics with all their records; None for each that was deleted, or else its error, by name."""

        async def attempt(names: list[str]) -> dict[str, KafkaError | None]:
            request = DeleteTopicsRequest(topic_names=names, timeout_ms=self._broker_timeout_ms)
            node_id = await self._controller()
            response = await self._client().client.request(
                request, DeleteTopicsResponse, node_id=node_id, at_most=_LAST_VERSION_BY_NAME
            )
            return {
                topic.name or "": _result(topic.error_code, topic.error_message, topic.name)
                for topic in response.responses
            }

        return await self._change("deleting topics", self._distinct(names, str), attempt)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription | KafkaError]:
        """Descriptions of topics, or the errors in their place, by name."""
        wanted = self._distinct(names, str)
        if not wanted:
            return {}
        response = await self._metadata(
            "describing topics",
            MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in wanted], allow_auto_topic_creation=False
            ),
        )
        answers = {topic.name: topic for topic in response.topics}
        return {name: _described(name, answers.get(name)) for name in wanted}

    async def list_topics(self, *, internal: bool = False) -> dict[str, TopicDescription]:
        """Every topic of the cluster by name, those that Kafka keeps for itself only with ``internal``."""
        response = await self._metadata("listing topics", MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return {
            topic.name: _description(topic.name, topic)
            for topic in sorted(response.topics, key=lambda topic: topic.name or "")
            if topic.name is not None and (internal or not topic.is_internal)
        }

    # Within

    def _client(self) -> RetryingClient:
        if self._retrying is None:
            raise IllegalStateException("the admin client is not started: use 'async with' or 'await start()'")
        return self._retrying

    @property
    def _broker_timeout_ms(self) -> int:
        """How long the broker may wait for a change to be made: it has to answer within request.timeout.ms."""
        return self._config.request_timeout_ms // 2

    @staticmethod
    def _distinct(given: Iterable[T], name: Callable[[T], str]) -> list[T]:
        topics = list(given)
        names = [name(topic) for topic in topics]
        if len(set(names)) != len(names):
            raise IllegalArgumentException(f"a topic is named twice: {', '.join(names)}")
        return topics

    async def _controller(self) -> int | None:
        """Whom to ask for changes: the controller, or in KRaft mode whichever broker the cluster calls so."""
        cluster = await self._client().cluster()
        return cluster.controller_id if cluster.controller_id in cluster.nodes else None

    async def _change(
        self,
        what: str,
        names: list[str],
        attempt: Callable[[list[str]], Awaitable[dict[str, KafkaError | None]]],
    ) -> dict[str, KafkaError | None]:
        """Repeats ``attempt`` for the topics whose answer was to try again."""
        results: dict[str, KafkaError | None] = {}
        client = self._client()

        async def change() -> None:
            pending = [name for name in names if name not in results or isinstance(results[name], _TRY_AGAIN)]
            answers = await attempt(pending)
            for name in pending:
                results[name] = answers.get(name, KafkaError(f"the broker left topic {name!r} out of its answer"))
            again = [error for error in results.values() if isinstance(error, _TRY_AGAIN)]
            if again:
                client.client.request_update()
                raise again[0]

        if names:
            try:
                await client.retry(what, change)
            except TimeoutException:
                if not results:
                    raise
        return results

    async def _metadata(self, what: str, request: MetadataRequest) -> MetadataResponse:
        client = self._client()

        async def attempt() -> MetadataResponse:
            response = await client.client.request(request, MetadataResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, what)
            return response

        return await client.retry(what, attempt)


def _only(results: Mapping[str, T | KafkaError]) -> T:
    """What became of the one topic that was asked for."""
    (result,) = results.values()
    if isinstance(result, KafkaError):
        raise result
    return result


def _error(code: int, message: str | None, name: str | None) -> KafkaError:
    text = message or error_class(code).__doc__ or ""
    # Not all that brokers say about a topic names it.
    return error_for(code, text if name is not None and name in text else f"topic {name!r}: {text}")


def _result(code: int, message: str | None, name: str | None) -> KafkaError | None:
    return None if code == ErrorCode.NONE else _error(code, message, name)


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _described(name: str, answer: MetadataResponseTopic | None) -> TopicDescription | KafkaError:
    if answer is None:
        return KafkaError(f"the broker left topic {name!r} out of its answer")
    code = ErrorCode(answer.error_code)
    if code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        return _description(name, answer)
    return _error(code, None, name)


def _description(name: str, answer: MetadataResponseTopic) -> TopicDescription:
    partitions = [
        PartitionInfo(
            name,
            partition.partition_index,
            partition.leader_id,
            partition.leader_epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
        )
        for partition in sorted(answer.partitions, key=lambda partition: partition.partition_index)
    ]
    return TopicDescription(name, answer.topic_id, tuple(partitions), answer.is_internal)
