"""aioproducer: the asyncio-native Kafka producer.

::

    from aioproducer import KafkaProducer

    async with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
        metadata = await producer.send("orders", b"value", key=b"42")

Public, besides the names here:

errors, types, acls, serializers, partitioners, record_metadata, prepared_txn_state, config_types
                  what calls take, return and raise
sync              the producer for threads
admin, reader     topics and configs; one partition, read
transform         from topic to topic, exactly once
outbox            rows of PostgreSQL become records, exactly once
dead_letters      records that cannot be delivered go to a topic
delivery_log, metrics, metrics_topic
                  deliveries and metrics, as files and topics
schema_registry   serializers for Avro, JSON Schema and Protobuf
integrations      FastAPI, aiohttp, OpenTelemetry, Prometheus
compat            the calls of other clients
spark             Spark's source and sink, and the audit
testing           an embedded cluster, scripted faults, mocks, real brokers
cli               the command ``aioproducer``

Private: producer, broker, and what they are built from: protocol, records, net, telemetry, configs, security, tasks,
timing, process, build_info. Their docstrings, and ``docs/internals``, are for who works on them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioproducer.build_info import __version__, compiled
    from aioproducer.config_types import ProducerConfigs
    from aioproducer.errors import DeliveryError, KafkaError, Outcome
    from aioproducer.metrics import MetricName, MetricsReporter, MetricsSnapshot
    from aioproducer.partitioners import Partitioner, RoundRobinPartitioner
    from aioproducer.prepared_txn_state import PreparedTxnState
    from aioproducer.producer.bulk.result import BulkResult, OffsetRange
    from aioproducer.producer.delivery.delivery import Delivery
    from aioproducer.producer.delivery.wait_all import wait_all
    from aioproducer.producer.diagnosis.explanation import Explanation, Obstacle
    from aioproducer.producer.diagnosis.health import HealthFinding, HealthThresholds, Severity
    from aioproducer.producer.diagnosis.reason import Reason
    from aioproducer.producer.hooks.interceptors import ProducerInterceptor
    from aioproducer.producer.producer import KafkaProducer
    from aioproducer.producer.units.unit import Unit
    from aioproducer.record_metadata import RecordMetadata
    from aioproducer.security.oauth.token import OAuthBearerToken
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
    "OAuthBearerToken",
    "Obstacle",
    "OffsetAndMetadata",
    "OffsetRange",
    "Outcome",
    "PartitionInfo",
    "Partitioner",
    "PreparedTxnState",
    "ProducerConfigs",
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
    "Unit",
    "__version__",
    "compiled",
    "wait_all",
]

# Nothing is imported before it is asked for: the command line, the embedded broker and the pytest plugin live in this
# package too, and none of them needs the producer to start.
_HOMES = {
    "BulkResult": "aioproducer.producer.bulk.result",
    "ConsumerGroupMetadata": "aioproducer.types",
    "Delivery": "aioproducer.producer.delivery.delivery",
    "DeliveryError": "aioproducer.errors",
    "Explanation": "aioproducer.producer.diagnosis.explanation",
    "HealthFinding": "aioproducer.producer.diagnosis.health",
    "HealthThresholds": "aioproducer.producer.diagnosis.health",
    "KafkaError": "aioproducer.errors",
    "KafkaProducer": "aioproducer.producer.producer",
    "LedgerEntry": "aioproducer.types",
    "MetricName": "aioproducer.metrics",
    "MetricsReporter": "aioproducer.metrics",
    "MetricsSnapshot": "aioproducer.metrics",
    "OAuthBearerToken": "aioproducer.security.oauth.token",
    "Obstacle": "aioproducer.producer.diagnosis.explanation",
    "OffsetAndMetadata": "aioproducer.types",
    "OffsetRange": "aioproducer.producer.bulk.result",
    "Outcome": "aioproducer.errors",
    "PartitionInfo": "aioproducer.types",
    "Partitioner": "aioproducer.partitioners",
    "PreparedTxnState": "aioproducer.prepared_txn_state",
    "ProducerConfigs": "aioproducer.config_types",
    "ProducerInterceptor": "aioproducer.producer.hooks.interceptors",
    "ProducerRecord": "aioproducer.types",
    "Reason": "aioproducer.producer.diagnosis.reason",
    "RecordMetadata": "aioproducer.record_metadata",
    "RoundRobinPartitioner": "aioproducer.partitioners",
    "Serializer": "aioproducer.serializers",
    "Severity": "aioproducer.producer.diagnosis.health",
    "TimestampType": "aioproducer.types",
    "TopicPartition": "aioproducer.types",
    "TopicPartitions": "aioproducer.types",
    "Unit": "aioproducer.producer.units.unit",
    "__version__": "aioproducer.build_info",
    "compiled": "aioproducer.build_info",
    "wait_all": "aioproducer.producer.delivery.wait_all",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except AttributeError as error:  # from ... import would drop it, and say no more than that the name is missing
        raise ImportError(f"cannot import {name!r} from {__name__!r}: {error}") from error
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
