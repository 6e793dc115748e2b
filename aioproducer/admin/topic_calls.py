"""The admin client's calls for topics."""

from __future__ import annotations

from collections.abc import Iterable

from aioproducer.admin.admin_calls import AdminCalls
from aioproducer.admin.answers import described, only, outcome
from aioproducer.admin.topics import NewTopic, TopicDescription, creatable, description
from aioproducer.error_code import ErrorCode
from aioproducer.errors import KafkaError, error_for
from aioproducer.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_LAST_VERSION_BY_NAME = 5
"""DeleteTopics: version 6 put names beside ids, in another form; all brokers still speak version 5."""


class TopicCalls(AdminCalls):
    """To list, create, describe and delete topics."""

    async def create_topic(self, topic: NewTopic) -> None:
        """Creates a topic. The controller knows it first, every broker a moment later."""
        only(await self.create_topics([topic]))

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic with all its records."""
        only(await self.delete_topics([name]))

    async def describe_topic(self, name: str) -> TopicDescription:
        """A topic's partitions, leaders and replicas."""
        return only(await self.describe_topics([name]))

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

    async def _metadata(self, what: str, request: MetadataRequest) -> MetadataResponse:
        client = self._client()

        async def attempt() -> MetadataResponse:
            response = await client.client.request(request, MetadataResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, what)
            return response

        return await client.retry(what, attempt)
