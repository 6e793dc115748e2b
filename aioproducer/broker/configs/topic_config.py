"""The configs of a topic: Kafka's names, types, defaults and ranges.

Only configs that have an effect are declared here. A topic may also have Kafka's other topic configs, which have no
effect (``stored_topic_config.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from aioproducer.broker.configs.broker_config import CODECS, GZIP_LEVELS, TIMESTAMP_TYPES, BrokerConfig
from aioproducer.broker.configs.stored_topic_config import StoredTopicConfig
from aioproducer.configs.config_def import (
    ANY,
    LONG_MAX,
    ConfigKey,
    Type,
    at_least,
    between,
    checked,
    key,
    list_of,
    parse,
    table,
)
from aioproducer.errors import ConfigException, InvalidConfigurationException
from aioproducer.records.compression import CompressionType, check_codec


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The configs of one topic. Its defaults are the broker's."""

    message_timestamp_type: str = key(Type.STRING, "CreateTime", TIMESTAMP_TYPES, "As log.message.timestamp.type.")
    message_timestamp_after_max_ms: int = key(
        Type.LONG, 3600000, between(0, LONG_MAX), "As log.message.timestamp.after.max.ms."
    )
    message_timestamp_before_max_ms: int = key(
        Type.LONG, LONG_MAX, between(0, LONG_MAX), "As log.message.timestamp.before.max.ms."
    )
    cleanup_policy: tuple[str, ...] = key(
        Type.LIST, ("delete",), list_of("compact", "delete"), "As log.cleanup.policy."
    )
    compression_type: str = key(Type.STRING, "producer", CODECS, "As the broker's config of this name.")
    compression_gzip_level: int = key(Type.INT, -1, GZIP_LEVELS, "As the broker's config of this name.")
    compression_lz4_level: int = key(Type.INT, 9, between(1, 17), "As the broker's config of this name.")
    compression_zstd_level: int = key(Type.INT, 3, between(-131072, 22), "As the broker's config of this name.")
    max_message_bytes: int = key(Type.INT, 1048588, at_least(0), "As message.max.bytes.")
    min_insync_replicas: int = key(Type.INT, 1, at_least(1), "As the broker's config of this name.")
    segment_bytes: int = key(Type.INT, 1073741824, at_least(1024 * 1024), "As log.segment.bytes.")
    retention_bytes: int = key(Type.LONG, -1, ANY, "As log.retention.bytes.")
    producer_state_batches_to_retain: int = key(
        Type.INT, 5, at_least(5), "As log.producer.state.batches.to.retain (KIP-1269)."
    )

    @staticmethod
    def of(given: Mapping[str, object], broker: BrokerConfig) -> TopicConfig:
        """The broker's values, overridden by ``given``; configs without effect are only checked.

        Raises :class:`InvalidConfigurationException` (``INVALID_CONFIG``), which names an unknown or invalid config.
        """
        values: dict[str, object] = {
            name: getattr(broker, server.replace(".", "_")) for name, server in SERVER_NAMES.items()
        }
        try:
            for name, value in given.items():
                row = _STORED.get(name)
                if row is None:
                    values[name] = value
                else:
                    checked(row, value)
            config = parse(TopicConfig, values, owner="topic")
            if config.codec is not None:
                check_codec(config.codec)
            return config
        except ConfigException as error:
            raise InvalidConfigurationException(str(error)) from error

    @property
    def codec(self) -> CompressionType | None:
        """The codec in which batches are stored; None for the codec of the producer."""
        if self.compression_type == "producer":
            return None
        return CompressionType.of("none" if self.compression_type == "uncompressed" else self.compression_type)

    @property
    def compression_level(self) -> int | None:
        """The level of that codec, if it has levels."""
        match self.codec:
            case CompressionType.GZIP:
                return self.compression_gzip_level
            case CompressionType.LZ4:
                return self.compression_lz4_level
            case CompressionType.ZSTD:
                return self.compression_zstd_level
            case _:
                return None


SERVER_NAMES = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "message.timestamp.type": "log.message.timestamp.type",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "max.message.bytes": "message.max.bytes",
    "min.insync.replicas": "min.insync.replicas",
    "segment.bytes": "log.segment.bytes",
    "retention.bytes": "log.retention.bytes",
    "producer.state.batches.to.retain": "log.producer.state.batches.to.retain",
}
"""The broker's configs that apply to topics without a config of their own. As in Kafka, they may change at any time."""

KIP_1269_CONFIGS = frozenset({"producer.state.batches.to.retain", "log.producer.state.batches.to.retain"})
"""The topic config that a broker before that KIP does not know."""

_STORED = table(StoredTopicConfig)
TOPIC_CONFIGS: Mapping[str, ConfigKey] = {**table(TopicConfig), **_STORED}
TOPIC_CONFIGS_WITHOUT_EFFECT = frozenset(_STORED)
"""Stored with a topic and described, without effect."""
