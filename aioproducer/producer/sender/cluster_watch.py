"""Receives the client's reports for the Sender: links, metadata, refusals."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from aioproducer.errors import AuthenticationException
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.client import KafkaClient
from aioproducer.net.metadata.cluster import Cluster
from aioproducer.producer.delivery.produce_result import Loop
from aioproducer.producer.scheduling.scheduling import Scheduling
from aioproducer.producer.scheduling.topic_directory import TopicDirectory
from aioproducer.producer.sender.alarm import Alarm
from aioproducer.producer.sender.metadata_waits import MetadataWaits


class ClusterWatch:
    """Passes each change on to what depends on it, and wakes the Sender."""

    def __init__(
        self,
        loop: Loop,
        client: KafkaClient,
        topics: TopicDirectory,
        scheduling: Scheduling,
        waits: MetadataWaits,
        metrics: ProducerMetrics,
        alarm: Alarm,
    ) -> None:
        self._loop = loop
        self._client = client
        self._topics = topics
        self._windows = scheduling.windows
        self._lines = scheduling.lines
        self._history = scheduling.history
        self._waits = waits
        self._metrics = metrics
        self._alarm = alarm

    def link_changed(self, link: BrokerLink) -> None:
        if link.state is not LinkState.READY:  # ready() is False while a live connection re-authenticates
            self._windows.connection_lost(link.node_id)
            self._lines.of(link.node_id).connection_lost()
        else:
            self._lines.of(link.node_id).connected(link.greeting)
        self._history.reachable(self._loop.time(), any_broker=self._client.reachable())
        self._alarm.ring()

    def follow(self, cluster: Cluster) -> Iterator[None]:
        """Applies new metadata, with a pause after every few partitions."""
        yield from self._topics.following(cluster, self._loop.time())
        yield from self._metrics.keeping_topics(cluster.topics)

    def topic_arrived(self, topic: str) -> None:
        """Its partitions have come. Records that wait for them go before any that are sent from now on."""
        if self._waits.topic_arrived(topic):
            self._metrics.use_topic(topic)  # here, between two pauses: a request may have 200 new topics
            self._alarm.ring()

    def metadata_arrived(self) -> Generator[None, None, None]:
        yield from self._waits.metadata_arrived()
        self._alarm.ring()

    def refused(self, error: AuthenticationException) -> None:
        """A broker does not accept the client, or the client the broker."""
        self._waits.refused(error)
        self._alarm.ring()
