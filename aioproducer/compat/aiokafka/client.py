"""What ``producer.client`` is: as much of aiokafka's client as instrumentation reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from aioproducer import KafkaProducer, PartitionInfo
from aioproducer.compat.aiokafka import errors
from aioproducer.compat.aiokafka.error_translation import ErrorTranslation

UNKNOWN_TOPIC: Final = "UnknownTopicOrPartitionError"


class Client:
    """Knows where the cluster is, and the partitions of topics. Names and meanings are those of aiokafka's client.

    The instrumentation of OpenTelemetry and Datadog for aiokafka reads these. Anything else is an AttributeError that
    says what to use instead.
    """

    def __init__(
        self,
        producer: KafkaProducer[Any, Any],
        translation: ErrorTranslation,
        bootstrap_servers: str | Sequence[str],
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        """As they were given."""
        self._client_id = producer.config.client_id
        self._producer = producer
        self._translation = translation
        self._topics: dict[str, list[PartitionInfo]] = {}

    async def _wait_on_metadata(self, topic: str) -> set[int]:
        """The topic's partitions; UnknownTopicOrPartitionError if there are none after request_timeout_ms."""
        with self._translation.translating(late=UNKNOWN_TOPIC):
            infos = self._topics[topic] = await self._producer.partitions_for(topic)
        return {info.partition for info in infos}

    def partitions(self, topic: str) -> list[PartitionInfo]:
        """The topic's partitions as they were when the topic was last waited for."""
        infos = self._topics.get(topic)
        if infos is None:
            raise errors.UnknownTopicOrPartitionError(f"no metadata yet of topic {topic!r}: await partitions_for()")
        return infos

    def know_cluster(self, cluster_id: str | None) -> None:
        """Keeps the cluster's id where Datadog's instrumentation caches it; otherwise it would request it itself."""
        self._dd_cluster_id = cluster_id or ""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(
                f"producer.client has no {name!r}: the producer is aioproducer's, and has no client of aiokafka's. Use "
                "producer.kafka_producer, which has metrics(), health() and explain(), or aioproducer.admin.KafkaAdmin",
                name=name,
                obj=self,
            )
