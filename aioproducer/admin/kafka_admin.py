"""The admin client: topics, configs, offsets and quotas, one or several at a time, and the offsets of a group."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from aioproducer.admin.answers import K, described, left_out, only, outcome
from aioproducer.admin.configs import ConfigChange, ConfigEntry, ConfigResource, alteration, by_node, entry
from aioproducer.admin.groups import committed_offsets, groups_of_node
from aioproducer.admin.offsets import (
    IsolationLevel,
    ListOffsetsResultInfo,
    OffsetSpec,
    offsets_answered,
    offsets_request,
)
from aioproducer.admin.quotas import ClientQuotaEntity, Wanted, conditions, quota_changes
from aioproducer.admin.topics import NewTopic, TopicDescription, creatable, description
from aioproducer.config import ClientConfig, client_config
from aioproducer.config_def import Type, at_least, key, read_properties
from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    ApiException,
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    LeaderNotAvailableException,
    NotControllerException,
    RetriableException,
    ThrottlingQuotaExceededException,
    TimeoutException,
    UnknownTopicOrPartitionException,
    error_for,
)
from aioproducer.net.addresses import parse_addresses
from aioproducer.net.coordinators import Coordinators
from aioproducer.net.retrying_client import RetryingClient
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from aioproducer.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from aioproducer.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from aioproducer.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from aioproducer.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from aioproducer.protocol.messages.list_offsets import ListOffsetsResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from aioproducer.types import OffsetAndMetadata, PartitionInfo, TopicPartition

_LAST_VERSION_BY_NAME = 5
"""DeleteTopics: version 6 put names beside ids, in another form; all brokers still speak version 5."""

_TRY_AGAIN = (NotControllerException, ThrottlingQuotaExceededException)

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class AdminConfig(ClientConfig):
    """The configs of an admin client."""

    default_api_timeout_ms: int = key(
        Type.INT, 60000, at_least(0), "How long a call to the cluster may take, including retries."
    )


class KafkaAdmin:
    """Describes and changes the topics, configs and quotas of a cluster.

    A call for one topic or resource raises what went wrong with it (TopicExistsException,
    UnknownTopicOrPartitionException, InvalidConfigurationException, …). A call for several returns each outcome,
    with an error in the place of a result, so one failure does not hide the others. It raises only what concerns all:
    TimeoutException after default.api.timeout.ms. Whether a change that timed out was made is not known.

    ``config`` takes the names of :class:`AdminConfig`, in snake_case or dotted; ConfigException names a wrong one. An
    admin client belongs to the event loop it was started in.
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
            self._coordinators = Coordinators(self._retrying.client)

    async def close(self) -> None:
        """Ends the client's tasks and connections; calls that still wait for an answer raise IllegalStateException."""
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
        """Creates a topic. The controller knows it first, every broker a moment later."""
        only(await self.create_topics([topic]))

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic with all its records."""
        only(await self.delete_topics([name]))

    async def describe_topic(self, name: str) -> TopicDescription:
        """A topic's partitions, leaders and replicas."""
        return only(await self.describe_topics([name]))

    # One resource

    async def describe_configs(self, resource: ConfigResource) -> dict[str, ConfigEntry]:
        """All configs of a topic or a broker, by name."""
        return only(await self.describe_all_configs([resource]))

    async def alter_configs(
        self, resource: ConfigResource, changes: Mapping[str, ConfigChange], *, validate_only: bool = False
    ) -> None:
        """Changes configs of a running cluster: a text sets one, None resets it to its default, Append and Subtract
        change a list. Either all of the changes are made or none; ``validate_only`` only checks whether they could be.
        """
        only(await self.alter_all_configs({resource: changes}, validate_only=validate_only))

    # Groups

    async def list_groups(self) -> list[str]:
        """The ids of all groups that this client may see, also of those without members, in order."""
        client = self._client()

        async def attempt() -> list[str]:
            cluster = await client.cluster()
            return sorted({group for node in cluster.nodes for group in await groups_of_node(client.client, node)})

        return await client.retry("listing groups", attempt)

    async def list_consumer_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, require_stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What a group has committed for these partitions; None where it has committed nothing.

        With ``require_stable`` the call waits until no open transaction has offsets to commit there (KIP-447).
        """
        wanted = list(partitions)
        client = self._client()
        return await client.retry(
            f"reading the offsets of group {group!r}",
            lambda: committed_offsets(client.client, self._coordinators, group, wanted, require_stable=require_stable),
        )

    # Several

    async def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, KafkaError | None]:
        """Creates topics; by name, None for each that was created, or else its error."""
        wanted = {topic.name: topic for topic in self._distinct(topics, lambda topic: topic.name)}

        async def attempt(names: list[str]) -> dict[str, KafkaError | None]:
            request = CreateTopicsRequest(
                topics=[creatable(wanted[name]) for name in names], timeout_ms=self._broker_timeout_ms
            )
            node_id = await self._controller()
            response = await self._client().client.request(request, CreateTopicsResponse, node_id=node_id)
            return {topic.name: outcome(topic.error_code, topic.error_message, topic.name) for topic in response.topics}

        return await self._change("creating topics", list(wanted), attempt)

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Deletes topics with all their records; by name, None for each that was deleted, or else its error."""

        async def attempt(names: list[str]) -> dict[str, KafkaError | None]:
            request = DeleteTopicsRequest(topic_names=names, timeout_ms=self._broker_timeout_ms)
            node_id = await self._controller()
            response = await self._client().client.request(
                request, DeleteTopicsResponse, node_id=node_id, at_most=_LAST_VERSION_BY_NAME
            )
            return {
                topic.name or "": outcome(topic.error_code, topic.error_message, topic.name)
                for topic in response.responses
            }

        return await self._change("deleting topics", self._distinct(names, str), attempt)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription | KafkaError]:
        """By name, the descriptions of topics, or errors in their place."""
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
        return {name: described(name, answers.get(name)) for name in wanted}

    async def list_topics(self, *, internal: bool = False) -> dict[str, TopicDescription]:
        """Every topic of the cluster by name; Kafka's internal ones only with ``internal``."""
        response = await self._metadata("listing topics", MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return {
            topic.name: description(topic.name, topic)
            for topic in sorted(response.topics, key=lambda topic: topic.name or "")
            if topic.name is not None and (internal or not topic.is_internal)
        }

    async def describe_all_configs(
        self, resources: Iterable[ConfigResource]
    ) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
        """The configs of topics and brokers, or errors in their place."""
        answers: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
        wanted = self._distinct(resources, str)

        for node_id, of_node in by_node(wanted).items():

            async def attempt(node_id: int | None = node_id, of_node: list[ConfigResource] = of_node) -> None:
                request = DescribeConfigsRequest(
                    [DescribeConfigsResource(resource.type, resource.name, None) for resource in of_node],
                    include_synonyms=True,
                )
                response = await self._client().client.request(request, DescribeConfigsResponse, node_id=node_id)
                for told in response.results:
                    resource = ConfigResource(told.resource_type, told.resource_name)
                    error = outcome(told.error_code, told.error_message, resource)
                    answers[resource] = error or {config.name: entry(config) for config in told.configs}

            await self._client().retry("describing configs", attempt)
        return {resource: answers.get(resource, left_out(resource)) for resource in wanted}

    async def alter_all_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, ConfigChange]], *, validate_only: bool = False
    ) -> dict[ConfigResource, KafkaError | None]:
        """As :meth:`alter_configs`; None for each resource that was changed, or else its error."""
        results: dict[ConfigResource, KafkaError | None] = {}
        for node_id, of_node in by_node(changes).items():

            async def attempt(
                resources: list[ConfigResource], node_id: int | None = node_id
            ) -> dict[ConfigResource, KafkaError | None]:
                request = IncrementalAlterConfigsRequest(
                    [alteration(resource, changes[resource]) for resource in resources], validate_only
                )
                client = self._client().client
                response = await client.request(request, IncrementalAlterConfigsResponse, node_id=node_id)
                answers = {}
                for answer in response.responses:
                    resource = ConfigResource(answer.resource_type, answer.resource_name)
                    answers[resource] = outcome(answer.error_code, answer.error_message, resource)
                return answers

            results |= await self._change("altering configs", of_node, attempt)
        return results

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, isolation_level: IsolationLevel = "read_uncommitted"
    ) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
        """The offsets of partitions at their leaders, or errors in their place; each leader is asked once."""
        client = self._client()

        async def attempt(
            wanted: list[TopicPartition],
        ) -> dict[TopicPartition, ListOffsetsResultInfo | KafkaError]:
            answers: dict[TopicPartition, ListOffsetsResultInfo | KafkaError] = {}
            by_leader: dict[int, list[PartitionInfo]] = defaultdict(list)
            for partition in wanted:
                try:
                    info = await self._leader(partition)
                    by_leader[info.leader].append(info)
                except ApiException as error:
                    answers[partition] = error
            requests = [
                client.client.request(
                    offsets_request(of_leader, specs, isolation_level, self._broker_timeout_ms),
                    ListOffsetsResponse,
                    node_id=leader,
                )
                for leader, of_leader in by_leader.items()
            ]
            for response in await _gathered(requests):
                answers |= offsets_answered(response)
            return answers

        return await self._repeat("listing offsets", list(specs), attempt, RetriableException)

    # Quotas

    async def describe_client_quotas(
        self, *, user: Wanted = None, client_id: Wanted = None, ip: Wanted = None, strict: bool = False
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """The quotas of all entities that meet every condition: a name, ``EntityName.DEFAULT`` or ``ANY``. With
        ``strict``, only entities that consist of nothing but what the conditions name.
        """
        request = DescribeClientQuotasRequest(conditions(user, client_id, ip), strict)

        async def attempt() -> dict[ClientQuotaEntity, dict[str, float]]:
            response = await self._client().client.request(request, DescribeClientQuotasResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message or "describing client quotas")
            return {
                ClientQuotaEntity.of(entry.entity): {quota.key: quota.value for quota in entry.values}
                for entry in response.entries or ()
            }

        return await self._client().retry("describing client quotas", attempt)

    async def alter_client_quotas(
        self, entity: ClientQuotaEntity, quotas: Mapping[str, float | None], *, validate_only: bool = False
    ) -> None:
        """Sets quotas; None removes one. Either all changes are made or none. ``producer_byte_rate`` and
        ``consumer_byte_rate`` are bytes per second at each broker, ``request_percentage`` is percent of one of its
        threads, ``controller_mutation_rate`` is partitions per second. An ip has ``connection_creation_rate``,
        connections per second.
        """
        only(await self.alter_all_client_quotas({entity: quotas}, validate_only=validate_only))

    async def alter_all_client_quotas(
        self, changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> dict[ClientQuotaEntity, KafkaError | None]:
        """As :meth:`alter_client_quotas`; None for each entity that was changed, or else its error."""

        async def attempt(entities: list[ClientQuotaEntity]) -> dict[ClientQuotaEntity, KafkaError | None]:
            entries = [quota_changes(entity, changes[entity]) for entity in entities]
            request = AlterClientQuotasRequest(entries, validate_only)
            node_id = await self._controller()
            response = await self._client().client.request(request, AlterClientQuotasResponse, node_id=node_id)
            told = [(ClientQuotaEntity.of(entry.entity), entry) for entry in response.entries]
            return {entity: outcome(entry.error_code, entry.error_message, entity) for entity, entry in told}

        return await self._change("altering client quotas", list(changes), attempt)

    # Within

    def _client(self) -> RetryingClient:
        if self._retrying is None:
            raise IllegalStateException("the admin client is not started: use 'async with' or 'await start()'")
        return self._retrying

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

    async def _leader(self, partition: TopicPartition) -> PartitionInfo:
        """A partition with its leader, from the present metadata."""
        topic = await self._client().topic(partition.topic)
        if partition.partition >= len(topic.partitions):
            raise UnknownTopicOrPartitionException(
                f"topic {partition.topic!r} has {len(topic.partitions)} partitions, there is no {partition}"
            )
        info = topic.partitions[partition.partition]
        if info.leader < 0:
            raise LeaderNotAvailableException(f"partition {partition} has no leader")
        return info

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

    async def _metadata(self, what: str, request: MetadataRequest) -> MetadataResponse:
        client = self._client()

        async def attempt() -> MetadataResponse:
            response = await client.client.request(request, MetadataResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, what)
            return response

        return await client.retry(what, attempt)


async def _gathered(requests: Iterable[Awaitable[T]]) -> list[T]:
    """All answers; when all have ended, raises the first error."""
    results = await asyncio.gather(*requests, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
