"""confluent-kafka's consumer as the judge of what is committed."""

from __future__ import annotations


def read_committed(servers: str, topic: str, partitions: int) -> dict[int, list[tuple[bytes | None, bytes | None]]]:
    """The keys and values of each partition, as isolation.level=read_committed reads them to the end."""
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka import KafkaError as ForeignError

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        found: dict[int, list[tuple[bytes | None, bytes | None]]] = {partition: [] for partition in range(partitions)}
        left = set(found)
        while left:
            message = consumer.poll(30)
            assert message is not None, f"nothing came within 30 s of {sorted(left)}"
            error, partition = message.error(), message.partition()
            assert partition is not None
            if error is None:
                key, value = message.key(), message.value()
                assert not isinstance(key, str)
                assert not isinstance(value, str)
                found[partition].append((key, value))
            else:
                assert error.code() == ForeignError._PARTITION_EOF, error
                left -= {partition}
        return found
    finally:
        consumer.close()
