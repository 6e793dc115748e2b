"""Lines to a topic."""

from __future__ import annotations

from aioproducer.producer.producer import KafkaProducer


class TopicSink:
    """Sends each line as the value of a record, through a separate producer, which the caller keeps and closes.

    ::

        async with KafkaProducer(bootstrap_servers=…) as audit:
            log = DeliveryLog(TopicSink(audit, "deliveries"))
            async with KafkaProducer(bootstrap_servers=…, interceptor_classes=log) as producer:
                ...

    No caller waits for these records: that producer logs those that it cannot deliver.
    """

    def __init__(self, producer: KafkaProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    def write(self, line: bytes) -> None:
        _ = self._producer.send(self._topic, line)

    def close(self) -> None:
        """Does nothing: the producer's owner closes it."""
