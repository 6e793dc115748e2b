"""The traffic of topics on one node: Kafka's ``BrokerTopicMetrics``."""

from __future__ import annotations

from collections.abc import Iterator

from aioproducer.metrics.sensor import Sensor

RATES = {
    "MessagesInPerSec": "records that were appended",
    "BytesInPerSec": "bytes of batches that were appended",
    "BytesOutPerSec": "bytes of batches that were fetched",
    "TotalProduceRequestsPerSec": "times that a partition was produced to",
    "TotalFetchRequestsPerSec": "times that a partition was fetched from",
    "FailedProduceRequestsPerSec": "times that producing to a partition failed",
    "FailedFetchRequestsPerSec": "times that fetching from a partition failed",
}
"""Names, and what each counts per second."""


class TopicRates:
    """The rates of one topic."""

    __slots__ = ("bytes_in", "bytes_out", "failed_fetches", "failed_produces", "fetches", "messages_in", "produces")

    def __init__(self) -> None:
        self.messages_in = Sensor()
        self.bytes_in = Sensor()
        self.bytes_out = Sensor()
        self.produces = Sensor()
        self.fetches = Sensor()
        self.failed_produces = Sensor()
        self.failed_fetches = Sensor()

    def produced(self, failed: bool, now: float) -> None:
        """Counts an attempt to produce to a partition."""
        self.produces.record(1, now)
        if failed:
            self.failed_produces.record(1, now)

    def appended(self, messages: int, size: int, now: float) -> None:
        """Counts a batch that was appended to the log."""
        self.messages_in.record(messages, now)
        self.bytes_in.record(size, now)

    def fetched(self, partitions: int, failed: int, size: int, now: float) -> None:
        """Counts partitions that were fetched, how many of them ``failed``, and the bytes of their batches."""
        self.fetches.record(partitions, now)
        if failed:
            self.failed_fetches.record(failed, now)
        if size:
            self.bytes_out.record(size, now)

    def rates(self, now: float) -> list[float]:
        """In the order of :data:`RATES`."""
        sensors = (
            self.messages_in,
            self.bytes_in,
            self.bytes_out,
            self.produces,
            self.fetches,
            self.failed_produces,
            self.failed_fetches,
        )
        return [sensor.rate(now) for sensor in sensors]


class BrokerTopicMetrics:
    """The rates of all topics that were produced to or fetched from on a node."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicRates] = {}

    def of(self, topic: str) -> TopicRates:
        """The rates of one topic."""
        rates = self._topics.get(topic)
        if rates is None:
            rates = self._topics[topic] = TopicRates()
        return rates

    def forget(self, topic: str) -> None:
        """Forgets a deleted topic: another one of the same name starts at zero."""
        self._topics.pop(topic, None)

    def __iter__(self) -> Iterator[tuple[str, TopicRates]]:
        """Yields the name and the rates of each topic."""
        return iter(self._topics.items())
