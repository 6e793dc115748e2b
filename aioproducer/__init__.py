"""aioproducer: the asyncio-native Kafka producer.

::

    from aioproducer import KafkaProducer

    async with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
        metadata = await producer.send("orders", b"value", key=b"42")
"""

from aioproducer.errors import DeliveryError, KafkaError, Outcome
from aioproducer.metrics import MetricName, MetricsReporter, MetricsSnapshot
from aioproducer.partitioners import Partitioner, RoundRobinPartitioner
from aioproducer.producer.bulk_result import BulkResult, OffsetRange
from aioproducer.producer.delivery import Delivery
from aioproducer.producer.explain import Explanation, Obstacle
from aioproducer.producer.health import HealthFinding, HealthThresholds, Severity
from aioproducer.producer.interceptors import ProducerInterceptor
from aioproducer.producer.producer import KafkaProducer, wait_all
from aioproducer.producer.reason import Reason
from aioproducer.record_metadata import RecordMetadata
from aioproducer.serializers import Serializer
from aioproducer.types import (
    ConsumerGroupMetadata,
    LedgerEntry,
    OffsetAndMetadata,
    PartitionInfo,
    ProducerRecord,
    TimestampType,
    TopicPartition,
    TopicPartitions,
)

__all__ = [
    "BulkResult",
    "ConsumerGroupMetadata",
    "Delivery",
    "DeliveryError",
    "Explanation",
    "HealthFinding",
    "HealthThresholds",
    "KafkaError",
    "KafkaProducer",
    "LedgerEntry",
    "MetricName",
    "MetricsReporter",
    "MetricsSnapshot",
    "Obstacle",
    "OffsetAndMetadata",
    "OffsetRange",
    "Outcome",
    "PartitionInfo",
    "Partitioner",
    "ProducerInterceptor",
    "ProducerRecord",
    "Reason",
    "RecordMetadata",
    "RoundRobinPartitioner",
    "Serializer",
    "Severity",
    "TimestampType",
    "TopicPartition",
    "TopicPartitions",
    "wait_all",
]
