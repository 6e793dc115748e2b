"""Reads with another client: confluent-kafka, with ``read_committed``."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition


def read_committed(servers: str, topic: str, partitions: int) -> list[Any]:
    """The messages of all partitions, one partition after the other, from the beginning to the end of now."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "foreign",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        messages: list[Any] = []
        ended = 0
        while ended < partitions:
            message = consumer.poll(30.0)
            assert message is not None, f"{topic}: nothing for 30 s after {len(messages)} records"
            error = message.error()
            if error is None:
                messages.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
    finally:
        consumer.close()
    return sorted(messages, key=lambda message: (message.partition(), message.offset()))


def values(servers: str, topic: str, partitions: int = 1) -> list[str]:
    """Their values, none of which is null."""
    return [message.value().decode() for message in read_committed(servers, topic, partitions)]
