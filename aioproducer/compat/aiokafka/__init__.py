"""aiokafka's producer, built on this package's: with its arguments, its semantics, its errors.

::

    from aioproducer.compat.aiokafka import AIOKafkaProducer  # instead of: from aiokafka import AIOKafkaProducer

For a library that imports aiokafka itself, before that library is imported::

    from aioproducer.compat.aiokafka import install

    install()

aiokafka need not be installed. If it is, errors and structs are its own classes: ``except KafkaTimeoutError`` goes on
working, and its consumer accepts what the producer returns. ``docs/migrating.md`` says what differs.

producer.py              the class: its life cycle, and records
transactional_calls.py   transactions, and errors by aiokafka's names
configs.py               its arguments as configs of this package
errors.py                aiokafka's errors for this package's
future.py                what send() returns
batch_builder.py         what create_batch() makes
structs.py, aiokafka_module.py  aiokafka's tuples; its own modules, if it is installed
installing.py            puts the producer in the place of aiokafka's
"""

from aioproducer.compat.aiokafka.batch_builder import BatchBuilder
from aioproducer.compat.aiokafka.installing import install
from aioproducer.compat.aiokafka.producer import AIOKafkaProducer
from aioproducer.compat.aiokafka.structs import RecordMetadata, TopicPartition

__all__ = ["AIOKafkaProducer", "BatchBuilder", "RecordMetadata", "TopicPartition", "install"]
