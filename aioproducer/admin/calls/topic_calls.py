"""The admin client's calls for the cluster and its topics."""

from __future__ import annotations

from collections.abc import Iterable

from aioproducer.admin.calls.admin_requests import AdminRequests, distinct
from aioproducer.admin.calls.answers import described, outcome
from aioproducer.admin.cluster import ClusterDescription, cluster_description
from aioproducer.admin.topics import NewTopic, TopicDescription, creatable, description
from aioproducer.errors import KafkaError, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_LAST_VERSION_BY_NAME = 5
"""DeleteTopics: version 6 put names beside ids, in another form; all brokers still speak version 5."""


class TopicCalls:
    """Carries out the calls of KafkaAdmin that have these names."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    async def describe_cluster(self) -> ClusterDescription:
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        return cluster_description(await self._metadata("describing the cluster", request))

    async def create_topics(self, topics: Iterable[NewTopic]) -> dict[str, KafkaError | None]:
        given = list(topics)
        wanted = dict(zip(distinct(topic.name for topic in given), given, strict=True))

        async def attempt(names: list[str]) -> dict[str, KafkaError | None]:
            request = CreateTopicsRequest(
                topics=[creatable(wanted[name]) for name in names], timeout_ms=self._requests.broker_timeout_ms
            )
            response = await self._requests.ask_controller(request, CreateTopicsResponse)
            return {topic.name: outcome(topic.error_code, topic.error_message, topic.name) for topic in response.topics}

        return await self._requests.change("creating topics", list(wanted), attempt)

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        async def attempt(names: list[str]) -> dict[str, KafkaError | None]:
            request = DeleteTopicsRequest(topic_names=names, timeout_ms=self._requests.broker_timeout_ms)
            response = await self._requests.ask_controller(request, DeleteTopicsResponse, at_most=_LAST_VERSION_BY_NAME)
            return {
                topic.name or "": outcome(topic.error_code, topic.error_message, topic.name)
                for topic in response.responses
            }

        return await self._requests.change("deleting topics", distinct(names), attempt)

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription | KafkaError]:
        wanted = distinct(names)
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

    async def list_topics(self, *, internal: bool) -> dict[str, TopicDescription]:
        response = await self._metadata("listing topics", MetadataRequest(topics=None, allow_auto_topic_creation=False))
        return {
            topic.name: description(topic.name, topic)
            for topic in sorted(response.topics, key=lambda topic: topic.name or "")
            if topic.name is not None and (internal or not topic.is_internal)
        }

    async def _metadata(self, what: str, request: MetadataRequest) -> MetadataResponse:
        async def attempt() -> MetadataResponse:
            response = await self._requests.ask(request, MetadataResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, what)
            return response

        return await self._requests.retry(what, attempt)
