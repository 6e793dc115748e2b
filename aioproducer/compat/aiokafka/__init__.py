"""aiokafka's producer, built on this package's: with its arguments, its semantics, its errors.

::

    from aioproducer.compat.aiokafka import AIOKafkaProducer  # instead of: from aiokafka import AIOKafkaProducer

For a library that imports aiokafka itself, call this before importing that library::

    from aioproducer.compat.aiokafka import install

    install()

aiokafka need not be installed. If it is, errors and structs are its own classes: ``except KafkaTimeoutError``
still works, and its consumer accepts what the producer returns. ``docs/migrating.md`` says what differs.

    producer.py            the class: its life cycle, records, and transactions
    transactions.py        how transactions begin and end
    configs.py             its arguments as configs of this package
    errors.py              aiokafka's errors for this package's
    error_translation.py   which of them the calls of one producer raise
    future.py              what send() returns
    batch_builder.py       what create_batch() returns
    partitions.py          which partition a record goes to
    client.py              as much of aiokafka's client as instrumentation reads
    structs.py             aiokafka's tuples
    aiokafka_metadata.py   the metadata of a record as such a tuple
    aiokafka_module.py     aiokafka's own modules, if it is installed
    installing.py          replaces aiokafka's producer
    instrumentation.py     carries over what has wrapped its methods by then
"""

from aioproducer.compat.aiokafka.batch_builder import BatchBuilder
from aioproducer.compat.aiokafka.installing import install
from aioproducer.compat.aiokafka.producer import AIOKafkaProducer
from aioproducer.compat.aiokafka.structs import RecordMetadata, TopicPartition

__all__ = ["AIOKafkaProducer", "BatchBuilder", "RecordMetadata", "TopicPartition", "install"]
